"""The host's side: one model placed over the pool, kept while it is wanted, asked by anybody here."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from app.catalog.shelf import GUIDE, Entry, Shelf
from app.catalog.stage_store import StageStore
from app.core.errors import BadInput
from app.core.ids import MachineId
from app.core.model import Model
from app.core.plan import Candidate, Plan, Workload, plan
from app.inference.chats import Delta, Question, Summary
from app.node import requests as asked
from app.node.ndjson import Progress, with_progress
from app.node.placing import Lenders, Sizes
from app.node.running import Running
from app.node.snapshot import plan_json
from backends.contract import Number

Json = dict[str, Any]

CONTEXT = 4096  # positions of one answer, when nobody says
USERS = 1
SLOTS = 4  # conversations kept warm, even for one user
BATCH_ROWS = 64
NUMBERS = {"f16": Number.F16, "f32": Number.F32, "q8": Number.Q8}


class Hosting:
    """Loads one model at a time. A new load, or `unload`, first ends the one before."""

    def __init__(
        self,
        shelf: Shelf,
        stages: StageStore,
        lenders: Lenders,
        candidates: Callable[[Mapping[MachineId, int]], tuple[Candidate, list[Candidate]]],
        threads: int,
        group: asyncio.TaskGroup,
        changed: Callable[[], None],
    ) -> None:
        self._shelf, self._stages, self._lenders = shelf, stages, lenders
        self._candidates, self._threads = candidates, threads
        self._group, self._changed = group, changed
        self._turn = asyncio.Lock()  # one load or unload at a time
        self.running: Running | None = None

    async def plan(self, order: asked.PlanModel) -> Json:
        """The placement a load would choose now. Raises DoesNotFit or BadInput."""
        entry = await asyncio.to_thread(self._shelf.get, order.model)
        chosen, lends = self._plan(entry.model, order, _held(self.running))
        return plan_json(chosen, entry.model, lends)

    async def load(self, order: asked.LoadModel, report: Progress) -> Json:
        """Place the model and wait until it answers. Cancelling it leaves nothing loaded."""
        entry = await asyncio.to_thread(self._shelf.get, order.model)
        async with self._turn:
            return await self._load(entry, order, report)

    async def unload(self) -> str | None:
        """Give all memory back; the name of what was loaded."""
        async with self._turn:
            return await self._unload()

    async def ask(self, order: asked.Ask) -> AsyncGenerator[Json, None]:
        """One answer as lines: progress while a model loads first, deltas, and what it cost."""
        question = _question(order)
        async for line in self._at_hand(order.model):
            yield line
        running = self.running
        if running is None or running.answerer is None:
            raise BadInput("nothing_loaded")
        self._changed()
        try:
            async with aclosing(running.answerer.answer(question)) as answer:
                async for part in answer:
                    if isinstance(part, Delta):
                        yield {"delta": {"text": part.text, "token_ids": list(part.token_ids)}}
                    else:
                        yield {"done": _answer_json(part, running)}
        finally:
            self._changed()

    def loaded_json(self) -> Json | None:
        return self.running.json() if self.running else None

    async def _at_hand(self, wanted: str | None) -> AsyncGenerator[Json, None]:
        """Load what was asked for, unless it is there; lines of progress."""
        running = self.running
        if wanted is None:
            wanted = running.entry.name if running else GUIDE
        entry = await asyncio.to_thread(self._shelf.get, wanted)
        if running and running.is_ready and running.entry.model.id == entry.model.id:
            return
        order = asked.LoadModel(model=entry.name)
        async with aclosing(with_progress(lambda report: self.load(order, report))) as lines:
            async for line in lines:
                if "progress" in line:
                    yield line

    async def _load(self, entry: Entry, order: asked.LoadModel, report: Progress) -> Json:
        released = _held(self.running)
        await self._unload()
        entry = await asyncio.to_thread(
            self._shelf.verify,
            entry,
            lambda done, total: report(_hashing(done, total)),
        )
        chosen, lends = self._plan(entry.model, order, released)
        running = Running(
            entry, chosen, plan_json(chosen, entry.model, lends), self._sizes(chosen, order)
        )
        self.running = running
        self._changed()
        work = running.run(self._shelf, self._stages, self._lenders, report, self._changed)
        task = self._group.create_task(work, name=f"placement of {entry.name}")
        try:
            await running.ready()
        except BaseException:
            running.stop()
            await asyncio.wait({task})
            self.running = None
            raise
        finally:
            self._changed()
        return {"loaded": running.json()}

    async def _unload(self) -> str | None:
        running, self.running = self.running, None
        if running is None:
            return None
        running.stop()
        await running.ended.wait()
        self._changed()
        return running.entry.name

    def _plan(
        self, model: Model, order: asked.PlanModel, released: Mapping[MachineId, int]
    ) -> tuple[Plan, dict[MachineId, int]]:
        host, lenders = self._candidates(released)
        context = min(order.context or CONTEXT, model.context_length)
        if order.context and order.context > model.context_length:
            raise BadInput("context_too_long", asked=order.context, most=model.context_length)
        work = Workload(context, order.users or USERS, BATCH_ROWS)
        chosen = plan(host, lenders, model, work, order.split)
        return chosen, {machine.id: machine.lends_bytes for machine in [host, *lenders]}

    def _sizes(self, chosen: Plan, order: asked.LoadModel) -> Sizes:
        work = chosen.workload
        return Sizes(
            number=NUMBERS[order.number],
            slots=max(work.users, SLOTS),
            kv_cells=work.context * work.users,
            context=work.context,
            batch_rows=work.batch_rows,
            threads=self._threads,
        )


def _held(running: Running | None) -> dict[MachineId, int]:
    """Bytes that each machine gets back when this placement ends."""
    held: dict[MachineId, int] = {}
    for stage in running.planned_stages if running else ():
        held[stage.machine] = held.get(stage.machine, 0) + stage.total_bytes
    return held


def _hashing(done: int, total: int) -> Json:
    return {"step": "hashing", "machine": None, "done": done, "total": total, "unit": "bytes"}


def _question(order: asked.Ask) -> Question:
    given = [order.prompt is not None, order.prompt_ids is not None, order.messages is not None]
    if sum(given) != 1:
        raise BadInput("prompt_unclear")
    messages = None
    if order.messages is not None:
        messages = [{"role": m.role, "content": m.content} for m in order.messages]
    elif order.prompt is not None and not order.raw:
        messages = [{"role": "user", "content": order.prompt}]
    return Question(
        messages=messages,
        prompt=order.prompt if order.raw else None,
        prompt_ids=tuple(order.prompt_ids) if order.prompt_ids is not None else None,
        sampling=order.sampling.sampling(chance=secrets.randbelow(1 << 31)),
        stop=tuple(order.stop),
        conversation=order.conversation,
        ignore_end=order.ignore_end,
        **({"max_tokens": order.max_tokens} if order.max_tokens else {}),
    )


def _answer_json(summary: Summary, running: Running) -> Json:
    return {
        "text": summary.text,
        "token_ids": list(summary.token_ids),
        "prompt_tokens": summary.prompt_tokens,
        "reused_tokens": summary.reused_tokens,
        "queued_s": summary.queued_s,
        "ttft_s": summary.ttft_s,
        "decode_tok_s": summary.decode_tok_s,
        "finish_reason": summary.finish_reason,
        "model": running.entry.name,
        "placement": running.described["stages"],
        "predicted": None,
        "recoveries": 0,
        "stages": [
            {
                "machine": stage.name,
                "first": stage.layers.first,
                "last": stage.layers.last,
                "busy_s": figures.busy_s,
                "wait_s": figures.wait_s,
                "bytes_out": figures.bytes_out,
                "bytes_in": figures.bytes_in,
                "steps": figures.steps,
            }
            for stage, figures in zip(running.planned_stages, summary.stages, strict=True)
        ],
    }
