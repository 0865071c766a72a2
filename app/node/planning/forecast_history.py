"""The outcomes of forecasts. They are saved, shown to the user and used to correct later forecasts."""

from __future__ import annotations

import logging
import statistics
import time
from collections import deque
from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from app.api.snapshot import ForecastErrors, MachineFactors
from app.core.ids import MachineId
from app.core.model import Model
from app.core.planner.forecast import Corrections, PlacementCorrection, forecast
from app.core.planner.forecast_range import DISTURBED_LOAD
from app.core.planner.placement import Candidate, Forecast, Part, Plan
from app.core.planner.speed_estimates import MOST_FACTOR, Factor
from app.inference.pipeline.completion import Summary
from app.machine.json_state import read_json_or_default
from app.machine.paths import write_atomically

log = logging.getLogger(__name__)


MOST_PLACEMENTS = 64  # placements whose habits are stored; the latest ones win
MOST_KEPT = 200  # outcomes, about one day of use in a household
FEWEST_READ = 32  # tokens of a prompt; shorter ones are processed like output
LAST_READ = 10  # answers whose median gives the speed of reading prompts
FEWEST_TOKENS = 8  # shorter answers say little about the decoding speed
FAR_OFF = 2.0  # a forecast wrong by this factor is based on outdated measurements
MOST_GUESSED = 0.02  # share of the tokens that speculation may produce; more of it would distort the measured speed

Seconds = Annotated[float, Meta(ge=0, le=1e7)]


class Outcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The forecast and the measured times of an answer during which no other answer was in progress."""

    at: float  # Unix time
    model: str
    machines: int
    prompt_tokens: int  # computed tokens, without reused ones
    output_tokens: int
    forecast_ttft_s: Seconds
    ttft_s: Seconds
    forecast_tok_s: Seconds
    tok_s: Seconds
    # machines lost or changed during the answer, which make its times meaningless for the forecast
    interruptions: int = 0
    other_load: float | None = None  # share of the host's processor that other programs used; None if not known

    @property
    def is_quiet(self) -> bool:
        """Return whether nothing is known to have disturbed the answer."""
        return self.other_load is not None and self.other_load <= DISTURBED_LOAD and not self.interruptions

    @property
    def errors(self) -> tuple[float, float]:
        """The relative errors of two forecast values: the time to first token and the decoding speed."""
        first = self.forecast_ttft_s / self.ttft_s - 1 if self.ttft_s else 0.0
        return first, self.forecast_tok_s / self.tok_s - 1 if self.tok_s else 0.0

    @property
    def is_far_off(self) -> bool:
        """Return whether the forecast was so wrong that the measurements behind it must be outdated."""
        return far_off(self.forecast_ttft_s, self.ttft_s) or far_off(self.forecast_tok_s, self.tok_s)


def far_off(forecast_s: float, measured_s: float) -> bool:
    """Return whether a forecast was so wrong that the measurements behind it must be outdated."""
    low, high = sorted((forecast_s, measured_s))
    return high > FAR_OFF * low


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    outcomes: list[Outcome] = []
    machines: dict[MachineId, Factor] = {}
    links: dict[MachineId, Factor] = {}
    placements: dict[str, PlacementCorrection] = {}  # by key_of


class ForecastHistory:
    """The outcomes of forecasts and the corrections learned from them, saved in a small JSON file. If the file
    cannot be read, the history starts empty.
    """

    def __init__(self, file: Path, now: Callable[[], float] = time.time) -> None:
        self._file, self._now = file, now
        read = load(file)
        self._outcomes = deque(read.outcomes, MOST_KEPT)
        self._corrections = Corrections(read.machines, read.links)
        self._habits = dict(read.placements)

    def corrected(self, machine: Candidate) -> Candidate:
        """Return the machine with the corrections learned for it."""
        return self._corrections.corrected(machine)

    def with_corrections(self, plan: Plan) -> Plan:
        """Return the plan with its machines' current corrections. These may have changed since the plan was made."""
        return replace(plan, machines=tuple(map(self.corrected, plan.machines)))

    def expected(self, plan: Plan, model: Model, prompt: int, output: int) -> Forecast | None:
        """Return the forecast for an answer with these token counts if no other answer is in progress. It is based on
        earlier answers of this placement or, if there are none, on the corrections for its machines."""
        habit = self._habits.get(placement_key(plan, model))
        if habit is None:
            return forecast_alone(self.with_corrections(plan), model, prompt, output)
        plain = forecast_alone(_plain(plan), model, prompt, output)
        return habit.corrected(plain) if plain else None

    def unlearn(self, machines: Container[MachineId]) -> None:
        """Forget the corrections for these machines, because the measurements that they correct are outdated."""
        self._corrections = self._corrections.without(machines)
        self._habits = {
            key: habit
            for key, habit in self._habits.items()
            if not any(machine in machines for machine in _machines_in(key))
        }

    def learn(self, plan: Plan, model: Model, summary: Summary) -> Outcome | None:
        """Compare an answer with its forecast, learn from the difference, and return the outcome. Call this only
        if no other answer was in progress.

        Return None if there is no forecast, the answer is too short, speculation changed its speed, or a part of its
        prompt was read from disk.
        """
        computed, n_tokens = summary.prompt_tokens - summary.reused_tokens, len(summary.token_ids)
        known = forecast_alone(self.with_corrections(plan), model, computed, n_tokens)
        expected = self.expected(plan, model, computed, n_tokens)
        if known is None or n_tokens < FEWEST_TOKENS or summary.guessed > n_tokens * MOST_GUESSED or summary.restored_s:
            return None
        if not known.estimated:  # the error of an estimate says nothing about the machine
            self._correct(plan, known, summary)
        outcome = self._outcome(plan, model, summary, expected or known)
        self._outcomes.append(outcome)
        if computed >= FEWEST_READ:
            self._learn_habit(plan, model, computed, summary)
        return outcome

    def interrupted(self, plan: Plan, model: Model, summary: Summary) -> Outcome | None:
        """Return the outcome of an interrupted answer, or None if there is no forecast. Nothing is learned from it."""
        computed, n_tokens = summary.prompt_tokens - summary.reused_tokens, len(summary.token_ids)
        expected = self.expected(plan, model, computed, n_tokens)
        return self._outcome(plan, model, summary, expected) if expected and n_tokens >= FEWEST_TOKENS else None

    def _outcome(self, plan: Plan, model: Model, summary: Summary, known: Forecast) -> Outcome:
        return Outcome(
            at=round(self._now(), 3),
            model=model.name,
            machines=len({stage.machine for stage in plan.stages}),
            prompt_tokens=summary.prompt_tokens - summary.reused_tokens,
            output_tokens=len(summary.token_ids),
            forecast_ttft_s=known.ttft_s,
            ttft_s=summary.ttft_s,
            forecast_tok_s=known.decode_tok_s,
            tok_s=summary.decode_tok_s,
            interruptions=len(summary.recoveries),
        )

    def note_load(self, outcome: Outcome, other_load: float) -> Outcome:
        """Record how busy other programs kept the host during an answer. Return the completed outcome."""
        noted = msgspec.structs.replace(outcome, other_load=round(other_load, 3))
        for place, known in enumerate(self._outcomes):
            if known is outcome:
                self._outcomes[place] = noted
        return noted

    def reading_ratio(self, model: str) -> float | None:
        """Return the ratio of measured to forecast time for processing this model's prompts, or None if no prompt was
        long enough."""
        ratios = [
            outcome.ttft_s / outcome.forecast_ttft_s
            for outcome in self._outcomes
            if outcome.model == model and outcome.prompt_tokens >= FEWEST_READ and outcome.forecast_ttft_s
        ]
        return statistics.median(ratios[-LAST_READ:]) if any(ratios[-LAST_READ:]) else None

    def keep_only(self, members: Mapping[MachineId, object]) -> None:
        """Forget machines that left the household."""
        machines = _only(self._corrections.machines, members)
        self._corrections = Corrections(machines, _only(self._corrections.links, members))
        self._habits = {
            key: habit
            for key, habit in self._habits.items()
            if all(machine in members for machine in _machines_in(key))
        }

    def snapshot(self) -> ForecastErrors:
        """Return the median errors of the forecasts and the corrections of the machines."""
        errors = [outcome.errors for outcome in self._outcomes]
        quiet = [each.tok_s / each.forecast_tok_s for each in self._outcomes if each.is_quiet and each.forecast_tok_s]
        middle = [statistics.median(abs(each[n]) for each in errors) if errors else None for n in (0, 1)]
        return ForecastErrors(
            answers=len(self._outcomes),
            ttft_error=middle[0],
            decode_error=middle[1],
            quiet_answers=len(quiet),
            factor=statistics.median(quiet) if quiet else None,
            factors={
                key: MachineFactors(self._corrections.of(Part.MACHINE, key), self._corrections.of(Part.LINK, key))
                for key in self._corrections.machines
            },
        )

    def _correct(self, plan: Plan, known: Forecast, summary: Summary) -> None:
        """Update the corrections for each machine and its link from the total time of the machine's stages."""
        measured: dict[MachineId, float] = {}
        for stage, figures in zip(plan.stages, summary.stages, strict=True):
            measured[stage.machine] = measured.get(stage.machine, 0.0) + figures.busy_s
        for machine, measured_s in measured.items():
            times = {share.part: share.busy_s for share in known.shares if share.machine == machine}
            self._corrections = self._corrections.learned(
                machine, times.get(Part.MACHINE, 0.0), times.get(Part.LINK, 0.0), measured_s
            )

    def _learn_habit(self, plan: Plan, model: Model, computed: int, summary: Summary) -> None:
        """Update the correction for this placement from one of its answers."""
        plain, key = (forecast_alone(_plain(plan), model, computed, len(summary.token_ids)), placement_key(plan, model))
        if plain is not None:
            habit = self._habits.pop(key, PlacementCorrection())
            self._habits[key] = habit.learned(plain, summary.ttft_s, summary.decode_tok_s)
        for oldest in list(self._habits)[:-MOST_PLACEMENTS]:
            del self._habits[oldest]

    def content(self) -> bytes:
        """Return the file content for `save`."""
        machines, links = self._corrections.machines, self._corrections.links
        return msgspec.json.encode(_File(list(self._outcomes), dict(machines), dict(links), self._habits))

    def save(self, content: bytes) -> None:
        """Write the file. Call this in a thread."""
        try:
            write_atomically(self._file, content)
        except OSError as error:
            log.warning("the forecast history could not be saved: %s", error)


