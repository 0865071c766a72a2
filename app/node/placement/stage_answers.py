"""What lenders answer to the stages they were asked to open, brought to whoever waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from app.core.errors import AppError, DoesNotFit, Fact, Reason, StageLost
from app.core.ids import MachineId, PipelineId, pipeline_id
from app.core.reasons import said
from app.core.recovery import blame
from app.core.recovery.blame import Fault
from app.network import messages

OPEN_SECONDS = 300.0  # loading reads the file once: 10 GB from a slow disk

Key = tuple[MachineId, PipelineId]
Ready = Callable[[], Awaitable[messages.StageReady]]


class StageAnswers:
    """One future for each stage that is opening."""

    def __init__(self) -> None:
        self._waiting: dict[Key, asyncio.Future[messages.StageReady]] = {}

    @contextmanager
    def expect(self, machine: MachineId, pipeline: PipelineId) -> Iterator[Ready]:
        """Begin before asking, so that a quick answer is not missed; then await what it gives.

        That is the lender's StageReady. Raises what it said instead, or StageLost when it is gone.
        """
        future: asyncio.Future[messages.StageReady] = asyncio.get_running_loop().create_future()
        self._waiting[machine, pipeline] = future
        try:
            yield lambda: _in_time(future)
        finally:
            del self._waiting[machine, pipeline]
            future.cancel()  # and an error that came too late to be waited for is not logged

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
            future.set_exception(_error(machine, name, message))

    def gone(self, machine: MachineId, name: str) -> None:
        """The link is down: nothing more will be heard."""
        for (of, _), future in self._waiting.items():
            if of == machine and not future.done():
                future.set_exception(StageLost("stage_unreachable", machine=name))


async def _in_time(future: asyncio.Future[messages.StageReady]) -> messages.StageReady:
    try:
        async with asyncio.timeout(OPEN_SECONDS):
            return await future
    except TimeoutError:
        raise StageLost("stage_slow", seconds=OPEN_SECONDS) from None


def _error(
    machine: MachineId, name: str, message: messages.StageFailed | messages.StageLost
) -> AppError:
    """The lender's own reason, as far as this version has a sentence for it, and who gave it: it names no other one."""
    reason = blame.of_itself(messages.understood(message), name)
    what = said(reason)
    facts: dict[str, Fact] = {"machine": name, "what": what, "cause": reason.code}
    if blame.of(reason).fault is not Fault.MEMORY:
        return blame.lost(Reason("lender_said", facts))
    facts["machine_id"] = machine
    if reason.code == "lend_too_large" and isinstance(reason.facts.get("free_bytes"), int):
        facts["free_bytes"] = reason.facts["free_bytes"]
    return DoesNotFit("lender_said", **facts)
