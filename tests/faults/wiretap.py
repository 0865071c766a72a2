"""S10: what passes the cables of a household while it loads and answers, searched for what nobody may read."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from array import array
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psutil

from tests.faults.cables import Cabled, space
from tests.faults.household import HOST, LENDERS, ORDER, Household
from tests.faults.outcome import Outcome

KIND = ("S10", "captured on every cable", "load and answer")
ALL_PROTOCOLS = 0x0003  # linux/if_ether.h
SECRET = "The zanzibar cupboard is opened by quetzalcoatl. How do I add a computer?"
N_TOKENS = 48
LEAST_BYTES = 100_000  # of hidden states alone: fewer, and nothing was captured
PATIENCE_SECONDS = 0.2  # for the last packets


async def run(home: Cabled) -> Outcome:
    """One load and one answer."""
    await home.whole()
    captured: list[bytes] = []
    async with home.client() as host:
        await host.post("/unload")
    with _tapped(captured):
        await home.whole()
        order = ORDER | {"prompt": SECRET, "max_tokens": N_TOKENS}
        heard = await home.ask(lambda: None, lambda _: False, order)
        await asyncio.sleep(PATIENCE_SECONDS)
    everything = b"".join(captured)
    answer = str((heard.done or {}).get("text") or "")
    found = [name for name, needle in _needles(heard.ids, answer) if needle in everything]
    why = f"in plain: {', '.join(found)}" if found else ""
    if not heard.done:
        why = heard.error or "no end"
    elif len(everything) < LEAST_BYTES or b"\x17\x03\x03" not in everything:
        why = f"only {len(everything)} bytes were captured"
    why = why or _unexpected(home)
    facts = {"captured_bytes": float(len(everything))}
    return Outcome(*KIND, not why, why, in_time=not why, facts=facts)


def _needles(ids: list[int], answer: str) -> Iterator[tuple[str, bytes]]:
    """What was asked and answered, as text and as token ids; and what would show that anything is in plain."""
    for word in ("zanzibar", "quetzalcoatl", "cupboard"):
        for code in ("utf-8", "utf-16-le", "utf-16-be"):
            yield word, word.encode(code)
    if len(answer) >= 8:
        yield "the answer", answer[:8].encode()
    few = ids[:4]
    for kind in ("i", "q"):
        numbers = array(kind, few)
        yield "token ids", numbers.tobytes()
        numbers.byteswap()
        yield "token ids", numbers.tobytes()
    yield "token ids", json.dumps(few).encode()
    yield "token ids", json.dumps(few, separators=(",", ":")).encode()
    yield "a control message", b'"type":"'
    yield "a tensor's name", b"blk."


def _unexpected(home: Household) -> str:
    """Listeners beside the port for members and the control port, which is on loopback alone."""
    for name, one in home.nodes.items():
        process = psutil.Process(one.process.pid)
        for each in (process, *process.children(recursive=True)):
            for seen in each.net_connections("tcp"):
                if seen.status != psutil.CONN_LISTEN:
                    continue
                control = seen.laddr.port == one.ready["control_port"]
                if seen.laddr.port != one.ready["peer_port"] and not control:
                    return f"{name} listens on {seen.laddr.port}"
                if control and seen.laddr.ip != "127.0.0.1":
                    return f"{name}'s control port is open on {seen.laddr.ip}"
    return "" if HOST in home.nodes else "no host"


@contextmanager
def _tapped(to: list[bytes]) -> Iterator[None]:
    """Whatever passes our ends of the cables."""
    assert sys.platform == "linux"
    loop = asyncio.get_running_loop()
    with ExitStack() as stack:
        for name in LENDERS:
            tap = stack.enter_context(
                socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ALL_PROTOCOLS))
            )
            tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
            tap.bind((f"to-{space(name)}"[:15], ALL_PROTOCOLS))
            tap.setblocking(False)
            loop.add_reader(tap, _take, tap, to)
            stack.callback(loop.remove_reader, tap)
        yield


def _take(tap: socket.socket, to: list[bytes]) -> None:
    try:
        while True:
            to.append(tap.recv(1 << 17))
    except BlockingIOError:
        pass
