"""Two nodes, one of which computes on a device: from the pack's installation to the loss of the device."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.cards import device
from tests.cards.card_nodes import SLOW_SECONDS, Json, card_of, cards_of, device_environment, install_pack, load, until
from tests.node.pool import TestNode, node, paired

pytestmark = [pytest.mark.cards, pytest.mark.timeout(900)]

QUESTION = ("ask", "How do I pair two computers?", "--temperature", "0", "--max-tokens", "24", "--json")
MID_ANSWER_SECONDS = 1.0
SPLIT = [1, 6, 1]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestNode, TestNode]]:
    """A host without a card, and a lender with one."""
    with device_environment(), paired(tmp_path_factory.mktemp("cards"), "den", "attic") as (den, attic):
        install_pack(attic)
        yield den, attic


def label(node: TestNode) -> str:
    card = card_of(node)
    assert card is not None
    return str(card["label"])


def lends(host: TestNode, lender: TestNode) -> bool:
    """Return whether the host knows that the lender lends memory now."""
    machine = host.control("GET", "/status")["machines"][lender.ready["id"]]
    return machine["state"] == "ready" and bool(machine["lent_bytes"])


def asked(host: TestNode) -> Json:
    done = host.run(*QUESTION, within_s=SLOW_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    answer: Json = json.loads(done.stdout)
    return answer


def test_the_card_is_told_everywhere(nodes: tuple[TestNode, TestNode]) -> None:
    den, attic = nodes
    card = card_of(attic)
    assert card is not None
    assert card["api"] == "Vulkan"
    until(lambda: card["label"] in json.dumps(den.control("GET", "/status")["machines"]), "the host does not know it")
    doctor = attic.run("doctor", within_s=120)
    assert f"{card['label']} is used through Vulkan" in " ".join(doctor.stdout.split())
    assert card_of(den) is None


def test_an_answer_over_the_card_is_that_of_the_processor(nodes: tuple[TestNode, TestNode]) -> None:
    den, attic = nodes
    load(den, shape="one")
    expected = asked(den)
    load(den, split=SPLIT)
    assert cards_of(den) == ["", label(attic), ""]
    answer = asked(den)
    assert [stage["machine"] for stage in answer["stages"]] == ["den", "attic", "den"]
    assert answer["recoveries"] == 0
    assert answer["token_ids"] == expected["token_ids"]


def test_a_card_that_its_owner_switches_off_in_the_middle_of_an_answer_gives_its_layers_back(
    nodes: tuple[TestNode, TestNode],
) -> None:
    """The answer continues in the same words. The lender then computes with its processor, if its owner lends that."""
    den, attic = nodes
    load(den, split=SPLIT)
    expected = asked(den)
    load(den, split=SPLIT)
    attic.control("POST", "/lending", {"drain_s": 0})
    try:
        with ThreadPoolExecutor(1) as apart:
            answer = apart.submit(asked, den)
            until(lambda: den.answers()["running"] == 1, "nothing is being answered")
            (card,) = attic.control("GET", "/cards")["cards"]
            attic.control("POST", "/cards", {"off": [card["key"]]})
            assert answer.result()["token_ids"] == expected["token_ids"]
            assert answer.result()["recoveries"] >= 1
        until(lambda: not attic.workers(), "the layers were not taken back")
        (card,) = attic.control("GET", "/cards")["cards"]
        assert (card["on"], card["computes"], card["reason_facts"]["code"]) == (False, False, "card_switched_off")
        until(lambda: lends(den, attic), "the processor is not lent")
        load(den, split=SPLIT)
        assert asked(den)["token_ids"] == expected["token_ids"]
        listed = attic.run("card", "list", within_s=60)
        assert "is not used. It is switched off." in " ".join(listed.stdout.split())
        only = attic.run("card", "only", "on", within_s=60)
        assert only.returncode == 0, only.stderr
        until(lambda: attic.control("GET", "/lending")["lending"]["code"] == "pause_no_card", "the processor is lent")
        until(lambda: not attic.workers(), "the processor still computes for others")
    finally:
        attic.control("POST", "/cards", {"off": [], "card_only": False})
        attic.control("POST", "/lending", {"drain_s": 30})
        until(lambda: card_of(attic) is not None, "the card is not used again")
        until(lambda: attic.control("GET", "/lending")["lending"]["state"] == "ready", "nothing is lent again")


def test_a_worker_killed_on_its_card_is_a_lost_stage_and_nothing_more(nodes: tuple[TestNode, TestNode]) -> None:
    """The answer continues in the same words. After the second loss, the machine goes on with its processor."""
    den, attic = nodes
    load(den, split=SPLIT)
    expected = asked(den)
    for _ in range(2):
        load(den, split=SPLIT)
        with ThreadPoolExecutor(1) as apart:
            answer = apart.submit(asked, den)
            until(lambda: bool(attic.workers()) and den.answers()["running"] == 1, "nothing is being answered")
            time.sleep(MID_ANSWER_SECONDS)
            for worker in attic.workers():
                with suppress(psutil.NoSuchProcess):
                    worker.kill()
            assert answer.result()["token_ids"] == expected["token_ids"]
    until(lambda: card_of(attic) is None, "the card is still used")
    unused = attic.control("GET", "/machine")["unused_cards"]
    assert [card["reason_facts"]["code"] for card in unused] == ["card_lost"]
    load(den, split=SPLIT)
    assert cards_of(den) == ["", "", ""]  # the processor computes, and the host knows it
    assert asked(den)["token_ids"] == expected["token_ids"]


def test_a_load_right_after_the_start_waits_until_the_card_has_been_tested(tmp_path: Path) -> None:
    shutil.copytree(device.kept_shaders(), tmp_path / "graphics")
    with device_environment():
        with node(tmp_path, "den") as den:
            install_pack(den)
        with node(tmp_path, "den") as den:
            done = den.run("load", "guide", "--shape", "one", within_s=SLOW_SECONDS)
            assert done.returncode == 0, done.stdout + done.stderr
            assert "Testing the graphics card" in done.stdout + done.stderr
            assert cards_of(den) == [label(den)]
