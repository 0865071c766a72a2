"""The pipelines of one story behind Replicas; a lost one is opened again, as app/node/placement/replica_supervisor.py
has it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from app.core.errors import AppError
from app.inference.pipeline.replica_set import Replica, ReplicaSet
from tests.inference.pool import Pool, pool

PAUSE_S = 2.0  # before one that was lost is opened again


@dataclass
class House:
    """The answering model, and its present pools by their place."""

    replicas: ReplicaSet = field(default_factory=ReplicaSet)
    pools: dict[int, Pool] = field(default_factory=dict)


@asynccontextmanager
async def opened(splits: Sequence[Sequence[int]], **how: Any) -> AsyncIterator[House]:
    """A pipeline for each split, the first of them partly here; one run alone is whole elsewhere."""
    house = House()
    async with asyncio.TaskGroup() as group:
        tasks = []
        for place, sizes in enumerate(splits):
            ready = asyncio.Event()
            several = len(splits) > 1
            work = _kept(house, place, sizes, several, ready, how)
            tasks.append(group.create_task(work, name=f"keep replica {place}"))
            await ready.wait()
        try:
            yield house
        finally:
            for task in tasks:
                task.cancel()


async def _kept(house: House, place: int, sizes: Sequence[int], several: bool, ready: asyncio.Event, how: Any) -> None:
    replicas = house.replicas
    while not replicas.check_all_lost():
        try:
            async with pool(*sizes, away=len(sizes) == 1, rebuilds=True, **how) as built:
                built.rebuild.elsewhere, built.rebuild.stays = not several, several
                here = {"host"} if len(sizes) > 1 else set()
                machines = frozenset(here | {lender.machine for lender in built.lenders})
                replica = Replica(f"replica {place}", built.pipeline, machines, bool(here))
                replicas.put(place, replica)
                house.pools[place] = built
                ready.set()
                await built.pipeline.wait_lost()
                if replicas.check_all_lost():
                    await asyncio.Event().wait()  # the end of the story closes it
        except* AppError:
            pass  # a worker died while it was opened: once more, in a moment
        finally:
            house.pools.pop(place, None)
        await asyncio.sleep(PAUSE_S)
