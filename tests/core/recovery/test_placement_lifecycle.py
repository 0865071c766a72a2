"""The life of a placement: which state each event leads to, and which reason of a loss counts."""

from __future__ import annotations

import pytest

from app.core.errors import Reason
from app.core.recovery.placement_lifecycle import (
    BLAME_SECONDS,
    CauseFound,
    Closed,
    Ended,
    Event,
    Loading,
    Lost,
    NoticeReceived,
    Opened,
    PipelinesLost,
    Ready,
    Recovering,
    State,
    step,
)
from app.core.recovery.recovery import Notice, reconnecting_notice

SEEN, TRUE = Reason("stage_lost"), Reason("machine_removed")
NOTICE: Notice = reconnecting_notice("attic")


@pytest.mark.parametrize(
    ("state", "event", "then"),
    [
        (Loading(), Opened(), Ready()),
        (Ready(), NoticeReceived(NOTICE), Recovering(NOTICE)),
        (Recovering(NOTICE), NoticeReceived(None), Ready()),
        (Ready(), PipelinesLost(SEEN), Lost(SEEN)),
        (Recovering(NOTICE), PipelinesLost(SEEN), Lost(SEEN)),
        (Lost(SEEN), Closed(9.0), Ended(9.0, SEEN)),
        (Loading(), Closed(9.0), Ended(9.0)),
        (Ready(), Closed(9.0), Ended(9.0)),
    ],
)
def test_each_event_leads_on(state: State, event: Event, then: State) -> None:
    assert step(state, event) == then


@pytest.mark.parametrize(
    ("state", "event"),
    [
        (Loading(), NoticeReceived(NOTICE)),
        (Loading(), PipelinesLost(SEEN)),
        (Ready(), Opened()),
        (Lost(SEEN), NoticeReceived(None)),
        (Lost(SEEN), Opened()),
        (Ended(1.0), Closed(2.0)),
        (Ended(1.0), CauseFound(TRUE, 1.0)),  # it was stopped: nothing was lost
    ],
)
def test_what_means_nothing_to_a_state_leaves_it_as_it_is(state: State, event: Event) -> None:
    assert step(state, event) == state


@pytest.mark.parametrize("begins", [Ready(), Recovering(NOTICE)])
def test_the_true_cause_counts_also_where_it_is_known_before_the_end(begins: State) -> None:
    """Told news meanwhile does not make it forgotten."""
    known = step(begins, CauseFound(TRUE, 0.0))
    assert step(step(known, NoticeReceived(None)), PipelinesLost(SEEN)) == Lost(TRUE)


def test_the_true_cause_counts_for_a_while_after_the_end() -> None:
    assert step(Lost(SEEN), CauseFound(TRUE, 0.0)) == Lost(TRUE)
    over = Ended(10.0, SEEN)
    assert step(over, CauseFound(TRUE, 10.0 + BLAME_SECONDS / 2)) == Ended(10.0, TRUE)
    assert step(over, CauseFound(TRUE, 10.0 + BLAME_SECONDS)) == over
