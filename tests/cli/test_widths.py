"""Nothing is lost: on a pipe lines are as long as they are, and on a narrow terminal columns give way and wrap."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from app.api.models import ShelfModel
from app.api.plans import Plan
from app.api.snapshot import Machine, Snapshot
from app.cli.output import UNBROKEN_WIDTH
from app.cli.views.machines_view import MachinesView
from app.cli.views.models_view import models_view
from app.cli.views.placement_view import plan_view
from app.cli.views.status_view import status_view
from app.decoding import convert
from tests.cli.answers import DEN, LOADED, MACHINES, MODELS, SNAPSHOT

LONG = "the-computer-under-the-desk-at-the-end-of-the-corridor"
MODEL = "SmolLM2-135M-Instruct-with-a-name-as-hubs-have-them.Q4_K_M"


def drawn(view: Any, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width, markup=False, emoji=False, highlight=False).print(view)
    return out.getvalue()


def views() -> list[tuple[Any, list[str]]]:
    """Each view that has a table, and what must be in it whole."""
    machines = {DEN: MACHINES[DEN] | {"name": LONG}}
    stages = [stage | {"machine": LONG} for stage in LOADED["stages"]]
    loaded = LOADED | {"model": MODEL, "stages": stages}
    snapshot = convert(SNAPSHOT | {"machines": machines, "loaded": loaded}, Snapshot)
    return [
        (status_view(snapshot), [LONG, MODEL, "2.0 of 8.0 GiB", "1–4, 9–12", "11.0 MiB of 8.0 GiB"]),
        (plan_view(convert(loaded, Plan)), [LONG, "1–4, 9–12", "11.0 MiB of 8.0 GiB"]),
        (models_view(convert([MODELS[0] | {"name": MODEL}], list[ShelfModel])), [MODEL, "11.0 MiB", "2,048"]),
        (MachinesView(convert(list(machines.values()), list[Machine])), [LONG, "CPU, 8 threads"]),
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(4))
def test_a_pipe_gets_whole_lines(number: int) -> None:
    view, whole = views()[number]
    shown = drawn(view, UNBROKEN_WIDTH)
    assert not [words for words in whole if words not in shown]


@pytest.mark.parametrize("width", [80, 48])
@pytest.mark.parametrize("number", range(4))
def test_a_narrow_terminal_loses_nothing(number: int, width: int) -> None:
    """Words may go on in the line below, and a picture may be smaller, but no sign is left out."""
    view, whole = views()[number]
    shown = drawn(view, width)
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
    left = "".join(shown.split())
    for words in whole:
        for sign in set(words) - {" "}:
            assert left.count(sign) >= words.count(sign), (words, sign)


def test_a_command_without_a_terminal_breaks_no_sentence(
    poolhouse: Any, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS")
    answering({("DELETE", "/models/guide"): {"removed": "guide", "freed_bytes": 3 << 20}})
    assert poolhouse("rm", "guide", "--yes").out == (
        "guide was removed; its file stays where it is. This freed 3.0 MiB of cut layers.\n"
    )
