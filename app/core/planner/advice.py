"""Advice on which cable or how much memory would help most. Each change is tested by planning again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from app.core.errors import Reason
from app.core.household.link import Link, LinkKind
from app.core.model import Model
from app.core.planner.forecast import uses_wifi
from app.core.planner.placement import PLENTY_BYTES, Candidate, Forecast, Plan, Workload
from app.core.planner.topologies import TopologyOption, TopologySearch

LEAST_GAIN = 0.10  # a smaller gain is not worth the effort
MAX_SUGGESTIONS = 3
CABLE_BYTES_PER_S = 117e6  # a gigabit link without its protocol overhead
CABLE_ROUND_TRIP_S = 0.0003


def advise(
    host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload, now: Plan
) -> tuple[Reason, ...]:
    """Return the changes that would shorten requests by at least a tenth, best first, with the gain from each.

    Idle graphics cards come first, because no cable gains as much.

    now: the plan for the same machines. A topology that a person chose is not changed. There is no advice if the split
    is forced or the plan is not based on measurements.
    """
    known = now.forecast
    if known is None or not now.alternatives:
        return ()
    cards = _idle_cards(host, lenders, now)
    measured = [lender for lender in lenders if lender.speed and lender.link]
    limit_s = (1 - LEAST_GAIN) * known.request_s
    advice: list[tuple[float, Reason]] = []
    for machine, changed, is_link in _changes(host, measured):
        after = [changed if candidate is machine else candidate for candidate in (host, *measured)]
        then = TopologySearch(after[0], after[1:], model, workload).below(limit_s, now.allowed)
        if then is not None:
            gain = _Gain(known, then, workload.users)
            reason = _of_link(machine, host, gain) if is_link else _of_memory(machine, gain)
            advice.append((then.forecast.request_s, reason))
    advice.sort(key=lambda ranked: ranked[0])
    return tuple([*cards, *(reason for _, reason in advice)][:MAX_SUGGESTIONS])


def _idle_cards(host: Candidate, lenders: Sequence[Candidate], now: Plan) -> list[Reason]:
    """Return advice on the graphics cards of the plan's machines that only lack an engine pack.

    How much faster a card is can be measured only with its pack, so the advice states no figure.
    """
    used = {stage.machine for stage in now.stages}
    return [
        Reason("advice_card", {"machine": machine.name, "card": machine.idle_card.name, "pack": machine.idle_card.pack})
        for machine in (host, *lenders)
        if machine.idle_card is not None and machine.id in used
    ]


def _changes(host: Candidate, lenders: Sequence[Candidate]) -> Iterator[tuple[Candidate, Candidate, bool]]:
    """Yield each possible change: the machine before, the machine after, and whether the change is to its link."""
    for machine in (host, *lenders):
        if machine.link is not None and (wired := by_cable(machine.link)) != machine.link:
            yield machine, replace(machine, link=wired), True
        yield machine, replace(machine, lends_bytes=PLENTY_BYTES), False


@dataclass(frozen=True, slots=True)
class _Gain:
    """The performance before and after a change."""

    now: Forecast
    then: TopologyOption
    users: int

    @property
    def rates(self) -> tuple[float, float]:
        """Return the tokens per second before and after the change."""
        then = self.then.forecast
        if self.users > 1:
            return self.now.together_tok_s, then.together_tok_s
        return self.now.decode_tok_s, then.decode_tok_s

    @property
    def times(self) -> tuple[float, float]:
        """Return the seconds of a typical request before and after the change."""
        return self.now.request_s, self.then.forecast.request_s

    @property
    def is_faster(self) -> bool:
        """Return whether the change increases the tokens per second. Otherwise it only shortens requests."""
        now, then = self.rates
        return then >= (1 + LEAST_GAIN) * now


def by_cable(link: Link) -> Link:
    """Return the link as it would be over a gigabit cable. Values that are already better are unchanged."""
    allowed = link.limit_bytes_per_s or CABLE_BYTES_PER_S
    rate = min(CABLE_BYTES_PER_S, allowed)  # a cable does not lift the owner's limit
    return replace(
        link,
        round_trip_s=min(link.round_trip_s, CABLE_ROUND_TRIP_S),
        out_bytes_per_s=max(link.out_bytes_per_s, rate),
        in_bytes_per_s=max(link.in_bytes_per_s, rate),
        kind=_wired(link.kind),
        far_kind=_wired(link.far_kind),
    )


def _wired(kind: LinkKind) -> LinkKind:
    return LinkKind.ETHERNET if kind is LinkKind.WIFI else kind


def _of_link(lender: Candidate, host: Candidate, gain: _Gain) -> Reason:
    link = lender.link
    assert link is not None
    only_here = link.kind is LinkKind.WIFI and link.far_kind not in (LinkKind.WIFI, LinkKind.UNKNOWN)
    name = host.name if only_here else lender.name
    megabits = 8e-6 * min(link.out_bytes_per_s, link.in_bytes_per_s)
    milliseconds = 1e3 * link.round_trip_s
    wifi = uses_wifi(link)
    if gain.is_faster:
        now, then = gain.rates
        return Reason(
            "advice_wifi_rate" if wifi else "advice_link_rate",
            {"machine": name, "megabits": megabits, "milliseconds": milliseconds, "now_tok_s": now, "with_tok_s": then},
        )
    now, then = gain.times
    return Reason(
        "advice_wifi_time" if wifi else "advice_link_time",
        {"machine": name, "megabits": megabits, "milliseconds": milliseconds, "now_s": now, "with_s": then},
    )


def _of_memory(machine: Candidate, gain: _Gain) -> Reason:
    more = gain.then.held_bytes(machine.id) - machine.lends_bytes
    if gain.is_faster:
        now, then = gain.rates
        return Reason(
            "advice_memory_rate", {"machine": machine.name, "more_bytes": more, "now_tok_s": now, "with_tok_s": then}
        )
    now, then = gain.times
    return Reason("advice_memory_time", {"machine": machine.name, "more_bytes": more, "now_s": now, "with_s": then})
