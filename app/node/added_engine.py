"""The engine that is installed apart from Poolhouse and that the owner prefers: PyTorch or MLX.

It computes stages here only after it has given the known answer of the Guide. What it cannot compute, llama.cpp does.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import msgspec

from app.api.engine_packs import AddedEngine as State
from app.catalog.gguf.gguf_file import Tensor
from app.core.errors import AppError, Reason
from app.core.reasons import os_cause, said, sentence
from app.decoding import decode
from app.machine import paths
from app.machine.hardware.cards import is_crash, refusal_of
from app.machine.hardware.engines import last_words, run_child
from app.machine.installation import guide_file
from app.machine.settings import EngineSettings
from backends.contract import APPLE, CPU_VARIANT, EXACT, PYTORCH, KnownAnswer, StageConfig

log = logging.getLogger(__name__)

LABELS = {PYTORCH: "PyTorch", APPLE: "MLX"}
TRIAL_SECONDS = 300.0
LIBRARY_BYTES = 512 << 20  # that importing PyTorch takes at most; MLX takes less
FLOAT_BYTES = 4  # of a weight on the processor, where these engines unpack all weights
CRASHES, WITHIN_SECONDS = 2, 600.0  # an engine that crashed this often in this time is no longer used


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
    folder: str
    version: str
    device: str
    device_name: str
    architectures: frozenset[str]

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

    def more_bytes(self, tensors: Mapping[str, Tensor]) -> int:
        """Return how much more memory a stage with these tensors takes than with llama.cpp."""
        if self.device:
            return LIBRARY_BYTES
        packed = sum(tensor.n_bytes for tensor in tensors.values())
        n_weights = sum(_product(tensor.shape) for tensor in tensors.values())
        return LIBRARY_BYTES + max(0, FLOAT_BYTES * n_weights - packed)


class AddedEngine:
    """Tests the engine that the owner prefers, and tests it again when the choice changes.

    settings: returns the owner's current choice.
    changed: called whenever what is computed here may change.
    note: adds an event to the journal.
    """

    def __init__(
        self,
        settings: Callable[[], EngineSettings],
        changed: Callable[[], None] = lambda: None,
        note: Callable[[Reason], None] = lambda _: None,
    ) -> None:
        self._settings, self._changed, self._note = settings, changed, note
        self._news = asyncio.Event()
        self._settled = asyncio.Event()
        self._tested: EngineSettings | None = None
        self._usable: UsableEngine | None = None
        self._why: Reason | None = None
        self._refused: dict[str, Reason] = {}  # families that it could not compute, with the reasons
        self._proved: set[str] = set()  # families that it was seen to compute as llama.cpp does
        self._crashes: list[float] = []

    @property
    def state(self) -> State | None:
        """The state of the preferred engine, or None if the owner prefers llama.cpp."""
        chosen = self._settings()
        if not chosen.name:
            return None
        is_testing = self._tested != chosen
        usable, why = (None, None) if is_testing else (self._usable, self._why)
        return State(
            name=chosen.name,
            label=usable.label if usable else LABELS[chosen.name],
            folder=chosen.folder,
            testing=is_testing,
            used=usable is not None,
            architectures=sorted(usable.architectures) if usable else [],
            refused=sorted(self._refused) if usable else [],
            problem=sentence(why),
            problem_facts=why,
        )

    @property
    def label(self) -> str:
        """The engine that computes here instead of llama.cpp, or "" if none does."""
        usable = self._usable if self._tested == self._settings() else None
        return usable.label if usable else ""

    def settings_changed(self) -> None:
        """Note that the owner's choice may have changed."""
        if self._tested != self._settings():
            self._settled.clear()
            self._news.set()

    async def tested(self) -> State | None:
        """Wait until the preferred engine has been tested, and return its state."""
        while self._tested != self._settings():
            await self._settled.wait()
        return self.state

    def for_stage(self, family: str, *, exact: bool = False) -> UsableEngine | None:
        """Return the engine for a stage of this family, or None if llama.cpp computes it.

        family: as in Model.family, which begins with the architecture.
        exact: whether the numbers must be the same on all computers, which only llama.cpp provides.
        """
        usable = self._usable if self._tested == self._settings() else None
        if usable is None or exact or family in self._refused:
            return None
        return usable if family.partition(" ")[0] in usable.architectures else None

    def stage_config(self, engine: UsableEngine, config: StageConfig, family: str) -> StageConfig:
        """Return the configuration of a stage. A family is compared with llama.cpp before it is used."""
        return engine.config(config, compared=family not in self._proved)

    def opened(self, config: StageConfig, family: str, apart: float | None) -> None:
        """Record that a stage of a family was opened. apart: how far it differs from llama.cpp, if compared."""
        if config.engine in LABELS and apart is not None:
            self._proved.add(family)

    def failed(self, config: StageConfig, family: str, error: AppError) -> None:
        """Record that a stage could not be opened. llama.cpp then computes it.

        An engine that crashes repeatedly is no longer used. A family that it cannot compute is remembered.
        """
        label = self.label_of(config)
        log.warning("%s could not open a stage of %s: %s", label, family, said(error))
        why = refusal_of(error)
        if why is None:
            self._note(Reason("log_node_engine_failed", {"engine": label, "why": error.reason}))
        else:
            self._note(Reason("log_node_engine_family", {"engine": label, "family": family, "why": why}))
        if is_crash(error):
            self.crashed(config)
        elif why is not None:
            self._refused[family] = why
        self._changed()

    def label_of(self, config: StageConfig) -> str:
        """Return the engine of a stage and its device, or "" for llama.cpp."""
        if config.engine not in LABELS:
            return ""
        usable = self._usable
        return usable.label if usable and usable.name == config.engine else LABELS[config.engine]

    def crashed(self, config: StageConfig) -> None:
        """Record that a worker with such a stage crashed."""
        now = time.monotonic()
        self._crashes = [at for at in self._crashes if now - at < WITHIN_SECONDS] + [now]
        if len(self._crashes) >= CRASHES and self._usable is not None and self._usable.name == config.engine:
            self._usable, self._why = None, Reason("engine_crashes", {"count": CRASHES})
            self._changed()

    async def run(self) -> None:
        """Test the engine whenever the owner's choice has changed, until canceled."""
        while True:
            chosen = self._settings()
            if chosen != self._tested:
                usable, why = await _tried(chosen) if chosen.name else (None, None)
                self._usable, self._why, self._tested = usable, why, chosen
                self._refused.clear()
                self._proved.clear()
                self._crashes.clear()
                if why is not None:
                    log.warning("%s is not used: %s", LABELS[chosen.name], said(why))
                self._settled.set()
                self._changed()
                continue  # the choice may have changed meanwhile
            await self._news.wait()
            self._news.clear()


async def _tried(chosen: EngineSettings) -> tuple[UsableEngine | None, Reason | None]:
    """Test an engine in a process of its own. Return it, or why it cannot be used."""
    command = paths.python_command("-m", "backends", "try", chosen.name, chosen.folder, str(guide_file()))
    try:
        code, out, err = await run_child(command, TRIAL_SECONDS, {CPU_VARIANT: EXACT})
    except TimeoutError:
        return None, Reason("no_answer_within", {"seconds": round(TRIAL_SECONDS)})
    except OSError as error:
        return None, Reason("engine_words", {"words": os_cause(error)})
    if code:
        return None, Reason("engine_test_failed", {"why": last_words(err)})
    try:
        trial = decode(out, _Trial)
    except (msgspec.DecodeError, UnicodeError):
        return None, Reason("answer_not_understood")
    if trial.answer.failure:
        return None, Reason("engine_wrong", {"percent": round(100 * trial.answer.apart, 1)})
    device = UsableEngine(
        chosen.name, chosen.folder, trial.version[:50], trial.device, trial.device_name[:100],
        frozenset(trial.architectures),
    )  # fmt: skip
    return device, None


def _product(shape: tuple[int, ...]) -> int:
    product = 1
    for size in shape:
        product *= size
    return product
