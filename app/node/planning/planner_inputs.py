"""The inputs of a plan: the connected machines, their speeds with the model, and the quality of their links."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from app.catalog.shelf import Entry
from app.core.errors import Reason
from app.core.household.household import Household
from app.core.household.link import Link, LinkKind
from app.core.ids import MachineId
from app.core.model import Model
from app.core.planner.placement import Candidate, Workload
from app.core.planner.speed_estimates import Speed, SpeedConditions
from app.core.planner.work_shape import WorkShape, measured_work
from app.core.recovery.recovery import RecentFailures
from app.machine.hardware import devices
from app.machine.hardware.cards import PROCESSOR_ONLY, ComputingCard
from app.node.card_verdicts import fingerprint_of
from app.node.control.json_bodies import Report
from app.node.links.link_registry import LinkRegistry
from app.node.measured_work import MeasuredWork, place_of_lender
from app.node.planning.forecast_history import ForecastHistory
from app.node.planning.guess_history import GuessHistory
from app.node.planning.speed_measurer import SpeedBasis, SpeedMeasurer
from app.node.verification.quarantine import Quarantine
from app.node.verification.spare_memory import SpareMemory

Speeds = Mapping[MachineId, Speed | None]
Released = Mapping[MachineId, int]


@dataclass(frozen=True, slots=True)
class PlannerInputs:
    """Collects the inputs of a plan from the services that measure machines and links."""

    candidates: Callable[[Released], tuple[Candidate, list[Candidate]]]
    speed_measurer: SpeedMeasurer
    links: LinkRegistry
    forecasts: ForecastHistory
    quarantine: Quarantine
    spare_memory: SpareMemory  # for checks of samples
    graphics: ComputingCard = PROCESSOR_ONLY  # the cards of this machine
    failures: RecentFailures = field(default_factory=lambda: RecentFailures(time.monotonic))
    guesses: GuessHistory | None = None  # what guessing tokens ahead has brought
    work: MeasuredWork | None = None  # of stages on the cards of this machine and of lenders

    async def speeds(
        self,
        entry: Entry,
        conditions: SpeedConditions,
        report: Report,
        *,
        known_only: bool = False,
        without: Collection[str] = (),
    ) -> Speeds:
        """Return the speed of each machine with a model, measuring speeds that are not known yet.

        known_only: measure nothing.
        without: machines to leave out.

        A speed is None if it could not be measured.
        """
        me, names, shared = await self._everybody(known_only=known_only, without=without)
        return await self.speed_measurer.speeds(
            entry, me, names, conditions, report, one_by_one=shared, known_only=known_only
        )

    async def speeds_like(
        self, basis: SpeedBasis, conditions: SpeedConditions, report: Report, *, known_only: bool
    ) -> Speeds:
        """Return the speeds for a model that is not on this computer, estimated from similar layers."""
        me, names, shared = await self._everybody(known_only=known_only)
        return await self.speed_measurer.speeds_like(
            basis, me, names, conditions, report, one_by_one=shared, known_only=known_only
        )

    def why_not_forecast(self, model: Model) -> Reason | None:
        """Return why the speed of a model cannot be forecast, or None."""
        return self.speed_measurer.why_not_forecast(model.id)

    def why_not_measured(self, name: str) -> Reason | None:
        """Return why a machine could not be measured, or None."""
        return self.speed_measurer.why_not_measured(name)

    async def _everybody(
        self, *, known_only: bool, without: Collection[str] = ()
    ) -> tuple[tuple[MachineId, str], dict[MachineId, str], bool]:
        """Return this machine's ID and name, the lenders' names by ID, and whether any of them run on this computer."""
        host, everybody = self.candidates({})
        lenders = [lender for lender in everybody if lender.is_lending and lender.id not in without]
        if not known_only:
            await self.links.measure_unknown(lender.id for lender in lenders)
        # nodes on the same computer would slow each other down
        shared = any(_kind(self.links.link(lender.id)) is LinkKind.LOOPBACK for lender in lenders)
        return (host.id, host.name), {lender.id: lender.name for lender in lenders}, shared

    def machines(self, released: Released, speeds: Speeds, family: str = "") -> tuple[Candidate, list[Candidate]]:
        """Return the host and the lenders with all their measurements.

        released: the number of bytes that each machine is freeing now. family: the family of the model.
        """
        host, lenders = self.candidates(released)
        host, lenders = host.for_family(family), [lender.for_family(family) for lender in lenders]
        seen = [
            self.forecasts.corrected(
                replace(
                    lender,
                    speed=speeds.get(lender.id),
                    link=self.links.link(lender.id),
                    doubted=lender.id in self.quarantine,
                )
            )
            for lender in lenders
        ]
        host, *seen = within_one_computer(
            [self.forecasts.corrected(replace(host, speed=speeds.get(host.id))), *seen],
            devices.memory().free_bytes,
            released,
        )
        return host, seen

    def with_measured_work(
        self, host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload
    ) -> tuple[Candidate, list[Candidate]]:
        """Return the machines with the working memory that stages of these sizes have used on their graphics
        cards.
        """
        if self.work is None:
            return host, list(lenders)
        card = self.graphics.card_for(model.family)
        places = [fingerprint_of(card) if card is not None else ""]
        places += [place_of_lender(lender.id, lender.engine, lender.device) for lender in lenders]
        measured = [
            replace(machine, measured_work=measured_work(machine, model, workload, self.work.at(place)))
            if place
            else machine
            for machine, place in zip((host, *lenders), places, strict=True)
        ]
        return measured[0], measured[1:]

    def note_lender_work(self, lender: MachineId, shape: WorkShape, n_bytes: int) -> None:
        """Remember how much working memory a stage uses on a lender's graphics card."""
        machine = next((each for each in self.candidates({})[1] if each.id == lender), None)
        if self.work is not None and machine is not None:
            self.work.keep(place_of_lender(machine.id, machine.engine, machine.device), shape, n_bytes)

    async def measure_again(self, entry: Entry, conditions: SpeedConditions) -> None:
        """Mark all measurements behind a model's forecast as outdated, because the user wants them repeated."""
        me = self.candidates({})[0].id
        self.forecasts.unlearn(await self.speed_measurer.doubt(entry, conditions, me, by_hand=True))

    async def doubt(self, entry: Entry, conditions: SpeedConditions, used: Collection[MachineId]) -> bool:
        """Mark the measurements behind an inaccurate forecast as doubtful, so that they are soon repeated.

        Return False if they were repeated recently and are still valid.
        """
        me = self.candidates({})[0].id
        doubted = (await self.speed_measurer.doubt(entry, conditions, me)) & set(used)
        self.forecasts.unlearn(doubted)
        for machine in set(used) - {me}:
            self.links.doubt(machine)
        return bool(doubted)


