"""Corrections of forecasts, learned for each machine and each link from measured answers. Pure.

A factor is the ratio of measured to forecast time, as a running mean of logarithms: 2 and 1/2 cancel out, early answers
count more, and one outlier moves it little.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from math import exp, log

from app.core.household.link import Link
from app.core.ids import MachineId
from app.core.planner.placement import Candidate, Forecast, Part
from app.core.planner.speed_estimates import Speed

LEAST_WEIGHT = 0.15  # of a new answer, however many were seen: about the last ten decide
MOST_RATIO = 3.0  # an answer that was further off than this says something else happened
MOST_FACTOR = 4.0  # a worse error is a fault in the measuring; hiding it would not be honest


@dataclass(frozen=True, slots=True)
class Factor:
    """The ratio of measured to forecast time of one machine or link, and the number of answers behind it."""

    value: float = 1.0
    answers: int = 0

    def settled(self, forecast_s: float, measured_s: float) -> Factor:
        """Return the factor after one more answer of this very placement; the first answer counts in full.

        forecast_s: as in `learned`.
        """
        if forecast_s <= 0 or measured_s <= 0:
            return self
        weight = max(LEAST_WEIGHT, 1 / (self.answers + 1))
        moved = log(self.value) + weight * (log(measured_s) - log(forecast_s))
        return Factor(exp(_within(moved, log(MOST_FACTOR))), self.answers + 1)

    def learned(self, forecast_s: float, measured_s: float, part: float = 1.0) -> Factor:
        """Return the factor after one more answer.

        forecast_s: the forecast as it was made, with this factor in it. part: how much of both times belongs to this
        machine or link, 0 to 1. Times that are not positive are ignored.
        """
        if forecast_s <= 0 or measured_s <= 0 or part <= 0:
            return self
        off = _within(log(measured_s) - log(forecast_s), log(MOST_RATIO))
        weight = part * max(LEAST_WEIGHT, 1 / (self.answers + 2))
        moved = _within(log(self.value) + weight * off, log(MOST_FACTOR))
        return Factor(exp(moved), self.answers + 1)


@dataclass(frozen=True, slots=True)
class Habit:
    """The error of one placement's forecasts, measured against those without factors of machines and links.

    Machines that share a computer, or whose caches hold their part, do together what none does alone.
    """

    first: Factor = Factor()
    decode: Factor = Factor()

    def learned(self, plain: Forecast, ttft_s: float, tok_s: float) -> Habit:
        """Return it after one more answer. plain: the forecast without any factor."""
        if tok_s <= 0:
            return self
        return Habit(
            self.first.settled(plain.ttft_s * self.first.value, ttft_s),
            self.decode.settled(self.decode.value / plain.decode_tok_s, 1 / tok_s),
        )

    def expects(self, plain: Forecast) -> Forecast:
        """The forecast as answers of this placement have come so far."""
        return replace(
            plain, ttft_s=plain.ttft_s * self.first.value, decode_tok_s=plain.decode_tok_s / self.decode.value
        )


@dataclass(frozen=True, slots=True)
class Corrections:
    """The factors of a household."""

    machines: Mapping[MachineId, Factor] = field(default_factory=dict)
    links: Mapping[MachineId, Factor] = field(default_factory=dict)  # by the machine at the far end

    def of(self, part: Part, machine: MachineId) -> Factor:
        """Return the factor of a machine, or of the link to it; 1 where nothing is known."""
        kept = self.links if part is Part.LINK else self.machines
        return kept.get(machine, Factor())

    def learned(self, machine: MachineId, compute_s: float, way_s: float, measured_s: float) -> Corrections:
        """Return the corrections after one more answer of a machine.

        compute_s and way_s: the forecast of its computing and of the transfer there and back, with these factors in it;
        measured_s: the time that both took together. Each factor learns in proportion to its part of the forecast; the
        host has no link.
        """
        whole_s = compute_s + way_s
        if whole_s <= 0:
            return self
        here = self.of(Part.MACHINE, machine).learned(whole_s, measured_s, compute_s / whole_s)
        there = self.of(Part.LINK, machine).learned(whole_s, measured_s, way_s / whole_s)
        return Corrections(
            {**self.machines, machine: here}, {**self.links, machine: there} if way_s > 0 else self.links
        )

    def corrected(self, machine: Candidate) -> Candidate:
        """The machine as forecasts should see it now, whatever was learned when it was seen last."""
        speed, link = machine.speed, machine.link
        factor = self.of(Part.MACHINE, machine.id).value
        way_factor = self.of(Part.LINK, machine.id).value
        return replace(
            machine,
            speed=speed and slower(speed, factor / machine.factor),
            link=link and longer(link, way_factor / machine.way_factor),
            factor=factor,
            way_factor=way_factor,
        )

    def without(self, machines: Container[MachineId]) -> Corrections:
        """Return the corrections without these machines, which were measured again."""
        return Corrections(
            {key: factor for key, factor in self.machines.items() if key not in machines},
            {key: factor for key, factor in self.links.items() if key not in machines},
        )


def slower(speed: Speed, factor: float) -> Speed:
    """A machine that takes `factor` times as long for everything."""
    return replace(
        speed,
        layer_s=factor * speed.layer_s,
        layer_row_s=factor * speed.layer_row_s,
        position_s=factor * speed.position_s,
        chunk_position_s=factor * speed.chunk_position_s,
        chunk_s=factor * speed.chunk_s,
        step_s=factor * speed.step_s,
        head_s=factor * speed.head_s,
        head_row_s=factor * speed.head_row_s,
        window_position_s=factor * speed.window_position_s,
        window_chunk_position_s=factor * speed.window_chunk_position_s,
    )


def longer(link: Link, factor: float) -> Link:
    """A link on which everything takes `factor` times as long."""
    return replace(
        link,
        round_trip_s=factor * link.round_trip_s,
        out_bytes_per_s=link.out_bytes_per_s / factor,
        in_bytes_per_s=link.in_bytes_per_s / factor,
    )


def _within(value: float, most: float) -> float:
    return max(-most, min(most, value))
