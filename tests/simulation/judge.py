"""What must come of every story, and of many together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from operator import add

from app.core.reasons import said
from tests.inference.pool import shape
from tests.simulation.truth import undisturbed
from tests.simulation.world import Story

GENTLE, MENDED = {"cut", "stand_still", "jump", "heat"}, {"reconnecting", "continued"}
# Of the answers that nobody stopped: of all, and of those that were not lost more often than is promised.
FINISHED_LEAST, KEPT_LEAST = 0.85, 0.95
LATE_LEAST = 0.85  # of those who ask when all others have ended; the trouble may not be over
# What is frozen is seen in 5 s by its own node. Here no heartbeat tells of a connection that is silent for a minute
# at most: a step's own deadline does, and what is placed anew waits for that connection as well.
DETECTED_S, RECOVERED_S = 20.0, 120.0
NO_HOST = {"remove_host", "only_lends"}  # its answers end, as nobody may compute them
BUGS = {"pipeline_closed", "pipeline_fault", "bug"}
STOOD_S = 30.0  # who sleeps detects nothing
# Two frames that vanish in a connection which lives, as TCP never has it: the longest deadline. Nor can a lender tell
# earlier that its worker stands still for ever, when nothing gets through.
VANISHED_S = 65.0


def check(story: Story) -> None:
    """The invariants of SAFETY.md 9 that a stream shows: I1 and I4. And a broken connection is mended, not replaced.
    (I2 and I3: at every step, in world.py.)"""
    deeds = {deed.split()[0] for deed in story.deeds}
    gentle = bool(deeds) and deeds <= GENTLE
    vanishes = "disturb" in deeds or {"partition", "freeze_long"} <= deeds
    detected_s = VANISHED_S if vanishes else DETECTED_S
    detected_s += STOOD_S * sum(deed.startswith("stand_still") for deed in story.deeds)
    for one in story.heard:
        right = undisturbed(one.asked, shape())
        assert one.ids == right[: len(one.ids)], f"{story}\nsays {one.ids}\nnot  {right}"
        if one.finish is not None:
            assert one.ids == right, str(story)
        elif not one.gives_up_at:
            assert one.error is not None, str(story)
            assert said(one.error), str(story)
            assert one.error.reason.code not in BUGS, f"it serves, and nobody: {story}"
        assert not gentle or all(notice.state in MENDED for notice in one.notices), str(story)
        for recovered in one.finish.figures.recoveries if one.finish else ():
            assert recovered.detected_after_s <= detected_s, str(story)
            assert recovered.recovered_after_s <= RECOVERED_S, str(story)


@dataclass(frozen=True, slots=True)
class Tally:
    """Answers that nobody stopped: asked under the trouble, and late ones, asked when it was quiet again."""

    asked: int = 0
    finished: int = 0
    too_often: int = 0  # lost more often than is promised
    late: int = 0
    late_finished: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*map(add, astuple(self), astuple(other)))

    @property
    def why(self) -> str:
        """Who did not get enough of them; nobody, if that is empty."""
        found = {
            "of those who asked": (self.finished, FINISHED_LEAST * self.asked),
            "of those not lost too often": (self.finished, KEPT_LEAST * (self.asked - self.too_often)),
            "of those who asked later": (self.late_finished, LATE_LEAST * self.late),
        }  # fmt: skip
        return ", ".join(
            f"{who} {got} were answered, less than {least:.0f}" for who, (got, least) in found.items() if got < least
        )


def tally(stories: Iterable[Story]) -> Tally:
    hosts = [story for story in stories if not NO_HOST & {deed.split()[0] for deed in story.deeds}]
    every = [one for story in hosts for one in story.heard if not one.gives_up_at]
    asked = [one for one in every if not one.is_late]
    late = [one.finish is not None for one in every if one.is_late]
    codes = [one.error.reason.code for one in asked if one.error is not None]
    finished = sum(one.finish is not None for one in asked)
    return Tally(len(asked), finished, codes.count("recovery_too_often"), len(late), sum(late))
