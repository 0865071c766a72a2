"""`python -m tests.faults.same_again`: greedy answers of the Guide, each interrupted by a kill, beside themselves.

The first and the last layers are in one worker, those between in a lender's; either is killed at any token, and
started anew. What an answer says in all must be, token for token, what it says undisturbed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path

from app.catalog.gguf.gguf_file import read_header
from app.catalog.gguf.model_reader import model_of
from app.core.errors import AppError, DoesNotFit
from app.core.recovery.recovery import Loss, PlanFailed, Planned
from app.inference.pipeline.pipeline import Pipeline
from app.inference.pipeline.scheduler import PipelineConfig
from app.inference.pipeline.sequence import Finish, Request, Token
from app.inference.stages.stage_client import Run, StageClient
from app.inference.stages.stage_connection import close_run, lent_stage, open_run, own_stage
from app.inference.stages.stage_host import RunOrder, StageHost
from app.inference.worker.worker import Worker
from app.machine.installation import guide_file
from app.network.peer.frame_channel import MemoryChannel
from backends.contract import GREEDY, NumberFormat, Role
from tests.backends.cutting import config, runs

CUTS = (2, 5)
N_TOKENS = 64
MIB = 1 << 20


class House:
    """One host and one lender of the Guide, whose workers are started anew when they are killed."""

    def __init__(self, guide: Path, stack: AsyncExitStack, group: asyncio.TaskGroup) -> None:
        self._guide, self._stack, self._group = guide, stack, group
        self.model = model_of(read_header(guide), "Guide", "guide")
        self.form = PipelineConfig(slots=2, kv_cells=1024, context=512, n_vocab=self.model.n_vocab, checks=False)
        self.host: Worker | None = None
        self._own: list[Run] = []
        self._lender: AsyncExitStack | None = None
        self._lent: Callable[[], int] = lambda: 0  # the process of the lender's worker
        self.pipeline: Pipeline | None = None

    async def build(self) -> list[StageClient]:
        """All stages once more; a worker that lives keeps its process."""
        if self._lender is not None:
            await self._lender.aclose()
        if self.host is None or self.host.died is not None:
            self.host = await self._stack.enter_async_context(await Worker.start("host"))
        else:
            for run in self._own:
                await close_run(self.host, run)
        self._own, stages = [], []
        for layers, role in runs(self.model.n_layers, CUTS):
            run = Run(os.urandom(16), role, self.model.width, NumberFormat.F32)
            stage = config(self._guide, layers, role, self.model.width, slots=2, kv_cells=1024)
            if role is Role.MIDDLE:
                stages.append(await self._lend(run, stage))
            else:
                await open_run(self.host, run, self.form.context, stage)
                self._own.append(run)
                stages.append(own_stage(self.host, run, f"{layers}", "host"))
        return stages

    async def _lend(self, run: Run, stage: object) -> StageClient:
        self._lender = AsyncExitStack()
        lender = await self._lender.enter_async_context(StageHost(lambda: 1 << 40, "lender"))
        await lender.open(RunOrder(run, self.form.context, stage, 64 * MIB, 0, 64 * MIB))  # type: ignore[arg-type]
        self._lent = lambda: lender.get_open(run.pipeline).running_worker().pid
        near, far = MemoryChannel.pair()
        self._group.create_task(lender.serve(run.pipeline, far), name="serve")
        return lent_stage(near, run, "lender")

    def kill(self, owner: str) -> None:
        assert self.host is not None
        os.kill(self.host.pid if owner == "host" else self._lent(), signal.SIGKILL)

    async def close(self) -> None:
        if self._lender is not None:
            await self._lender.aclose()

    # as app/inference/pipeline/recovery_loop.py asks it

    def is_needed(self) -> bool:
        return False

    async def plan(self, without: frozenset[str]) -> Planned:
        return Planned(("lender",), 0.1)

    def failed(self, loss: Loss) -> None:
        """Do nothing, since no other machine could be used here."""

    def forgive(self, machines: Sequence[str]) -> None:
        """Do nothing, since no machine is left out here."""

    async def can_host_alone(self) -> bool:
        return False

    async def changed(self) -> None:
        await asyncio.sleep(0.1)

    def blames(self, error: AppError) -> tuple[str, str, bool]:
        return "", "", False

    def misfit(self, loss: Loss, error: DoesNotFit) -> PlanFailed:
        return PlanFailed(error.reason)


@asynccontextmanager
async def house() -> AsyncIterator[House]:
    """Loaded and ready."""
    with tempfile.TemporaryDirectory() as folder:
        guide = Path(shutil.copy(guide_file(), folder))
        async with AsyncExitStack() as stack:
            group = await stack.enter_async_context(asyncio.TaskGroup())
            made = House(guide, stack, group)
            stack.push_async_callback(made.close)
            async with Pipeline(await made.build(), made.form, made) as pipeline:
                made.pipeline = pipeline
                yield made


async def said(made: House, prompt: Sequence[int], owner: str = "", at: int = 0) -> list[int]:
    """An answer's tokens; somebody is killed when so many are there."""
    assert made.pipeline is not None
    ids: list[int] = []
    request = Request(tuple(prompt), GREEDY, N_TOKENS)
    async with aclosing(made.pipeline.generate(request)) as stream:
        async for item in stream:
            if isinstance(item, Token):
                ids.append(item.id)
                if owner and len(ids) == at:
                    made.kill(owner)
            elif isinstance(item, Finish) and owner:
                assert len(item.figures.recoveries) == 1
    return ids


async def same(made: House, chance: random.Random) -> bool:
    """Return whether an answer has the same tokens undisturbed and interrupted."""
    prompt = [chance.randrange(3, made.model.n_vocab) for _ in range(chance.randrange(3, 120))]
    owner, at = chance.choice(("host", "lender")), chance.randrange(1, N_TOKENS - 4)
    return await said(made, prompt) == await said(made, prompt, owner, at)


async def compared(n: int, seed: int, seconds: float) -> dict[str, float]:
    """Compare as many answers as there is time for."""
    chance, began, result = random.Random(seed), time.monotonic(), list[bool]()
    async with house() as made:
        while len(result) < n and time.monotonic() - began < seconds:
            result.append(await same(made, chance))
    took = round(time.monotonic() - began, 1)
    return {"answers": len(result), "same": sum(result), "seed": seed, "seconds": took}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3600.0)
    args = parser.parse_args()
    result = asyncio.run(compared(args.runs, args.seed, args.seconds))
    print(json.dumps(result))
    raise SystemExit(result["same"] != result["answers"])


if __name__ == "__main__":
    main()
