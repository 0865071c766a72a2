"""A hostile guest: a member that may only ask, and asks for what is hard, endless or no request at all."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import aiohttp

from app.core.errors import AppError
from app.core.ids import MachineId
from app.network.peer.listener import ANSWERS_PATH
from tests.faults.mole import Mole
from tests.network.nodes import until

Json = dict[str, Any]
CHAT = "/v1/chat/completions"
LINK_SECONDS, ONE_SECONDS = 10.0, 6.0  # until it is linked; for one of its requests
AT_ONCE, NEXT_SECONDS = 40, 0.03


class Guest:
    """The means of an attack by a guest."""

    def __init__(self, mole: Mole, victim: MachineId, chance: random.Random) -> None:
        self.mole, self.victim, self.chance = mole, victim, chance

    async def ask(self, body: Any, path: str = CHAT, **more: Any) -> int:
        """The status of the answer; 0 where none came."""
        network = self.mole.node.network
        await until(lambda: self.victim in network.links, LINK_SECONDS)
        link = network.link(self.victim)
        data = body if isinstance(body, bytes) or hasattr(body, "__aiter__") else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} | more.pop("headers", {})
        try:
            async with (
                asyncio.timeout(ONE_SECONDS),
                link.host_session().request(
                    more.pop("method", "POST"),
                    f"https://{link.address}{ANSWERS_PATH}{path}",
                    data=data,
                    headers=headers,
                    **more,
                ) as answer,
            ):
                while await answer.content.readany():
                    pass
                return answer.status
        except (TimeoutError, aiohttp.ClientError, OSError, RuntimeError, AppError, ValueError):
            return 0

    async def many(self, body: Any, n: int = AT_ONCE, **more: Any) -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(n):
                tasks.create_task(self.ask(body, **more), name="a hostile question")
                await asyncio.sleep(NEXT_SECONDS)  # more handshakes at once are refused


Attack = Callable[[Guest], Awaitable[None]]


def chat(**more: Any) -> Json:
    return {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8, "temperature": 0} | more


def form(schema: Json) -> Json:
    return chat(response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}})


def of_itself(width: int) -> Json:
    """Arrays of itself in several ways: a grammar's stacks grow with each bracket."""
    return {
        "$defs": {"a": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/a"}} for _ in range(width)]}},
        "$ref": "#/$defs/a",
    }


def nested(depth: int) -> Json:
    made: Json = {"type": "string"}
    for _ in range(depth):
        made = {"type": "array", "items": made}
    return made


def deep_form(depth: int) -> bytes:
    """Deeper than what writes JSON here goes."""
    before, after = json.dumps(form({"type": "HERE"})).encode().split(b'{"type": "HERE"}')
    return before + b'{"type":"array","items":' * depth + b'{"type":"string"}' + b"}" * depth + after


def wide(n: int) -> Json:
    return {"type": "object", "properties": {f"p{k}": {"type": "string", "maxLength": 1000} for k in range(n)}}


def picture(chance: random.Random) -> Json:
    url = "data:image/png;base64," + base64.b64encode(chance.randbytes(2000)).decode()
    return {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]}


def _tool(parameters: Json, name: str = "f") -> Json:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


async def _dripped() -> AsyncIterator[bytes]:
    for letter in json.dumps(chat()).encode():
        yield bytes([letter])
        await asyncio.sleep(0.2)


async def _hasty(guest: Guest) -> None:
    """Asks and hangs up at once."""
    for _ in range(50):
        with suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                await guest.ask(chat(max_tokens=500))


async def _idle(guest: Guest) -> None:
    """All the connections that it may have, and nothing is said on them."""
    network = guest.mole.node.network
    await until(lambda: guest.victim in network.links, LINK_SECONDS)
    link, context = (network.link(guest.victim), network.dialing_context(network.members[guest.victim]))
    held = []
    for _ in range(70):
        with suppress(OSError):
            held.append((await asyncio.open_connection(link.address.host, link.address.port, ssl=context))[1])
    await asyncio.sleep(1)
    for writer in held:
        writer.transport.abort()