def within_one_computer(machines: Sequence[Candidate], free_bytes: int, released: Released) -> list[Candidate]:
    """Return the host and the lenders. Those on the host's own computer are limited so that together they lend no
    more memory than the computer has free.

    Nodes on one computer each announce a share of the same memory. free_bytes: the free memory of the computer.
    released: the number of bytes that each machine is freeing now.
    """
    here = {machine.id for machine in machines if machine.link is None or _kind(machine.link) is LinkKind.LOOPBACK}
    here -= {machine.id for machine in machines[1:] if machine.link is None}  # not measured yet
    lent = sum(machine.lends_bytes for machine in machines if machine.id in here)
    free_bytes += sum(released.get(machine_id, 0) for machine_id in here)
    if len(here) < 2 or lent <= free_bytes or any(machine.card_bytes for machine in machines if machine.id in here):
        return list(machines)
    return [
        replace(machine, lends_bytes=machine.lends_bytes * free_bytes // lent) if machine.id in here else machine
        for machine in machines
    ]


def connected_lenders(me: MachineId, household: Household, released: Released) -> list[Candidate]:
    """Return the connected lenders as candidates for a plan. `released` is the number of bytes that each of them is
    freeing now."""
    could_lend = {key: machine.could_lend(released.get(key, 0)) for key, machine in household.machines.items()}
    lenders = [
        Candidate(
            key,
            machine.name,
            could_lend[key],
            engine=machine.about.engine,
            device=machine.device,
            is_lending=machine.lends_bytes + machine.used_bytes > 0,
            idle_card=machine.about.idle_card,
            refused_families=machine.about.refused_families,
            processor_bytes=machine.processor_could_lend(released.get(key, 0)),
            missing_bytes=machine.about.missing_bytes,
            card_bytes=max(0, could_lend[key] - machine.about.main_bytes) if machine.about.main_bytes else None,
        )
        for key, machine in household.machines.items()
        if key != me and machine.online and "lender" in machine.roles
    ]
    return sorted(lenders, key=lambda lender: (lender.name, lender.id))


def _kind(link: Link | None) -> LinkKind | None:
    return link.kind if link else None
