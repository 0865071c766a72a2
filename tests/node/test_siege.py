"""Attacks on a host that answers, few of each: `make faults` makes ten thousand."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.faults import security
from tests.faults.outcome import Outcome
from tests.faults.security import Stronghold

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform == "win32", reason="the attackers' low priority"),
    pytest.mark.timeout(240),
]


@pytest.fixture(scope="module")
def hold(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stronghold]:
    with security.stronghold(tmp_path_factory.mktemp("siege")) as made:
        yield made


async def test_attacks_do_an_answer_no_harm(hold: Stronghold, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is served, nothing ends or logs a bug, and the answers stay the same (S1, S2, S6)."""
    monkeypatch.setattr(security, "QUIET_SECONDS", 0.5)
    monkeypatch.setattr(security, "REST_SECONDS", 0.5)
    monkeypatch.setattr(security, "LONG", security.LONG | {"max_tokens": 40})
    await security.ready(hold)
    outcomes: list[Outcome] = []
    where = "host's peer port"
    port = (await security.ports(hold))[where]
    outcomes.append(await security.garbage(hold, where, port, 100))
    outcomes.append(await security.frames(hold, security.LENDER, 50))
    outcomes.append(await security.unpaired(hold, 26))
    assert [(outcome.name, outcome.why) for outcome in outcomes if not outcome.passed] == []
    assert all(outcome.facts["tokens"] > 0 for outcome in outcomes)
