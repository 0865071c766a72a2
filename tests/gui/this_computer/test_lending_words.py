"""Tests of the owner's view of lending. The bar's shares add up."""

from __future__ import annotations

import time
from typing import Any

import pytest

from app.api.computer import Computer
from app.api.models import Speeds
from app.api.snapshot import Lending
from app.core.errors import Reason
from app.core.planner.speed_estimates import Speed
from app.decoding import convert
from app.gui.look.sentences import said
from app.gui.this_computer import lending_store
from app.gui.this_computer.hardware_card import hardware_lines, speed_words
from app.gui.this_computer.memory_card import memory_use

Json = dict[str, Any]
GIB = 1 << 30
BATTERY_REASON = Reason("pause_battery_at", {"percent": 40})
QUIT = {"code": "pause_quit", "facts": {}}
BATTERY = {"code": BATTERY_REASON.code, "facts": BATTERY_REASON.facts}


@pytest.mark.parametrize(
    ("lending", "sentence"),
    [
        ({"state": "ready", "lent_bytes": 4 * GIB}, "Ready. Others can use 4.0 GiB."),
        ({"state": "working", "used_bytes": GIB, "used_by": ["den"]}, "Lending 1.0 GiB to den."),
        ({"state": "off", "code": "lend_off"}, "Lending is turned off on this machine."),
        ({"state": "draining", "gives_back_in_s": 30, "code": "pause_owner"},
         "Pausing after the current answer (in at most 30 s)."),
        ({"state": "draining", "gives_back_in_s": 90, "code": "pause_battery", "reason_facts": BATTERY},
         "Pausing after the current answer (in at most 1 min 30 s). " + said(BATTERY_REASON)),
        ({"state": "paused", "code": "pause_owner"}, "Lending is paused until you resume it."),
        ({"state": "paused", "code": "pause_stopped"}, "Lending is stopped until you resume it."),
        ({"state": "paused", "code": "pause_battery", "reason_facts": BATTERY},
         said(BATTERY_REASON)),
        ({"state": "paused", "code": "pause_quit", "reason_facts": QUIT},
         "Not lending any memory now."),
        ({"state": "draining", "gives_back_in_s": 4, "code": "pause_quit", "reason_facts": QUIT},
         "Pausing after the current answer (in at most 4 s)."),
    ],
)  # fmt: skip
def test_the_state_in_a_sentence(lending: Json, sentence: str) -> None:
    assert lending_store.state_sentence(convert(lending, Lending)) == sentence


def test_a_pause_says_until_when() -> None:
    lending = {"state": "paused", "code": "pause_owner", "resumes_in_s": 3600}
    assert lending_store.state_sentence(convert(lending, Lending)).startswith("Paused until ")


def test_what_a_machine_that_is_gone_holds_here_is_kept_and_not_lent() -> None:
    lending = {"state": "lending", "used_bytes": 64 << 20, "used_by": ["attic"]}
    kept = "64 MiB is reserved for attic for 10 minutes."
    assert lending_store.state_sentence(convert(lending, Lending), ["attic", "loft"]) == kept
    assert lending_store.state_sentence(convert(lending, Lending), ["loft"]) == "Lending 64 MiB to attic."
    both = lending | {"used_by": ["attic", "den"]}
    assert lending_store.state_sentence(convert(both, Lending), ["attic"]) == "Lending 64 MiB to attic, den."
    assert lending_store.since_text(Lending(since=int(time.time()))).startswith("Since ")
    assert lending_store.since_text(Lending()) == ""


@pytest.mark.parametrize(
    "lending",
    [
        {"total_bytes": 16, "free_bytes": 8, "lent_bytes": 4, "used_bytes": 0, "reserve_bytes": 1},
        {"total_bytes": 16, "free_bytes": 8, "lent_bytes": 6, "used_bytes": 5, "own_bytes": 2},
        {"total_bytes": 16, "free_bytes": 1, "lent_bytes": 0, "used_bytes": 3, "reserve_bytes": 4},
        {"total_bytes": 16, "free_bytes": 15, "lent_bytes": 9, "used_bytes": 9, "own_bytes": 3},
        {},
    ],
)
def test_the_bar_is_the_whole_memory(lending: Json) -> None:
    memory = memory_use(convert(lending, Lending))
    parts = (memory.programs, memory.own, memory.used, memory.unused, memory.reserve, memory.free)
    assert min(parts) >= 0
    assert sum(parts) == lending.get("total_bytes", 0)


