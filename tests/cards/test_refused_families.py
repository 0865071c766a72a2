"""A family that the device lacks an operation for: the processor computes it, and the device all others."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from tests.cards.card_nodes import SLOW_SECONDS, Json, card_of, device_environment, install_pack, load, until, uses_card
from tests.families.fixtures import families
from tests.node.pool import TestNode, paired

pytestmark = [pytest.mark.cards, pytest.mark.timeout(900)]

LACKING, FAMILY = "falcon-h1", "falcon-h1 F16"
OTHER, OTHER_FAMILY = "granite-hybrid", "granitehybrid F16"
ASKED = ("--temperature", "0", "--max-tokens", "12", "--json")


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestNode, TestNode]]:
    """A host without a card, and a lender with one. Both have two tiny models that the card cannot compute."""
    with device_environment(), paired(tmp_path_factory.mktemp("refused"), "den", "attic") as (den, attic):
        for node in (den, attic):
            for name in (LACKING, OTHER):
                done = node.run("import", str(families()[name].path), "--name", name, within_s=120)
                assert done.returncode == 0, done.stdout + done.stderr
        install_pack(attic)
        yield den, attic


def asked(host: TestNode, model: str) -> Json:
    done = host.run("ask", "What is a pool?", "--model", model, *ASKED, within_s=SLOW_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    answer: Json = json.loads(done.stdout)
    return answer


def refused_families(node: TestNode) -> list[str]:
    return [refused["family"] for refused in node.control("GET", "/machine")["refused_families"]]


def test_a_lender_computes_the_family_on_its_processor_within_the_same_load(nodes: tuple[TestNode, TestNode]) -> None:
    den, attic = nodes
    load(den, model=LACKING, shape="one")
    expected = asked(den, LACKING)["token_ids"]
    before = time.monotonic()
    load(den, model=LACKING, split=[1, 2, 1])
    print(f"loaded in {time.monotonic() - before:.1f} s")
    answer = asked(den, LACKING)
    assert [stage["machine"] for stage in answer["stages"]] == ["den", "attic", "den"]
    assert answer["token_ids"] == expected
    assert not any(map(uses_card, attic.workers()))
    assert refused_families(attic) == [FAMILY]
    assert card_of(attic) is not None
    until(lambda: "plan_on_processor" in json.dumps(den.control("GET", "/status")["loaded"]["why"]), "nothing is told")
    doctor = attic.run("doctor", within_s=120)
    assert f"cannot run {FAMILY} models: it lacks an operation" in " ".join(doctor.stdout.split())


def test_the_own_worker_does_the_same_and_the_card_computes_the_guide(nodes: tuple[TestNode, TestNode]) -> None:
    _, attic = nodes
    for attempt in range(3):  # more often than a card may fail
        load(attic, model=OTHER, shape="one")
        assert asked(attic, OTHER)["token_ids"]
        assert any(map(uses_card, attic.workers())) == (attempt == 0)  # the first worker tried it
    assert OTHER_FAMILY in refused_families(attic)
    notes = json.dumps(attic.control("GET", "/journal?after=0"))
    assert "log_node_card_family" in notes
    assert card_of(attic) is not None
    load(attic, model="guide", shape="one")
    assert asked(attic, "guide")["token_ids"]
    assert any(map(uses_card, attic.workers()))
    assert attic.control("GET", "/machine")["unused_cards"] == []
