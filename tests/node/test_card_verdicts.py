"""Tests of the verdicts on graphics cards that a node remembers."""

from __future__ import annotations

from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from app.core.errors import Reason
from app.machine.hardware.cards import Card
from app.node.card_verdicts import MOST_REFUSED, MOST_VERDICTS, OLD_AFTER_SECONDS, CardVerdicts

LACKS = Reason("device_tensor", {"tensor": "blk.0.ssm_a"})
DAY = 24 * 3600.0


class Clock:
    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def card(tmp_path: Path) -> Card:
    library = tmp_path / "libggml-vulkan.so"
    library.write_bytes(b"library")
    return Card("Vulkan0", "A card (driver 1)", "Vulkan", library, tmp_path, "0000:01:00.0", False, 1 << 34, 1 << 33)


def test_a_refusal_is_forgotten_after_some_days_and_a_proof_is_not(tmp_path: Path, card: Card) -> None:
    file, clock = tmp_path / "cards.json", Clock()
    verdicts = CardVerdicts(file, clock)
    verdicts.keep(card, "falcon-h1", LACKS)
    verdicts.keep(card, "llama", None)
    verdicts.save()
    clock.now += OLD_AFTER_SECONDS - 1
    kept = CardVerdicts(file, clock).of(card)
    assert kept["falcon-h1"].why == LACKS
    assert kept["llama"].code == ""
    clock.now += 2
    assert set(verdicts.of(card)) == {"falcon-h1", "llama"}  # the running node does not change its mind
    assert set(CardVerdicts(file, clock).of(card)) == {"llama"}


def test_a_clock_that_was_set_back_forgets_a_refusal_too(tmp_path: Path, card: Card) -> None:
    file, clock = tmp_path / "cards.json", Clock()
    verdicts = CardVerdicts(file, clock)
    verdicts.keep(card, "falcon-h1", LACKS)
    verdicts.save()
    assert CardVerdicts(file, clock).of(card)
    clock.now -= OLD_AFTER_SECONDS + 1
    assert CardVerdicts(file, clock).of(card) == {}


@pytest.mark.parametrize(
    "change", [{"label": "A card (driver 2)"}, {"total_bytes": 1 << 35}, {"pci": "0000:02:00.0"}, {"api": "CUDA"}]
)
def test_another_card_or_driver_is_judged_afresh(tmp_path: Path, card: Card, change: dict[str, str | int]) -> None:
    verdicts = CardVerdicts(tmp_path / "cards.json")
    verdicts.keep(card, "falcon-h1", LACKS)
    assert verdicts.of(replace(card, free_bytes=1, name="Vulkan1"))
    assert verdicts.of(replace(card, **change)) == {}  # type: ignore[arg-type]


def test_another_engine_is_judged_afresh(tmp_path: Path, card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts = CardVerdicts(tmp_path / "cards.json")
    verdicts.keep(card, "falcon-h1", LACKS)
    monkeypatch.setattr(metadata, "version", lambda name: "9.9.9")
    assert verdicts.of(card) == {}


def test_the_file_stays_small_and_the_latest_verdicts_stay(tmp_path: Path, card: Card) -> None:
    file = tmp_path / "cards.json"
    verdicts = CardVerdicts(file)
    for number in range(MOST_VERDICTS + 10):
        verdicts.keep(card, f"family {number}", LACKS if number % 2 else None)
    verdicts.save()
    kept = CardVerdicts(file).of(card)
    assert len(kept) <= MOST_VERDICTS
    assert sum(bool(verdict.code) for verdict in kept.values()) == MOST_REFUSED
    assert f"family {MOST_VERDICTS + 9}" in kept
    assert file.stat().st_size < 1 << 17


def test_a_damaged_file_and_an_unwritable_one_cost_only_the_verdicts(tmp_path: Path, card: Card) -> None:
    file = tmp_path / "cards.json"
    file.write_text("{")
    assert CardVerdicts(file).of(card) == {}
    verdicts = CardVerdicts(tmp_path / "none" / "cards.json")
    (tmp_path / "none").write_text("a file where a folder is needed")
    verdicts.keep(card, "falcon-h1", LACKS)
    verdicts.save()
    assert set(verdicts.of(card)) == {"falcon-h1"}


def test_refusals_with_one_code_are_dropped_and_all_others_stay(tmp_path: Path, card: Card) -> None:
    verdicts, other = CardVerdicts(tmp_path / "cards.json"), replace(card, pci="0000:02:00.0")
    verdicts.keep(card, "falcon-h1", LACKS)
    for each in (card, other):
        verdicts.keep(each, "llama", Reason("device_crashed"))
    verdicts.keep(card, "gemma3", None, with_head=True)
    assert verdicts.forget(card, "device_crashed")
    assert not verdicts.forget(card, "device_crashed")
    verdicts.save()
    kept = CardVerdicts(tmp_path / "cards.json")
    assert {family: verdict.with_head for family, verdict in kept.of(card).items()} == {
        "falcon-h1": False,
        "gemma3": True,
    }
    assert set(kept.of(other)) == {"llama"}