def forecast_alone(plan: Plan, model: Model, prompt: int, output: int) -> Forecast | None:
    """Return the forecast for an answer with these token counts if no other answer is in progress, or None if a part
    of the plan was not measured."""
    prompt, output = max(1, prompt), max(1, output)
    work = replace(
        plan.workload,
        context=2 * (prompt + output),  # always large enough, because this forecast is about time, not memory
        users=1,
        prompt_tokens=prompt,
        output_tokens=output,
    )
    return forecast(plan.stages, {machine.id: machine for machine in plan.machines}, model, work)


def load(file: Path) -> _File:
    """Return the saved history. A damaged file is treated as empty."""
    read = read_json_or_default(file, _File, "the forecast history")
    habits = {key: habit for key, habit in read.placements.items() if _is_sound(habit)}
    return _File(read.outcomes[-MOST_KEPT:], _sound(read.machines), _sound(read.links), habits)


def placement_key(plan: Plan, model: Model) -> str:
    """Return the key of a placement: the model's ID, and each machine with its number of layers, in order."""
    return " ".join([model.id, *(f"{stage.machine}:{len(stage.layers)}" for stage in plan.stages)])


def _machines_in(key: str) -> list[MachineId]:
    return [MachineId(part.partition(":")[0]) for part in key.split(" ")[1:]]


def _plain(plan: Plan) -> Plan:
    """Return the plan with the uncorrected, measured speeds of its machines."""
    return replace(plan, machines=tuple(map(Corrections().corrected, plan.machines)))


def _is_sound(habit: PlacementCorrection) -> bool:
    return all(
        1 / MOST_FACTOR <= factor.value <= MOST_FACTOR and factor.answers > 0 for factor in (habit.first, habit.decode)
    )


def _sound(factors: Mapping[MachineId, Factor]) -> dict[MachineId, Factor]:
    low, high = 1 / MOST_FACTOR, MOST_FACTOR
    return {key: factor for key, factor in factors.items() if low <= factor.value <= high and factor.answers > 0}


def _only(factors: Mapping[MachineId, Factor], members: Mapping[MachineId, object]) -> dict[MachineId, Factor]:
    return {key: factor for key, factor in factors.items() if key in members}
