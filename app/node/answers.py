"""What lenders answer to the stages they were asked to open, brought to whoever waits for it."""

from __future__ import annotations

import asyncio

from app.core.errors import AppError, DoesNotFit, StageLost
from app.core.ids import MachineId, PipelineId, pipeline_id
from app.core.reasons import said
from app.lan import messages

OPEN_SECONDS = 300.0  # loading reads the file once: 10 GB from a slow disk
FIT_CODES = frozenset({"lend_too_large", "stage_too_large", "disk_full", "memory_short"})

Key = tuple[MachineId, PipelineId]


class StageAnswers:
    """One future for each stage that is opening."""

    def __init__(self) -> None:
        self._waiting: dict[Key, asyncio.Future[messages.StageReady]] = {}

    async def wait(self, machine: MachineId, pipeline: PipelineId) -> messages.StageReady:
        """The lender's StageReady. Raises what it said instead, or StageLost when it is gone."""
        future = self._expected((machine, pipeline))
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                return await future
        except TimeoutError:
            raise StageLost("stage_slow", seconds=OPEN_SECONDS) from None
        finally:
            self._waiting.pop((machine, pipeline), None)

    def expect(self, machine: MachineId, pipeline: PipelineId) -> None:
        """Call it before asking, so that a quick answer is not missed."""
        self._expected((machine, pipeline))

    def heard(
        self,
        machine: MachineId,
        name: str,
        message: messages.StageReady | messages.StageFailed | messages.StageLost,
    ) -> None:
        future = self._waiting.get((machine, pipeline_id(message.pipeline)))
        if future is None or future.done():
            return
        if isinstance(message, messages.StageReady):
            future.set_result(message)
        else:
            future.set_exception(_error(name, message))

    def gone(self, machine: MachineId, name: str) -> None:
        """The link is down: nothing more will be heard."""
        for (of, _), future in self._waiting.items():
            if of == machine and not future.done():
                future.set_exception(StageLost("stage_unreachable", machine=name))

    def _expected(self, key: Key) -> asyncio.Future[messages.StageReady]:
        if key not in self._waiting:
            self._waiting[key] = asyncio.get_running_loop().create_future()
        return self._waiting[key]


def _error(name: str, message: messages.StageFailed | messages.StageLost) -> AppError:
    """The lender's own reason, as far as this version has a sentence for it, and who gave it."""
    reason = messages.understood(message)
    kind = DoesNotFit if reason.code in FIT_CODES else StageLost
    return kind("lender_said", machine=name, what=said(reason))
