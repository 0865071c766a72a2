"""Two models that lose their lender in the same moment: this machine's memory is given to each of them once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import aiohttp
import pytest

from app.client import NodeClient
from testbed import tiny
from tests.gateway.conftest import opened
from tests.node.pool import BUSY, TestNode, paired
from tests.node.prometheus import samples

Json = dict[str, Any]
pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]
NAMES = ("one", "two")
ASK = {"prompt": "How?", "raw": True, "ignore_end": True, "max_tokens": 96, "guesses": False,
       "sampling": {"temperature": 0}}  # fmt: skip
MIB = 1 << 20
SOON_SECONDS = 12.0  # to look whether it fits is done every five


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[TestNode]]:
    folder = tmp_path_factory.mktemp("recover")
    with paired(folder, "den", "attic") as nodes:
        for seed, name in enumerate(NAMES):
            path = tiny.llama(folder / f"{name}.gguf", layers=8, width=256, ffn=8192, seed=seed)
            assert nodes[0].run("import", str(path)).returncode == 0
        yield nodes


class Asked:
    """One answer as it comes."""

    def __init__(self) -> None:
        self.states: list[str] = []
        self.codes: list[str] = []
        self.n_tokens = 0
        self.done: Json | None = None

    async def follow(self, host: NodeClient, name: str) -> None:
        async with aclosing(host.stream("POST", "/ask", ASK | {"model": name})) as lines:
            async for line in lines:
                if "recovery" in line:
                    self.states.append(line["recovery"]["state"])
                    self.codes.append(line["recovery"]["code"])
                self.n_tokens += "delta" in line
                self.done = line.get("done")


def here(result: Json, den: str) -> int:
    return sum(machine["needs_bytes"] for machine in result["machines"] if machine["id"] == den)


async def until(holds: Any, within_s: float = SOON_SECONDS) -> None:
    async with asyncio.timeout(within_s * BUSY):
        while not await holds():  # noqa: ASYNC110  another process
            await asyncio.sleep(0.02)


async def test_what_one_takes_of_this_machine_the_other_waits_for(pool: list[TestNode]) -> None:
    den = pool[0].ready["id"]
    async with pool[0].client() as host:
        for name in NAMES:
            order = {"model": name, "split": [1, 6, 1], "beside": True}
            loaded = (await host.work("POST", "/load", order))["loaded"]
        share = here(loaded, den)
        plan = await host.work("POST", "/plan", {"model": "one", "shape": "one", "beside": True})
        whole = here(plan, den)
        assert whole > share + 8 * MIB
        most = whole + share + MIB
        await host.post("/lending", {"memory_bytes": most, "limit_bytes": most})
        async with asyncio.TaskGroup() as group:
            answers = {name: Asked() for name in NAMES}
            tasks = {name: group.create_task(answer.follow(host, name), name=name) for name, answer in answers.items()}

            async def begun() -> bool:
                return all(answer.n_tokens for answer in answers.values())

            await until(begun)
            pool[1].process.kill()

            async def one_has_it() -> bool:
                return any(answer.done for answer in answers.values())

            await until(one_has_it)
            first = next(name for name, answer in answers.items() if answer.done)
            [second] = set(NAMES) - {first}

            async def other_waits() -> bool:
                return answers[second].states[-1:] == ["short"]

            await until(other_waits)
            now = await host.get("/status")
            assert now["node"]["lending"]["own_bytes"] <= most
            await host.post("/unload", {"model": first})
            await until(lambda: asyncio.sleep(0, tasks[second].done()))
        done = answers[second].done
        assert done is not None
        assert done["recoveries"] == 1
        assert len(done["token_ids"]) == ASK["max_tokens"]
        codes = answers[first].codes + answers[second].codes
        assert "beside_no_room" not in codes  # what was planned was there to be taken
    recoveries = sum(answer.done["recoveries"] for answer in answers.values() if answer.done)
    api = await asyncio.to_thread(opened, pool[0])
    async with aiohttp.ClientSession(api.base, headers={"X-Api-Key": api.key}) as http, http.get("/metrics") as page:
        assert samples(await page.text(), "recoveries_total") == [recoveries]
