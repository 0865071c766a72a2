"""One family on the device, in a process of its own: `python -m tests.cards.family_case NAME`.

The whole model on the processor generates two answers at once. All others compute the same steps with the same tokens:
the whole model on the device, its cuts there, and pipelines of which one stage is on the device.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from app.catalog.shelf import Entry
from backends.contract import Segment, StageConfig
from tests.cards.device import ROWS, VULKAN0, VULKAN1, on_device
from tests.families import proof
from tests.families.fixtures import families
from tests.families.home import Home
from tests.families.line import Line, Scores

PROMPTS = (44, 27)  # tokens of each slot's prompt: longer than any sliding window of these models
N_DECODED = 12
LATE = 12  # of the second prompt's tokens enter while the first answer is being generated
MOST_TWOS = 8  # cuts into two that are compared
N_THREES = 1
CPU = ""

Said = dict[tuple[int, int], Scores]  # scores by slot and end position


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings about a family. Errors are relative to the largest logit."""

    family: str
    architecture: str
    cuts: int
    cut_error: float  # cuts on the device against the whole there
    whole_error: float  # the whole on the device against the processor
    whole_rms: float  # root mean square of that difference by the standard deviation of the logits
    whole_tokens: int  # likeliest tokens that are the processor's
    mixed_error: float  # pipelines over both against the processor
    mixed_tokens: int
    mixed_compared: int
    tokens: int  # compared
    gap: float  # the processor's smallest lead of a token over the next, of those that differ; 0: none differs
    seconds: float


def schedule() -> Iterator[tuple[Segment, ...]]:
    """Yield steps of at most ROWS rows: prompts in chunks, one beside the other's answer, then both answers."""
    first, second = PROMPTS
    early = second - LATE
    for slot, count in enumerate((first, early)):
        for pos in range(0, count, ROWS):
            yield (Segment(slot, min(ROWS, count - pos), pos),)
    ends = [first, early]
    while ends[1] < second:
        n_rows = min(ROWS - 1, second - ends[1])
        yield (Segment(0, 1, ends[0]), Segment(1, n_rows, ends[1]))
        ends = [ends[0] + 1, ends[1] + n_rows]
    while ends[1] < second + N_DECODED:
        yield (Segment(0, 1, ends[0]), Segment(1, 1, ends[1]))
        ends = [end + 1 for end in ends]


class Trial:
    """The steps of one family with the tokens that the processor has chosen."""

    def __init__(self, home: Home, entry: Entry) -> None:
        self.home, self.entry = home, entry
        vocabulary = entry.model.n_vocab
        chance = np.random.default_rng(vocabulary)
        self._ids = [[int(n) for n in chance.integers(0, vocabulary, count)] for count in PROMPTS]
        self.expected = self.scores((), [CPU], choose=True)

    def scores(
        self,
        cuts: proof.Cuts,
        devices: Sequence[str],
        *,
        apart: bool = False,
        choose: bool = False,
        divided: Callable[[StageConfig], StageConfig] = lambda config: config,
    ) -> Said:
        """Compute all steps in stages on these devices.

        choose: continue the answers with the likeliest tokens. divided: divides the layers of each stage.
        """
        runs = proof.runs(self.entry.model.n_layers, cuts)
        configs = [
            divided(on_device(self.home.config(self.entry, *run, apart=apart), device))
            for run, device in zip(runs, devices, strict=True)
        ]
        said: Said = {}
        with Line(configs) as line:
            for slot, count in enumerate(PROMPTS):
                line.begin(slot, count)
            for segments in schedule():
                ids = [item for each in segments for item in self._ids[each.slot][each.pos : each.end]]
                for slot, row in line.step(segments, ids).items():
                    (end,) = (each.end for each in segments if each.slot == slot)
                    said[slot, end] = row.copy()
                    if choose:
                        self._ids[slot].append(int(row.argmax()))
        return said

    def equal(self, said: Said) -> int:
        """Return how many likeliest tokens are those of the processor."""
        return sum(int(said[key].argmax()) == int(row.argmax()) for key, row in self.expected.items())

    def smallest_gap(self, said: Said) -> float:
        """Return the smallest lead of the processor's token over the one that `said` prefers, or 0 if all are equal."""
        leads = [float(row.max() - row[said[key].argmax()]) for key, row in self.expected.items()]
        return min((lead for lead in leads if lead > 0), default=0.0)


def error(said: Said, expected: Said) -> float:
    """Return the largest difference relative to the largest logit; infinite if a score is not a number."""
    assert said.keys() == expected.keys()
    most = max(float(np.abs(row).max()) for row in expected.values())
    worst = max(float(np.nan_to_num(np.abs(said[key] - row), nan=np.inf).max()) for key, row in expected.items())
    return worst / most


def rms(said: Said, expected: Said) -> float:
    """Return the root mean square of the difference by the standard deviation of the logits."""
    difference = np.concatenate([said[key] - row for key, row in expected.items()])
    return float(np.sqrt(np.mean(difference**2)) / np.concatenate(list(expected.values())).std())


def spread(cuts: Sequence[proof.Cuts], most: int) -> list[proof.Cuts]:
    """Return at most so many of the cuts, evenly spread."""
    if len(cuts) <= most:
        return list(cuts)
    return [cuts[round(at)] for at in np.linspace(0, len(cuts) - 1, most)]


def compare(name: str, folder: Path, *, few: bool = False, second: str = VULKAN0) -> Findings:
    """Compute a family on the processor, on the device and over both.

    few: only one cut of each kind. second: the device of the second stage of a cut.
    """
    began = time.monotonic()
    home = proof.home(folder)
    entry = home.shelf.import_file(families()[name].path)
    trial = Trial(home, entry)
    whole = trial.scores((), [VULKAN0])
    twos = spread(proof.twos(entry.model), 1 if few else MOST_TWOS)
    threes = proof.threes(entry.model)[: 1 if few else N_THREES]
    cut_errors = [error(trial.scores(cut, [VULKAN0, second]), whole) for cut in twos]
    if threes:
        apart = trial.scores((), [VULKAN0], apart=True)
        cut_errors += [error(trial.scores(cut, [VULKAN0, second, VULKAN0], apart=True), apart) for cut in threes]
    mixed = []
    if twos:
        middle = twos[len(twos) // 2]
        mixed = [trial.scores(middle, devices) for devices in ([VULKAN0, CPU], [CPU, VULKAN0])]
    return Findings(
        family=name,
        architecture=entry.model.architecture,
        cuts=len(cut_errors),
        cut_error=max(cut_errors, default=0.0),
        whole_error=error(whole, trial.expected),
        whole_rms=rms(whole, trial.expected),
        whole_tokens=trial.equal(whole),
        mixed_error=max((error(said, trial.expected) for said in mixed), default=0.0),
        mixed_tokens=sum(trial.equal(said) for said in mixed),
        mixed_compared=len(mixed) * len(trial.expected),
        tokens=len(trial.expected),
        gap=max(trial.smallest_gap(said) for said in (whole, *mixed)),
        seconds=round(time.monotonic() - began, 1),
    )


def main(arguments: list[str]) -> int:
    """Print the findings about one family as JSON.

    `--few` compares only one cut of each kind, and `--two-devices` computes every second stage on another device.
    """
    name, *options = arguments
    two = "--two-devices" in options
    with tempfile.TemporaryDirectory() as folder:
        findings = compare(name, Path(folder), few=two or "--few" in options, second=VULKAN1 if two else VULKAN0)
    print(json.dumps(asdict(findings)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
