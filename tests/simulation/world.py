"""One seed's story: a household answers several people at once while things go wrong, on a clock of its own.

The pipeline, its recovery, the lenders and the workers' service are the real ones; only the clock, the processes
and the connections are pretended.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import psutil
import pytest

from app.core.errors import AppError, Reason
from app.core.lending.lending import QUIET_SECONDS
from app.core.reasons import said
from app.core.recovery.recovery import Loss, Notice
from app.inference.pipeline.sequence import Finish, Request, Token
from backends.contract import GREEDY, Sampling
from backends.frames import Frame
from backends.worker.stage_runner import StageRunner, StepLog
from tests.inference.guessers import Oracle
from tests.inference.pool import request, shape
from tests.simulation.house import House, opened
from tests.simulation.household import SHARE, Household, MemberPort
from tests.simulation.network import Network
from tests.simulation.owner import drained
from tests.simulation.process import Process
from tests.simulation.truth import undisturbed
from tests.simulation.virtual_loop import VirtualLoop, run, running

BEGAN = 1000.0  # the loop's clock
NOBODYS = 1 << 30  # ids of processes that no system gives
WHOLE = (8,)  # on another machine, beside the split
ALONE = 0.7  # of the stories: one split and no replica
SPLITS = ((2, 4, 2), (1, 3, 3, 1), (3, 2, 2, 1))
STAYS = 0.5  # of the stories: what is not lost serves on in a new epoch, instead of being loaded anew
PATHS = ("fake:seconds_per_layer=0.002", "fake:seconds_per_layer=0.01,seconds_per_row=0.0002")
CREATIVE = Sampling(temperature=50.0, top_k=0, top_p=1.0, min_p=0.0, seed=11, repeat_penalty=1.2)
LATEST_S = 1500.0  # no answer may take longer, whatever happens: 3 recoveries, each may wait 600 s for memory
TRUTHS = (0.0, 0.6, 1.0)  # how often a guess is right
MEMBERS = "members"  # a deed: who belongs to the household changes
ORPHAN_S = 10.0  # work for a host that has given up (SAFETY.md 6), beside the step under way


@dataclass
class Heard:
    """The answer that one person got."""

    asked: Request
    gives_up_at: int  # tokens after which the person stops it; 0: never
    is_late: bool = False  # asked when all others had their answers
    ids: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)  # of each token, on the story's clock
    notices: list[Notice] = field(default_factory=list)
    finish: Finish | None = None
    error: AppError | None = None


@dataclass
class Story:
    """The course of one story."""

    seed: int
    heard: list[Heard]
    deeds: list[str]
    took_s: float
    n_renewed: int = 0  # runs that served on in a new epoch

    def __str__(self) -> str:
        lines = [f"seed {self.seed}, {self.took_s:.1f} s: {', '.join(self.deeds) or 'nothing'}"]
        lines += [
            f"  {len(item.ids)} of {item.asked.max_tokens} tokens, "
            f"{item.error or (item.finish and item.finish.reason)}, "
            f"{[notice.state for notice in item.notices]}"
            for item in self.heard
        ]
        return "\n".join(lines)


def told(seed: int, only: Sequence[str] = (), *, renews: bool = False) -> Story:
    """Play a seed through. Raises Stuck when somebody would wait for ever.

    only: deeds by name, one of which is done three times, in place of any; MEMBERS comes beside others. renews: what
    was not lost serves on in a new epoch, and what was sent to it before may still arrive; else all is loaded anew.
    """
    chance = random.Random(seed)
    world: list[World] = []

    def spawn(loop: VirtualLoop, protocol: object) -> Process:
        return world[0].spawn(loop, protocol)

    loop = VirtualLoop(spawn)
    with running(loop) as slept, pytest.MonkeyPatch.context() as patch:
        world.append(World(seed, chance, loop, slept, renews))
        patch.setattr(psutil, "Process", world[0].process)
        world[0].guess(patch)
        world[0].watch(patch)
        return run(loop, world[0].play(only))


class World:
    """The household of one story."""

    def __init__(self, seed: int, chance: random.Random, loop: VirtualLoop, slept: list[float], renews: bool) -> None:
        self._seed, self._chance, self._loop, self._slept = seed, chance, loop, slept
        self._renews, self._n_renewed = renews, 0
        self._network = Network(loop, chance, chance.choice((0.0002, 0.002, 0.05)), flushes=renews)
        self._disk_s = chance.choice((0.0, 0.05, 2.0))
        self._processes: list[Process] = []
        self._deeds: list[str] = []
        self._oracle = Oracle(TRUTHS[seed % len(TRUTHS)], seed)
        self._asked = asyncio.Event()  # somebody has: what breaks before is nobody's answer
        self._household = Household(seed)
        self._goes = random.Random(f"{seed} goes")  # lenders that leave
        self._later = random.Random(f"{seed} later")  # who asks once it is quiet, and of how many

    def guess(self, patch: pytest.MonkeyPatch) -> None:
        """Most stories guess the next tokens whenever they can, right or wrong."""
        if self._seed % (len(TRUTHS) + 1):
            self._oracle.speaks(patch)

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        """I2: whatever a worker computes is of the epoch that was opened there last. I3: it is for a host."""
        computed, opened_last = StepLog.computed, dict[bytes, int]()

        def watched(steps: StepLog, step: Frame, outputs: tuple[Frame, ...]) -> None:
            key = step.pipeline
            newest = opened_last[key] = max(steps.epoch, opened_last.get(key, 0))
            if step.epoch != newest:  # raised here, it would be caught as a bug of the pipeline's
                self._household.wrong.append(f"epoch {step.epoch} is computed instead of {newest}")
            self._household.check(key, self._loop.now)
            computed(steps, step, outputs)

        started = StageRunner.start

        def anew(run: StageRunner, epoch: int) -> None:
            self._n_renewed += hasattr(run, "_steps")
            self._household.check(run._agreed.pipeline, self._loop.now)
            started(run, epoch)

        patch.setattr(StepLog, "computed", watched)
        patch.setattr(StageRunner, "start", anew)

    def spawn(self, loop: VirtualLoop, protocol: object) -> Process:
        """A worker is started."""
        pid = NOBODYS + len(self._processes)
        process = Process(loop, protocol, pid, self._slept, lambda: self._disk_s * self._chance.random())
        self._processes.append(process)
        return process

    def process(self, pid: int) -> Process:
        """Return the process as psutil would find it."""
        process = self._processes[pid - NOBODYS]
        if process.is_gone:
            raise psutil.NoSuchProcess(pid)
        return process

    async def play(self, only: Sequence[str] = ()) -> Story:
        form = shape(slots=self._chance.choice((2, 4)), chunk_rows=self._chance.choice((16, 64)))
        sizes = self._chance.choice(SPLITS)
        began = self._loop.now
        path = self._chance.choice(PATHS)
        splits = [sizes] if self._later.random() < ALONE else [sizes, WHOLE]
        async with opened(
            splits,
            paths=[path],
            form=form,
            wrap=self._network.wire,
            peers=True,
            renews=self._renews,
            port=lambda lender, group: MemberPort(lender, self._household, group),
        ) as house:
            heard = [self._person() for _ in range(self._chance.randint(1, 4))]
            async with asyncio.TaskGroup() as group:
                trouble = group.create_task(self._trouble(house, only), name="trouble")
                changes = group.create_task(self._change(house, only), name="members")
                owners = group.create_task(self._owners(house, only), name="owners")
                listening = [group.create_task(self._listen(house, item), name="listen") for item in heard]
                await asyncio.wait(listening, timeout=LATEST_S)
                if house.replicas.lost is None:  # else the node loads it for the next question
                    late = self._person()
                    late.is_late = True
                    heard.append(late)
                    await asyncio.sleep(self._later.choice((0.0, 3.0)))
                    listening.append(group.create_task(self._listen(house, late), name="later"))
                    await asyncio.wait(listening, timeout=LATEST_S)
                story = Story(self._seed, heard, self._deeds, self._loop.now - began, self._n_renewed)
                assert all(task.done() for task in listening), f"no end in time: {story}"
                trouble.cancel()
                changes.cancel()
                owners.cancel()
        await self._no_orphans()
        assert not self._household.wrong, f"{self._household.wrong}\n{story}"
        return story

    def _person(self) -> Heard:
        chance = self._chance
        text = "".join(chance.choices("abc ", k=chance.choice((1, 20, 150))))
        n_tokens = chance.choice((1, 15, 40))
        query = request(text, n_tokens, sampling=chance.choice((GREEDY, GREEDY, CREATIVE)))
        self._oracle.knows(query.ids, undisturbed(query, shape()))
        stops = n_tokens > 1 and chance.random() < 0.15
        return Heard(query, chance.randint(1, n_tokens - 1) if stops else 0)

    async def _listen(self, house: House, entry: Heard) -> None:
        await asyncio.sleep(self._chance.random() * 0.5)
        self._asked.set()
        try:
            async with aclosing(house.replicas.generate(entry.asked)) as stream:
                async for item in stream:
                    match item:
                        case Token(token):
                            entry.ids.append(token)
                            entry.times.append(self._loop.now - BEGAN)
                        case Notice():
                            assert said(item.reason)
                            entry.notices.append(item)
                        case Finish():
                            entry.finish = item
                    if entry.gives_up_at and len(entry.ids) >= entry.gives_up_at:
                        return
        except AppError as error:
            entry.error = error

    # what goes wrong

    async def _trouble(self, house: House, only: Sequence[str]) -> None:
        kinds = (
            self._kill, self._kill, self._freeze, self._freeze_long, self._partition, self._cut,
            self._stand_still, self._leave, self._shortage, self._failing, self._disturb,
            self._jump, self._kill_at_any_turn, self._kill_at_any_turn, self._heat,
        )  # fmt: skip
        await self._asked.wait()
        if only:
            kinds = tuple(getattr(self, f"_{name}") for name in only if name != MEMBERS)
        if set(only) == {MEMBERS}:
            return
        for _ in range(3 if only else self._chance.choice((0, 1, 1, 2, 3))):
            await asyncio.sleep(self._chance.choice((0.01, 0.1, 0.7, 3.0)) * self._chance.random())
            deed = self._chance.choice(kinds)
            self._deeds.append(f"{deed.__name__[1:]} at {self._loop.now - BEGAN:.3f}")
            await deed(house)

    async def _change(self, house: House, only: Sequence[str]) -> None:
        """Change the members suddenly in some stories."""
        chance = self._household.chance
        if MEMBERS not in only and (only or chance.random() >= SHARE):
            return
        await self._asked.wait()
        await asyncio.sleep(chance.choice((0.01, 0.3, 3.0)) * chance.random())
        at, kind = self._loop.now - BEGAN, self._household.choose()
        self._deeds.append(f"{kind} at {at:.3f}")
        await self._household.change(kind, house, lambda: self._loop.now)

    async def _owners(self, house: House, only: Sequence[str]) -> None:
        """Let a lender's owner take the memory back in some stories, orderly, or by ending the whole node."""
        if only or self._goes.random() >= SHARE:
            return
        await self._asked.wait()
        await asyncio.sleep(self._goes.choice((0.01, 0.3, 3.0)) * self._goes.random())
        deed = self._goes.choice((self._drain, self._crash))
        self._deeds.append(f"{deed.__name__[1:]} at {self._loop.now - BEGAN:.3f}")
        await deed(house)

    def _some(self) -> Process | None:
        alive = [process for process in self._processes if not process.is_gone]
        return self._chance.choice(alive) if alive else None

    async def _kill(self, _: House) -> None:
        if (process := self._some()) is not None:
            process.kill()

    async def _freeze(self, _: House) -> None:
        if (process := self._some()) is not None:
            process.freeze(self._chance.uniform(0.1, 4.0))

    async def _freeze_long(self, _: House) -> None:
        if (process := self._some()) is not None:
            process.freeze(3600.0)

    async def _partition(self, _: House) -> None:
        self._network.partition(self._chance.choice((0.5, 4.0, 60.0)) * self._chance.random())

    async def _cut(self, _: House) -> None:
        for _time in range(3):  # often enough for an answer to be lost on its way
            self._network.cut()
            await asyncio.sleep(0.3 * self._chance.random())

    async def _disturb(self, _: House) -> None:
        self._network.disturb(self._chance.choice((0.5, 10.0)) * self._chance.random())

    async def _jump(self, _: House) -> None:
        """Somebody sets the clock on the wall: by a day or ten years, either way."""
        self._loop.skew += self._chance.choice((86_400.0, 3.2e8)) * self._chance.choice((-1, 1))

    async def _heat(self, _: House) -> None:
        """A processor becomes so hot that it computes far slower for a while; nobody is dead of that."""
        if (process := self._some()) is not None:
            process.heat(self._chance.uniform(2.0, 10.0), self._chance.choice((1.0, 30.0)))

    async def _kill_at_any_turn(self, _: House) -> None:
        """A death that keeps to no second: between any two steps of anybody."""
        process = self._some()
        if process is not None:
            self._loop.after_turns(self._chance.randrange(1, 400), lambda: _end(process))

    async def _stand_still(self, _: House) -> None:
        """The host's computer slept: its clock went on, and nobody else noticed."""
        self._loop.now += self._chance.choice((1.0, 30.0)) * self._chance.random()

    async def _leave(self, house: House) -> None:
        """A lender's owner takes everything back at once; its host may be told so before, or hear it late."""
        lenders = [lender for built in house.pools.values() for lender in built.lenders]
        if not lenders:
            return
        lender = self._chance.choice(lenders)
        why = Reason("lend_stopped", {"machine": lender.machine})
        stopped_s, told_s = 0.3 * self._chance.random(), 0.3 * self._chance.random()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._told(house, lender.machine, why, told_s), name="say it")
            await asyncio.sleep(stopped_s)
            await lender.stop_now(why)

    async def _told(self, house: House, machine: str, why: Reason, after_s: float) -> None:
        await asyncio.sleep(after_s)
        loss = Loss(machine, machine, why, self._loop.now, is_gone=True)
        if self._later.random() < 0.3:  # it is known to be gone, before it could say so
            house.replicas.break_off(loss)
            return
        await house.replicas.leave(loss)

    async def _drain(self, house: House) -> None:
        """A lender's owner wants the memory back, and nobody else has room: who computes with it may end. Meanwhile
        the host stands still, for longer than no frame passes between two tokens."""
        if (built := house.pools.get(0)) is None or not built.lenders:
            return  # it was given back, and nobody has asked since; or it is being made again
        lender = self._goes.choice(built.lenders)
        if lender.runs:
            self._processes[built.host.pid - NOBODYS].freeze(1.5 * QUIET_SECONDS)
            await drained(lender, lambda: house.replicas.n_running > 0)

    async def _crash(self, house: House) -> None:
        """A lender's computer loses its power, and may be back while its host still looks for it."""
        lenders = [lender for built in house.pools.values() for lender in built.lenders]
        if lenders:
            lender = self._goes.choice(lenders)
            await self._household.crash(lender, self._goes.choice((0.5, 5.0, 3600.0)))

    async def _shortage(self, house: House) -> None:
        """The next time, nothing fits; a machine comes back a while later."""
        pools = list(house.pools.values())
        for built in pools:
            built.rebuild.misfits = 1
        await self._kill(house)
        await asyncio.sleep(20.0 * self._chance.random())
        for built in pools:
            built.rebuild.news.set()

    async def _failing(self, house: House) -> None:
        """Lose something again while the layers are being placed again."""
        for built in house.pools.values():
            built.rebuild.failing = self._chance.randint(1, 2)
        await self._kill(house)

    async def _no_orphans(self) -> None:
        """Check that nobody computes any more once everything is closed."""
        closed_at = self._loop.now
        await asyncio.sleep(ORPHAN_S + 2.0)
        late = [at for p in self._processes for at in p.computed_at if at > closed_at + ORPHAN_S]
        assert not late, f"seed {self._seed}: computed {late} after the end at {closed_at}"
        for process in self._processes:
            assert process.is_gone, f"seed {self._seed}: a worker outlives its pool"


def _end(process: Process) -> None:
    if not process.is_gone:
        process.kill()