MACHINE: Json = {
    "system": "Debian", "processor": "Xeon", "cores": 4, "threads": 2,
    "memory": {"total_bytes": 8 * GIB, "free_bytes": 4 * GIB},
    "disk": {"folder": "/m", "total_bytes": 100 * GIB, "free_bytes": 50 * GIB},
    "engines": [
        {"name": "llamacpp", "version": "0.3", "features": ["AVX2"], "devices": [
            {"name": "CPU", "kind": "cpu"},
            {"description": "RTX 4090", "kind": "gpu", "api": "CUDA", "total_bytes": 24 * GIB}]},
        {"name": "apple", "missing_facts": {"code": "engine_words", "facts": {"words": "no such module"}}},
    ],
}  # fmt: skip


def test_what_the_machine_has() -> None:
    entries = dict(hardware_lines(convert(MACHINE, Computer)))
    assert entries["Processor"] == "Xeon, 4 core(s), 2 used for models"
    assert "Temperature" not in entries  # this system does not tell
    assert dict(hardware_lines(convert({**MACHINE, "hottest_c": 61.4}, Computer)))["Temperature"] == "61 °C"
    assert entries["Memory"] == "4.0 GiB free of 8.0 GiB"
    assert entries["Graphics"] == "No card in use; models run on the processor"
    assert entries["Engine"] == "llama.cpp 0.3 (AVX2)\nMLX cannot be used: no such module."
    without = dict(hardware_lines(convert({**MACHINE, "engines": []}, Computer)))
    assert "Engine" not in without


def test_the_card_that_computes_comes_before_those_that_do_not() -> None:
    small = {"label": "Radeon 680M", "reason_facts": {"code": "card_other_used", "facts": {}}}
    card = {"label": "RTX 4090", "api": "CUDA", "total_bytes": 24 << 30}
    entries = dict(hardware_lines(convert({**MACHINE, "card": card, "unused_cards": [small]}, Computer)))
    assert entries["Graphics"] == (
        "RTX 4090 (24.0 GiB, CUDA) runs the models\n"
        "Radeon 680M: Another graphics card in this computer is used instead."
    )


def test_a_family_that_the_card_does_not_compute_is_told() -> None:
    why = {"code": "device_apart", "facts": {"percent": "61.2"}}
    facts = {"device": "RTX 3060", "family": "falcon-h1 Q4_K_M", "why": why}
    refused = {"family": "falcon-h1 Q4_K_M", "reason_facts": {"code": "card_family", "facts": facts}}
    card = {"label": "RTX 3060", "api": "Vulkan", "total_bytes": 12 << 30}
    entries = dict(hardware_lines(convert({**MACHINE, "card": card, "refused_families": [refused]}, Computer)))
    assert entries["Graphics"] == (
        "RTX 3060 (12.0 GiB, Vulkan) runs the models\nRTX 3060 cannot run falcon-h1 Q4_K_M models: its results "
        "are off by 61.2%. The processor runs them here."
    )


def test_a_card_that_is_not_used_is_told_with_what_helps() -> None:
    unused = {
        "reason_facts": {"code": "graphics_unused", "facts": {"cards": "RTX 4090", "pack": "CUDA 13"}},
        "cure_facts": {"code": "cure_graphics_unused", "facts": {}},
    }
    reasons = (Reason("graphics_unused", {"cards": "RTX 4090", "pack": "CUDA 13"}), Reason("cure_graphics_unused"))
    words = " ".join(map(said, reasons))
    entries = dict(hardware_lines(convert({**MACHINE, "engines": [], "unused_graphics": unused}, Computer)))
    assert entries["Graphics"] == words  # no engine sees it


def test_speed_is_made_of_measured_layers_only() -> None:
    speed = Speed(
        layer_s=0.004,
        layer_row_s=0,
        position_s=0,
        chunk_s=0.1,
        chunk_position_s=0,
        step_s=0.01,
        head_s=0.01,
        head_row_s=0,
    )
    speeds = Speeds("guide", n_layers=20, batch_rows=402, speeds={"a": speed})
    assert speed_words(speeds, "a") == (
        "This machine computes a layer of Guide in 4.0 ms. Alone, it would write at about 10.0 tok/s and read prompts "
        "at about 200 tok/s."
    )
    assert speed_words(speeds, "b") is None
    assert speed_words(Speeds("guide", speeds={"a": None}), "a") is None
