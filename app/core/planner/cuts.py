"""What a run of layers must hold, beside beginning and ending at a boundary. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from backends.contract import Layers


@dataclass(frozen=True, slots=True)
class RunRules:
    """Facts of a model that every run of its layers must keep to; a whole model always does."""

    every_run: tuple[tuple[int, ...], ...] = ()  # of each of these groups of layers, a run holds one
    not_long: tuple[int, ...] = ()  # numbers of layers that no run may have

    def allow(self, layers: Layers) -> bool:
        """Whether an engine can hold just these layers."""
        if len(layers) in self.not_long:
            return False
        return all(_holds(group, layers) for group in self.every_run)


ANY_RUN = RunRules()


def _holds(group: Sequence[int], layers: Layers) -> bool:
    place = bisect_left(group, layers.first)
    return place < len(group) and group[place] < layers.last


def reachable(boundaries: Iterable[int], n_layers: int, rules: RunRules) -> tuple[int, ...]:
    """Of these boundaries, those at which some legal way through all layers passes."""
    edges = (0, *boundaries, n_layers)
    fore, back = {0}, {n_layers}
    for index, edge in enumerate(edges):
        if any(a in fore and rules.allow(Layers(a, edge)) for a in edges[:index]):
            fore.add(edge)
    for index, edge in reversed(list(enumerate(edges))):
        if any(b in back and rules.allow(Layers(edge, b)) for b in edges[index + 1 :]):
            back.add(edge)
    return tuple(edge for edge in edges[1:-1] if edge in fore and edge in back)


def fewest(
    run: Layers, boundaries: Iterable[int], rules: RunRules, fits: Callable[[Layers], bool]
) -> tuple[Layers, ...]:
    """The fewest legal runs that together are `run`, each of them such that it fits; none: there are no such."""
    edges = [run.first, *(edge for edge in boundaries if run.first < edge < run.last), run.last]
    ways: dict[int, tuple[Layers, ...]] = {run.first: ()}  # by where they end
    for place, last in enumerate(edges[1:], 1):
        parts = [Layers(first, last) for first in edges[:place] if first in ways]
        there = [(*ways[one.first], one) for one in parts if rules.allow(one) and fits(one)]
        if there:
            ways[last] = min(there, key=len)
    return ways.get(run.last, ())


def nearest(wanted: int, allowed: Sequence[int]) -> tuple[int, ...]:
    """The closest of these numbers below and above; fewer where there is none."""
    place = bisect_left(allowed, wanted)
    return tuple(allowed[max(0, place - 1) : place + 1])
