"""Names, limits, rights and removals, on real nodes with layers on each other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from app.client import NodeClient
from app.core.errors import AppError, BadInput, Refused
from app.core.household.household import Machine
from app.core.household.operations import Role
from app.core.reasons import said
from app.machine.settings import load
from app.node.control import naming
from tests.network import nodes as lan
from tests.node.pool import TestNode, node, pair, paired

Json = dict[str, Any]
OVER_ALL = {"model": "guide", "split": [2, 2, 2, 2]}


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[TestNode]]:
    """Yield the nodes, with other names than at their start: each test may be the first or the only one."""
    with paired(tmp_path_factory.mktemp("household"), "den", "attic", "kitchen") as nodes:
        den, attic, kitchen = nodes
        post(den, "/machines/attic/name", {"name": "loft"})
        until(lambda: load(attic.root / "settings.json").name == "loft")
        post(kitchen, "/machines/kitchen/name", {"name": "nook"})  # everybody names itself
        until(lambda: names(den) == names(attic) == names(kitchen) == {"den", "loft", "nook"})
        yield nodes


def of(test_node: TestNode, work: Callable[[NodeClient], Coroutine[Any, Any, Json]]) -> Json:
    """Act as a command would, without starting a program each time."""

    async def ask() -> Json:
        async with test_node.client() as client:
            return await work(client)

    return asyncio.run(ask())


def status(test_node: TestNode) -> Json:
    return of(test_node, lambda client: client.get("/status"))


def post(test_node: TestNode, path: str, body: Json) -> Json:
    return of(test_node, lambda client: client.post(path, body))


def loaded(test_node: TestNode) -> Json:
    return of(test_node, lambda client: client.work("POST", "/load", OVER_ALL))


def names(test_node: TestNode) -> set[str]:
    return {machine["name"] for machine in status(test_node)["machines"].values()}


def states(test_node: TestNode) -> set[str]:
    return {machine["state"] for machine in status(test_node)["machines"].values()}


def until(holds: Callable[[], object], within_s: float = 60) -> None:
    late = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < late, holds
        time.sleep(0.05)


@pytest.mark.long
def test_names_reach_everybody_and_stay(pool: list[TestNode]) -> None:
    den, attic, kitchen = pool
    loaded(den)
    assert den.run("rename", "loft", "barn").stdout == "loft is now called barn.\n"
    until(lambda: load(attic.root / "settings.json").name == "barn")
    until(lambda: "barn" in names(den))
    result = status(den)["loaded"]  # as it was placed, with the names of now
    for part in ("stages", "machines"):
        assert {item["machine"] for item in result[part]} == {"den", "barn", "nook"}, part
    post(den, "/unload", {})
    post(den, "/machines/barn/name", {"name": "loft"})
    until(lambda: load(attic.root / "settings.json").name == "loft")  # it says `barn` no more
    until(lambda: names(den) == {"den", "loft", "nook"})
    until(lambda: names(attic) == names(kitchen) == names(den))
    with pytest.raises(Refused) as refused:
        post(kitchen, "/machines/den/name", {"name": "study"})
    assert refused.value.reason.code == "not_admin"
    with pytest.raises(BadInput):
        post(den, "/machines/loft/name", {"name": " \u202e"})
    for other in ("nook", "den"):  # two of one name could not be told apart
        with pytest.raises(BadInput) as taken:
            post(den, "/machines/loft/name", {"name": other})
        assert taken.value.reason.code == "name_taken"
    post(den, "/machines/loft/name", {"name": "loft"})  # its own


def test_a_newcomer_whose_name_is_taken_takes_the_one_it_is_given(tmp_path: Path) -> None:
    with node(tmp_path / "den", "den") as den, node(tmp_path / "other", "DEN") as other:
        assert pair(den, other)["called"] == "DEN 2"
        until(lambda: names(den) == names(other) == {"den", "DEN 2"})
        assert load(other.root / "settings.json").name == "DEN 2"
        for taken in ("den", "ｄｅｎ"):
            with pytest.raises(BadInput, match="name_taken"):
                post(other, f"/machines/{other.ready['id']}/name", {"name": taken})


@pytest.mark.long
def test_under_a_limit_a_split_says_the_same_and_forecasts_know_it(pool: list[TestNode]) -> None:
    den, attic, _ = pool
    loaded(den)
    question = {"prompt": "A question: " + 8 * "How do I add a computer? ", "raw": True,
                "max_tokens": 24, "sampling": {"temperature": 0}}  # fmt: skip
    free = answered(den, question)
    post(attic, "/lending", {"link_mbit": 10})
    try:
        held = answered(den, question)
        assert held["token_ids"] == free["token_ids"]
        assert held["recoveries"] == 0
        far = attic.ready["id"]
        until(lambda: status(den)["machines"][far]["link_mbit"] == 10)
        until(lambda: post(den, f"/measure?machine={far}", {})["links"][0]["reason"] is None)
        plan = of(den, lambda client: client.work("POST", "/plan", {"model": "guide", "measure": False}))
        link = next(machine["link"] for machine in plan["from"]["machines"] if machine["id"] == far)
        assert 0 < link["out_bytes_per_s"] <= 1.25e6
        assert 0 < link["in_bytes_per_s"] <= 1.25e6
    finally:
        post(attic, "/lending", {"link_mbit": 0})
        post(den, "/unload", {})


def answered(test_node: TestNode, question: Json) -> Json:
    return of(test_node, lambda client: client.work("POST", "/ask", question))


@pytest.mark.long
def test_a_right_that_is_taken_ends_what_rests_on_it(pool: list[TestNode]) -> None:
    den, attic, kitchen = pool
    loaded(attic)
    assert kitchen.workers()
    said_so = den.run("roles", "loft", "--lender")
    assert said_so.stdout.startswith("Roles of loft: lender. Models that it loaded"), said_so.stderr
    until(lambda: not kitchen.workers() and not den.workers())
    until(lambda: status(attic)["loaded"]["state"] == "lost")
    with pytest.raises(AppError) as refused:
        loaded(attic)
    assert "does not allow this machine to use other machines" in said(refused.value)

    post(den, "/machines/nook/roles", {"roles": ["host"]})
    until(lambda: status(kitchen)["node"]["lending"]["state"] == "paused")
    reason = status(kitchen)["node"]["lending"]["reason"]
    assert reason.startswith("The household does not allow the machine to lend. Change this with `poolhouse roles`")
    post(den, "/machines/nook/roles", {"roles": ["host", "lender"]})
    until(lambda: states(den) == {"ready"})
    with pytest.raises(Refused):  # an admin stays one
        post(den, "/machines/den/roles", {"roles": ["host"]})


@pytest.mark.long
def test_a_removed_lender_is_named_and_knows_it_itself(pool: list[TestNode]) -> None:
    den, attic, kitchen = pool
    loaded(den)
    refused = den.run("remove", "loft")
    assert (refused.returncode, refused.stderr) == (
        1,
        "Cannot ask for confirmation (no terminal, or --json). Add --yes to confirm.\n",
    )
    done = of(den, lambda client: client.delete("/machines/loft"))
    assert (done["removed"]["name"], done["also_removed"]) == ("loft", [])
    until(lambda: not attic.workers())
    until(lambda: status(den)["loaded"]["state"] == "lost")
    assert status(den)["loaded"]["reason"] == "loft was removed from the household."
    until(lambda: names(kitchen) == {"den", "nook"})
    until(lambda: not status(attic)["links"])
    first = attic.run("status").stdout.splitlines()[0]
    assert first.startswith("This machine was removed from the household.")


async def test_machines_that_a_removed_admin_added_are_asked_about(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        home = lan.Nodes(tmp_path, stack)
        den, attic = await home.paired("den", "attic")
        network = den.network
        await network.set_roles(attic.network.id, list(Role)[:3])
        await lan.until(lambda: Role.ADMIN in attic.network.members[attic.network.id].roles)
        loft = await home.open("loft")
        await lan.pair(attic, loft)
        barn = await home.open("barn")
        await lan.pair(attic, barn)
        await lan.until(lambda: len(network.members) == len(barn.network.members) == 4)
        machines = {key: Machine(key, member.name) for key, member in network.members.items()}
        leaving = machines[attic.network.id]
        with pytest.raises(Refused) as raised:
            await naming.remove(network, leaving, None, machines)
        assert said(raised.value).startswith("attic added these machines to the household: barn, loft.")
        with pytest.raises(Refused) as exception_info:  # what cannot be done is not asked about
            await naming.remove(barn.network, leaving, None, machines)
        assert exception_info.value.reason.code == "not_admin"
        with pytest.raises(BadInput):
            await naming.remove(network, machines[network.id], None, machines)
        done = await naming.remove(network, leaving, "remove", machines)
        assert done.also_removed == ["barn", "loft"]
        assert set(network.members) == {network.id}
        await lan.until(lambda: loft.network.id not in network.links)
