"""The required outcome of every story, and of many together."""

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
    for item in story.heard:
        right = undisturbed(item.asked, shape())
        assert item.ids == right[: len(item.ids)], f"{story}\nsays {item.ids}\nnot  {right}"
        if item.finish is not None:
            assert item.ids == right, str(story)
        elif not item.gives_up_at:
            assert item.error is not None, str(story)
            assert said(item.error), str(story)
            assert item.error.reason.code not in BUGS, f"it serves, and nobody: {story}"
        assert not gentle or all(notice.state in MENDED for notice in item.notices), str(story)
        for recovered in item.finish.figures.recoveries if item.finish else ():
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
        """Return the machines that did not get enough of them, or ""."""
        result = {
            "of those who asked": (self.finished, FINISHED_LEAST * self.asked),
            "of those not lost too often": (self.finished, KEPT_LEAST * (self.asked - self.too_often)),
            "of those who asked later": (self.late_finished, LATE_LEAST * self.late),
        }  # fmt: skip
        return ", ".join(
            f"{name} {got} were answered, less than {least:.0f}" for name, (got, least) in result.items() if got < least
        )


def tally(stories: Iterable[Story]) -> Tally:
    hosts = [story for story in stories if not NO_HOST & {deed.split()[0] for deed in story.deeds}]
    every = [item for story in hosts for item in story.heard if not item.gives_up_at]
    requests = [item for item in every if not item.is_late]
    late = [item.finish is not None for item in every if item.is_late]
    codes = [item.error.reason.code for item in requests if item.error is not None]
    finished = sum(item.finish is not None for item in requests)
    return Tally(len(requests), finished, codes.count("recovery_too_often"), len(late), sum(late))
