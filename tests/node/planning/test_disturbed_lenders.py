"""Lenders whose measurements other programs disturbed are asked again, and what happens meanwhile prevails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.core.planner.speed_estimates import Speed
from app.network.messages import MeasureSpeed, SpeedMeasured, SpeedRefused
from app.node.planning import local_speed
from tests.node.planning.test_speed_measurer import CONDITIONS, GIB, LENDER, ME, Link, Side, measured, side


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine is quiet and measures in no time."""

    async def measure(*_: Any, **__: Any) -> Speed:
        return Speed(0.01, 0.001, 1e-6, 0.1, 1e-5, 0.001, 0.002, 0.001)

    monkeypatch.setattr(local_speed, "measure", measure)
    monkeypatch.setattr(local_speed, "other_programs_share", lambda: 0.0)


class Lender:
    """A lender that was disturbed the first time. `second` says what happens at the second question."""

    def __init__(self, second: Callable[[Side], None] = lambda _: None, *, refuses: bool = False) -> None:
        self.second, self.refuses = second, refuses
        self.link = Link(self.answer)
        self.host: Side | None = None

    async def answer(self, order: MeasureSpeed) -> None:
        assert self.host is not None
        n = len(self.link.asked)
        if n == 2:
            self.second(self.host)
        answer: SpeedMeasured | SpeedRefused = SpeedMeasured(
            request=order.request, layer_s=n * 1e-3, layer_row_s=0.0, position_s=1e-6, chunk_s=0.05, step_s=2e-4,
            other_load=0.7 if n == 1 else 0.0,
        )  # fmt: skip
        if n == 2 and self.refuses:
            answer = SpeedRefused(request=order.request, code="speed_shape_odd", facts={"what": "x"})
        self.host.speed_measurer.receive(LENDER, answer)


async def layer_s(host: Side) -> float | None:
    speed = (await measured(host))[LENDER]
    return None if speed is None else speed.layer_s


async def test_a_quiet_answer_replaces_the_disturbed_one(tmp_path: Path) -> None:
    lender = Lender()
    async with side(tmp_path / "host", lambda _: lender.link) as lender.host:
        assert await layer_s(lender.host) == 1e-3
        assert await lender.host.speed_measurer.ask_disturbed()
        assert [order.again for order in lender.link.asked] == [False, False]
        assert await layer_s(lender.host) == 2e-3
        assert not lender.host.speed_measurer.has_disturbed
        assert not await lender.host.speed_measurer.ask_disturbed()
        assert len(lender.link.asked) == 2


async def test_a_refusal_leaves_the_disturbed_one_valid(tmp_path: Path) -> None:
    lender = Lender(refuses=True)
    async with side(tmp_path / "host", lambda _: lender.link) as lender.host:
        await measured(lender.host)
        assert not await lender.host.speed_measurer.ask_disturbed()
        assert await layer_s(lender.host) == 1e-3
        assert len(lender.link.asked) == 2


@pytest.mark.parametrize("refuses", [False, True])
async def test_after_a_lost_link_the_lender_is_asked_anew(tmp_path: Path, refuses: bool) -> None:
    lender = Lender(lambda host: host.speed_measurer.link_lost(LENDER, "attic"), refuses=refuses)
    async with side(tmp_path / "host", lambda _: lender.link) as lender.host:
        await measured(lender.host)
        assert not await lender.host.speed_measurer.ask_disturbed()
        assert await layer_s(lender.host) == 3e-3


@pytest.mark.parametrize("refuses", [False, True])
async def test_after_a_changed_card_the_lender_is_asked_anew(tmp_path: Path, refuses: bool) -> None:
    lender = Lender(lambda host: host.speed_measurer.card_changed(LENDER), refuses=refuses)
    async with side(tmp_path / "host", lambda _: lender.link) as lender.host:
        await measured(lender.host)
        assert not await lender.host.speed_measurer.ask_disturbed()
        assert await layer_s(lender.host) == 3e-3


async def test_a_person_can_have_a_plain_layer_measured_again(tmp_path: Path) -> None:
    """A machine without room for the model's own layers has only the estimate from a plain one."""

    async def answer(order: MeasureSpeed) -> None:
        made: SpeedMeasured | SpeedRefused = SpeedRefused(
            request=order.request, code="speed_no_room", facts={"needed_bytes": 2 * GIB, "free_bytes": GIB}
        )
        if order.shape == plain:
            made = SpeedMeasured(
                request=order.request, layer_s=2e-3, layer_row_s=0.0, position_s=1e-6, chunk_s=0.05, step_s=2e-4
            )
        host.speed_measurer.receive(LENDER, made)

    link = Link(answer)
    async with side(tmp_path / "host", lambda _: link) as host:
        instead = host.speed_measurer._basis(host.entry).instead
        assert instead is not None
        plain = instead.shape
        await measured(host)
        assert await host.speed_measurer.doubt(host.entry, CONDITIONS, ME) == {ME}, "a plain layer explains no error"
        assert LENDER in await host.speed_measurer.doubt(host.entry, CONDITIONS, ME, by_hand=True)
        await measured(host)
        assert [order.again for order in link.asked if order.shape == plain] == [False, True]


async def test_a_person_can_have_an_estimated_model_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with side(tmp_path / "host") as host:
        basis = host.speed_measurer._basis(host.entry).instead
        assert basis is not None
        monkeypatch.setattr(host.speed_measurer, "_basis", lambda _: basis)
        assert basis.is_estimate
        assert await host.speed_measurer.doubt(host.entry, CONDITIONS, ME) == set()
        assert await host.speed_measurer.doubt(host.entry, CONDITIONS, ME, by_hand=True) == {ME}
