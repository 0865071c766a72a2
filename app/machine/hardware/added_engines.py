"""The engines that are installed apart from Poolhouse, PyTorch and MLX: their test, and what their stages take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Protocol

import msgspec

from app.core.errors import Reason
from app.core.reasons import os_cause
from app.decoding import decode
from app.machine import paths
from app.machine.hardware.engines import last_words, run_child
from app.machine.installation import guide_file
from app.machine.settings import EngineSettings
from backends.contract import APPLE, CPU_VARIANT, EXACT, PYTORCH, KnownAnswer, StageConfig

LABELS = {PYTORCH: "PyTorch", APPLE: "MLX"}
TRIAL_SECONDS = 300.0
LIBRARY_BYTES = 512 << 20  # the most that importing PyTorch takes; MLX takes less
FLOAT_BYTES = 4  # of a weight on the processor, where these engines unpack all weights


class WeightTensor(Protocol):
    """A tensor of a model file."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def n_bytes(self) -> int: ...


class _Trial(msgspec.Struct, frozen=True):
    """The output of a trial (backends/engine_trial.py)."""

    version: str
    answer: KnownAnswer
    device: str = ""
    device_name: str = ""
    architectures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UsableEngine:
    """An engine that gave the known answer."""

    name: str
    folder: str  # that it is imported from
    version: str
    device: str  # as in StageConfig.device
    device_name: str
    architectures: frozenset[str]
    code_cache: Path | None = None  # the folder in which the driver of its device keeps compiled code

    @property
    def label(self) -> str:
        """The engine and its device, for people."""
        engine = f"{LABELS[self.name]} {self.version.partition('+')[0]}"
        return f"{engine}, {self.device_name}" if self.device_name else engine

    def config(self, config: StageConfig, *, compared: bool = False) -> StageConfig:
        """Return the configuration of a stage that this engine computes instead of llama.cpp.

        compared: whether to compare the stage's layers with llama.cpp first.
        """
        return replace(config, engine=self.name, library=self.folder, device=self.device, compared=compared)

    def more_bytes(self, tensors: Mapping[str, WeightTensor]) -> int:
        """Return how much more memory a stage with these tensors takes than with llama.cpp."""
        if self.device:
            return LIBRARY_BYTES
        packed = sum(tensor.n_bytes for tensor in tensors.values())
        n_weights = sum(prod(tensor.shape) for tensor in tensors.values())
        return LIBRARY_BYTES + max(0, FLOAT_BYTES * n_weights - packed)


async def try_engine(chosen: EngineSettings, code_cache: Path | None = None) -> UsableEngine | Reason:
    """Test an engine in a process of its own. Return it, or why it cannot be used.

    code_cache: the folder in which graphics drivers keep compiled code.
    """
    command = paths.python_command("-m", "backends", "try", chosen.name, chosen.folder, str(guide_file()))
    try:
        code, out, err = await run_child(command, TRIAL_SECONDS, {CPU_VARIANT: EXACT})
    except TimeoutError:
        return Reason("no_answer_within", {"seconds": round(TRIAL_SECONDS)})
    except OSError as error:
        return Reason("engine_words", {"words": os_cause(error)})
    if code:
        return Reason("engine_test_failed", {"why": last_words(err)})
    try:
        trial = decode(out, _Trial)
    except (msgspec.DecodeError, UnicodeError):
        return Reason("answer_not_understood")
    if trial.answer.failure:
        return Reason("engine_wrong", {"percent": round(100 * trial.answer.apart, 1)})
    return UsableEngine(
        chosen.name,
        chosen.folder,
        trial.version[:50],
        trial.device,
        trial.device_name[:100],
        frozenset(trial.architectures),
        code_cache if trial.device else None,
    )
