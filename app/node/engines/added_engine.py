"""The engine that is installed apart from Poolhouse and that the owner prefers: PyTorch or MLX.

It computes stages here only after it has given the known answer of the Guide. What it cannot compute, llama.cpp does.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path

from app.api.engine_packs import AddedEngine as State
from app.core.errors import AppError, Busy, Reason
from app.core.reasons import said, sentence
from app.machine.hardware.added_engines import LABELS, UsableEngine, try_engine
from app.machine.hardware.cards import is_crash, refusal_of
from app.machine.settings import EngineSettings
from app.node.engines.engine_choices import EngineChoices
from backends.contract import ADDED_ENGINES, LLAMACPP, StageConfig

log = logging.getLogger(__name__)

CRASHES, WITHIN_SECONDS = 2, 600.0  # an engine that crashed this often in this time is no longer used
WAIT_SECONDS = 60.0  # a load waits so long for the test


class AddedEngine:
    """Tests the engine that the owner prefers, and tests it again when the choice changes.

    settings: returns the owner's current choice.
    changed: called whenever what is computed here may change.
    note: adds an event to the journal.
    code_cache: the folder in which graphics drivers keep compiled code.
    choices: the families for which it was compared with llama.cpp.
    """

    def __init__(
        self,
        settings: Callable[[], EngineSettings],
        changed: Callable[[], None] = lambda: None,
        note: Callable[[Reason], None] = lambda _: None,
        code_cache: Path | None = None,
        choices: Path | None = None,
    ) -> None:
        self._settings, self._changed, self._note, self._code_cache = settings, changed, note, code_cache
        self._choices = EngineChoices(choices)
        self._news = asyncio.Event()
        self._settled = asyncio.Event()
        self._tested: EngineSettings | None = None
        self._result: UsableEngine | Reason | None = None  # of the last test
        self._refused: dict[str, Reason] = {}  # families that it could not compute, with the reasons
        self._proved: set[str] = set()  # families that it was seen to compute as llama.cpp does
        self._crashes: list[float] = []

    @property
    def _is_tested(self) -> bool:
        return self._tested == self._settings()

    @property
    def _usable(self) -> UsableEngine | None:
        """The engine that computes here, unless its test is still to come."""
        return self._result if self._is_tested and isinstance(self._result, UsableEngine) else None

    @property
    def state(self) -> State | None:
        """The state of the preferred engine, or None if the owner prefers llama.cpp."""
        chosen, usable = self._settings(), self._usable
        if not chosen.name:
            return None
        why = self._result if self._is_tested and isinstance(self._result, Reason) else None
        return State(
            name=chosen.name,
            label=usable.label if usable else LABELS[chosen.name],
            folder=chosen.folder,
            testing=not self._is_tested,
            used=usable is not None,
            architectures=sorted(usable.architectures) if usable else [],
            refused=sorted(self._refused) if usable else [],
            if_faster=chosen.if_faster,
            faster=sorted(family for family, faster in self._choices.faster.items() if faster) if usable else [],
            slower=sorted(family for family, faster in self._choices.faster.items() if not faster) if usable else [],
            problem=sentence(why),
            problem_facts=why,
        )

    @property
    def label(self) -> str:
        """The engine that computes here instead of llama.cpp, or "" if none does."""
        return self._usable.label if self._usable else ""

    def test_again(self) -> None:
        """Test the engine that the owner prefers now, even if it is the same as before, and compare its speed again."""
        self._tested = None
        self._choices.forget()
        self._news.set()

    async def tested(self) -> State | None:
        """Wait until the preferred engine has been tested, and return its state."""
        while not self._is_tested:
            self._settled.clear()
            await self._settled.wait()
        return self.state

    async def wait(self) -> None:
        """Wait for a test that is running, but no longer than a load should."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self.tested()
        except TimeoutError:
            log.warning("the test of the preferred engine takes long, so llama.cpp computes meanwhile")

    def for_stage(self, family: str, *, exact: bool = False, chosen: str = "") -> UsableEngine | None:
        """Return the engine for a stage of this family, or None if llama.cpp computes it.

        family: as in Model.family, which begins with the architecture.
        exact: whether the numbers must be the same on all computers, which only llama.cpp provides.
        chosen: the engine that the person who loads the model chose, or "". It computes even where it is slower.
        """
        engine = self._able(family, exact=exact) if chosen != LLAMACPP else None
        if engine is None or engine.name == chosen:
            return engine
        if self._settings().if_faster and not self._choices.faster.get(family, False):
            return None
        return engine

    def candidate(self, family: str, *, exact: bool = False) -> UsableEngine | None:
        """Return the engine if its speed is still to be compared with llama.cpp's, or None."""
        if not self._settings().if_faster or family in self._choices.faster:
            return None
        return self._able(family, exact=exact)

    def _able(self, family: str, *, exact: bool) -> UsableEngine | None:
        usable = self._usable
        if usable is None or exact or family in self._refused:
            return None
        return usable if family.partition(" ")[0] in usable.architectures else None

    def compared(self, family: str, *, faster: bool) -> None:
        """Record whether the engine computes a family faster than llama.cpp."""
        self._choices.keep(family, faster=faster)
        word = "faster" if faster else "not faster"
        log.info("%s is %s than llama.cpp with %s", self.label, word, family)
        self._changed()

    def compare_again(self, family: str) -> None:
        """Forget how fast the engine computes a family."""
        self._choices.forget(family)

    def stage_config(self, engine: UsableEngine, config: StageConfig, family: str) -> StageConfig:
        """Return the configuration of a stage. A family is compared with llama.cpp before it is used."""
        return engine.config(config, compared=family not in self._proved)

    def opened(self, config: StageConfig, family: str, apart: float | None) -> None:
        """Record that a stage of a family was opened. apart: how far it differs from llama.cpp, if compared."""
        if config.engine in ADDED_ENGINES and apart is not None:
            self._proved.add(family)

    def failed(self, config: StageConfig, family: str, error: AppError) -> None:
        """Record that a stage could not be opened. llama.cpp then computes it.

        An engine that crashes repeatedly is no longer used. A family that it cannot compute is remembered.
        """
        why = refusal_of(error)
        self._record(config.engine, family, error, why)
        if why is not None:
            self._refused[family] = why

    def not_measured(self, family: str, error: AppError) -> bool:
        """Return whether llama.cpp is to be measured instead, because the speed of a family could not be.

        It then computes this family until the engine is chosen again.
        """
        if self._usable is None or isinstance(error, Busy):
            return False
        why = refusal_of(error) or error.reason
        self._record(self._usable.name, family, error, refusal_of(error))
        self._refused[family] = why
        return True

    def _record(self, name: str, family: str, error: AppError, why: Reason | None) -> None:
        """Log a failure, note it in the journal, and count a crash.

        why: the reason if the engine cannot compute the family.
        """
        label = self._label(name)
        log.warning("%s failed to compute %s: %s", label, family, said(error))
        if why is None:
            self._note(Reason("log_node_engine_failed", {"engine": label, "why": error.reason}))
        else:
            self._note(Reason("log_node_engine_family", {"engine": label, "family": family, "why": why}))
        if is_crash(error):
            self.crashed(name)
        self._changed()

    def label_of(self, config: StageConfig) -> str:
        """Return the engine of a stage and its device, or "" for llama.cpp."""
        return self._label(config.engine) if config.engine in ADDED_ENGINES else ""

    def _label(self, name: str) -> str:
        return self._usable.label if self._usable and self._usable.name == name else LABELS[name]

    def crashed(self, name: str) -> None:
        """Record that a worker with a stage on this engine crashed."""
        now = time.monotonic()
        self._crashes = [at for at in self._crashes if now - at < WITHIN_SECONDS] + [now]
        if len(self._crashes) >= CRASHES and self._usable is not None and self._usable.name == name:
            self._result = Reason("engine_crashes", {"count": CRASHES})
            self._changed()

    async def run(self) -> None:
        """Test the engine whenever the owner's choice has changed, until canceled."""
        while True:
            self._news.clear()
            chosen = self._settings()
            if not self._is_tested:
                self._result = await try_engine(chosen, self._code_cache) if chosen.name else None
                self._refused.clear()
                self._proved.clear()
                self._crashes.clear()
                if isinstance(self._result, UsableEngine):
                    self._choices.read(self._result.label)
                if isinstance(self._result, Reason):
                    log.warning("%s is not used: %s", LABELS[chosen.name], said(self._result))
                self._tested = chosen
                self._settled.set()
                self._changed()
            if self._is_tested:  # otherwise the choice has changed meanwhile
                await self._news.wait()