async def _unread(guest: Guest) -> None:
    """Long answers that it does not read."""
    network = guest.mole.node.network
    await until(lambda: guest.victim in network.links, LINK_SECONDS)
    link = network.link(guest.victim)
    with suppress(aiohttp.ClientError, OSError, TimeoutError):
        async with (
            asyncio.timeout(ONE_SECONDS),
            link.host_session().post(
                f"https://{link.address}{ANSWERS_PATH}{CHAT}", json=chat(max_tokens=900, stream=True)
            ),
        ):
            await asyncio.sleep(3)


def once(*bodies: Any, **more: Any) -> Attack:
    """One after the other."""

    async def run(guest: Guest) -> None:
        for body in bodies:
            await guest.ask(body(guest.chance) if callable(body) else body, **dict(more))

    return run


def together(body: Any) -> Attack:
    async def run(guest: Guest) -> None:
        await guest.many(body)

    return run


ATTACKS: dict[str, Attack] = {
    "a form of arrays of itself": once(form(of_itself(2)), form(of_itself(8)), form(of_itself(30))),
    "a form that is deep": once(form(nested(30)), form(nested(31)), deep_form(2000)),
    "a form that is wide": once(form(wide(300)), form(wide(1000))),
    "a form with a pattern": once(
        form({"type": "string", "pattern": "^(a+)+$"}),
        form({"type": "string", "pattern": "(" * 500 + ")" * 500}),
        form({"type": "string", "minLength": 10**9}),
    ),
    "a form of very many choices": once(form({"enum": [f"word{n}" for n in range(5000)]})),
    "tools whose arguments are hard": once(
        chat(tools=[_tool(of_itself(8), f"f{n}") for n in range(8)], tool_choice="required")
    ),
    "a grammar of its own": once(chat(grammar='root ::= root root | "a"'), chat(grammar="x" * 60_000)),
    "numbers that are none": once(
        b'{"messages":[{"role":"user","content":"x"}],"temperature":NaN}',
        b'{"messages":[{"role":"user","content":"x"}],"top_p":1e999}',
        chat(temperature=-1),
    ),
    "weights of tokens without bounds": once(
        chat(logit_bias={str(n): 100 for n in range(1024)}),
        chat(logit_bias={"-1": 1, str(1 << 40): 1}),
        b'{"messages":[{"role":"user","content":"x"}],"logit_bias":{"1":1e309}}',
    ),
    "tokens that there are not": once(
        {"prompt_ids": [0, 1 << 19, 5], "max_tokens": 4},
        {"prompt_ids": [(1 << 20)] * 2000, "max_tokens": 4},
        path="/ask",
    ),
    "pictures that are none": once(picture, picture, picture),
    "nesting without end": once(b"[" * 1_000_000, b'{"messages":' + b'[{"x":' * 5000, b'{"a":' * 100_000),
    "the longest body": once(b'{"messages":[{"role":"user","content":"' + b"a" * (7 << 20) + b'"}]}'),
    "letters that are none": once(
        b'{"messages":[{"role":"user","content":"\\ud800\\udfff\\udc00"}]}',
        b"\xff\xfe\x00",
        b'{"messages":[{"role":"user","content":"\xed\xa0\x80"}]}',
    ),
    "a body letter by letter": once(lambda _: _dripped()),
    "everything at once": together(chat(max_tokens=200)),
    "four answers each, at once": together(chat(max_tokens=100, n=4)),
    "asked and hung up": _hasty,
    "answers that nobody reads": _unread,
    "connections that say nothing": _idle,
    "paths that lead elsewhere": once(
        *[chat(model=name) for name in ("../../etc/passwd", "/etc/passwd", "\x00", "x" * 10_000, "upstream/x")]
    ),
    "thousands of messages": once(
        {"messages": [{"role": "user", "content": "x"}] * 4096, "max_tokens": 2},
        {"messages": [{"role": "user", "content": ""}] * 50_000},
    ),
    "stops of every kind": once(chat(stop=[""]), chat(stop=["a" * 256] * 8), chat(stop=["x"] * 5000)),
    "requests that are none": once(b"", b"null", b"[]", b'"x"', chat(), headers={"Content-Encoding": "gzip"}),
}
