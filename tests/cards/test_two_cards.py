"""A node with two graphics cards: both are told, and a stage on them answers as on the processor."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.cards.card_nodes import Json, cards_of, device_environment, install_pack, load, until
from tests.cards.test_nodes import asked
from tests.node.pool import TestNode, node

pytestmark = [pytest.mark.cards, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def den(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestNode]:
    """One machine whose driver lists its device twice."""
    with device_environment("0,0"), node(tmp_path_factory.mktemp("cards"), "den") as den:
        yield den


def test_both_cards_are_told_and_a_stage_that_fits_one_is_on_one(den: TestNode) -> None:
    load(den, shape="one")
    expected = asked(den)
    install_pack(den)
    until(lambda: bool(den.control("GET", "/machine")["more_cards"]), "the second card is not used")
    machine: Json = den.control("GET", "/machine")
    first, (second,) = machine["card"], machine["more_cards"]
    assert first["label"] == second["label"]
    assert first["key"] != second["key"]
    assert machine["unused_cards"] == []
    load(den, shape="one")
    assert cards_of(den) == [first["label"]]
    assert asked(den)["token_ids"] == expected["token_ids"]


def test_what_one_card_has_no_room_for_is_on_the_next_and_otherwise_with_the_processor(den: TestNode) -> None:
    """The owner allows a tenth of each card, and many conversations at once need much memory."""
    machine: Json = den.control("GET", "/machine")
    label, second = machine["card"]["label"], machine["more_cards"][0]["key"]
    den.control("POST", "/cards", {"memory_percent": 10})
    expected, labels, overflows = asked(den)["token_ids"], [], []
    for off in ([], [second]):
        den.control("POST", "/cards", {"off": off})
        load(den, shape="one", users=64, context=1024)
        labels += cards_of(den)
        overflows.append("plan_overflow" in json.dumps(den.control("GET", "/status")["loaded"]))
        assert asked(den)["token_ids"] == expected
    assert labels == [f"{label} + {label}", f"{label} + CPU"]
    assert overflows == [False, True]
    until(lambda: len(compared_cards(den)) == 2, "the second card was not compared with the processor by itself")


def compared_cards(node: TestNode) -> set[str]:
    """Return the cards with saved verdicts on the Guide's family, each of which covers its output matrix."""
    verdicts = json.loads((node.root / "cards.json").read_text("utf-8"))["verdicts"]
    assert len({verdict["family"] for verdict in verdicts}) == 1
    return {verdict["fingerprint"] for verdict in verdicts if verdict["with_head"]}
