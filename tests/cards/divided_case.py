"""One family in stages that are divided among devices and the processor: `python -m tests.cards.divided_case NAME`.

The whole model on the processor chooses the tokens. Each division computes the same steps, with the whole model in one
stage and with the model cut into two or three.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import ClassVar

from app.core.model import Model
from backends.contract import CardSplit, StageConfig
from backends.llamacpp import stage
from tests.cards.device import VULKAN0, VULKAN1
from tests.cards.family_case import Said, Trial, error
from tests.families import proof
from tests.families.fixtures import families


@dataclass(frozen=True, slots=True)
class Divided:
    """One division of all stages. Errors are relative to the largest logit."""

    division: str
    cuts: tuple[int, ...]
    devices: tuple[tuple[str, ...], ...]  # by stage and layer
    device_bytes: int  # over all stages and devices
    processor_bytes: int  # of weights, states and buffers in main memory, over all stages
    device_error: float  # against the whole model on one device
    processor_error: float
    tokens: int  # likeliest tokens that are the processor's
    compared: int


def cuts_of(model: Model) -> proof.Cuts:
    """Return a cut into three stages or, if the model is too short for that, into two."""
    return (proof.threes(model) or proof.twos(model))[0]


def on_two(config: StageConfig) -> StageConfig:
    """Divide a stage between two devices."""
    second = len(config.layers) // 2
    return replace(config, more_devices=(VULKAN1,), device_layers=(len(config.layers) - second, second))


def tensors(config: StageConfig) -> StageConfig:
    """Let two devices share every matrix of a stage."""
    return replace(config, more_devices=(VULKAN1,), split=CardSplit.TENSORS)


def half(config: StageConfig) -> StageConfig:
    """Leave the first half of the layers to the processor, but never all of them."""
    return replace(config, device_layers=(len(config.layers) - len(config.layers) // 2,))


def experts(config: StageConfig) -> StageConfig:
    """Leave the experts of all layers to the processor."""
    return replace(config, processor_experts=len(config.layers))


def all_ways(config: StageConfig) -> StageConfig:
    """Divide a stage between the processor and two devices, of which the first computes without its experts."""
    n_layers = len(config.layers)
    if n_layers < 3:
        return half(config)
    second = (n_layers - 1) // 2
    first = n_layers - 1 - second
    return replace(config, more_devices=(VULKAN1,), device_layers=(first, second), processor_experts=1 + first)


DIVISIONS = {made.__name__: made for made in (on_two, tensors, half, experts, all_ways)}


class Recorded(stage.LlamaStage):
    """A stage that tells where its layers are."""

    opened: ClassVar[list[Recorded]] = []

    def __init__(self, config: StageConfig) -> None:
        super().__init__(config)
        self.opened.append(self)


def divided(trial: Trial, name: str, cuts: proof.Cuts, whole: Said) -> Divided:
    """Compute all steps in stages that are divided in this way."""
    Recorded.opened.clear()
    said = trial.scores(cuts, [VULKAN0] * (len(cuts) + 1), divided=DIVISIONS[name])
    return Divided(
        division=name,
        cuts=cuts,
        devices=tuple(each.layer_devices for each in Recorded.opened),
        device_bytes=sum(each.device_bytes for each in Recorded.opened),
        processor_bytes=sum(each.buffers.get("CPU", 0) for each in Recorded.opened),
        device_error=error(said, whole),
        processor_error=error(said, trial.expected),
        tokens=trial.equal(said),
        compared=len(trial.expected),
    )


def main(arguments: list[str]) -> int:
    """Print what was computed, as a JSON list. Arguments: a family, and the divisions."""
    stage.LlamaStage = Recorded  # type: ignore[misc]
    family, *names = arguments
    with tempfile.TemporaryDirectory() as folder:
        home = proof.home(Path(folder))
        trial = Trial(home, home.shelf.import_file(families()[family].path))
        whole = trial.scores((), [VULKAN0])
        all_cuts = [(), cuts_of(trial.entry.model)]
        results = [divided(trial, name, cuts, whole) for name in names for cuts in all_cuts]
    print(json.dumps({"results": [asdict(result) for result in results]}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
