"""Tests of the effect of speculation on speed, on a virtual clock: machines compute for exactly the given time."""

from __future__ import annotations

import random
from array import array
from collections.abc import Sequence
from dataclasses import replace

import psutil
import pytest

from app.core.speculation.lookup import Lookup, TokenMatch
from app.inference.pipeline.sequence import Request
from app.inference.pipeline.speed_measurement import RequestFigures
from backends.contract import Sampling
from tests.inference.guessers import Oracle
from tests.inference.pool import answer, pool, request, shape
from tests.simulation.network import Network
from tests.simulation.process import Process
from tests.simulation.truth import undisturbed
from tests.simulation.virtual_loop import VirtualLoop, run, running
from tests.simulation.world import NOBODYS

LAYER_S, ONE_WAY_S = 0.004, 0.001
N_TOKENS = 120
LOOP = Sampling(temperature=0.0, logit_bias=((100, 100.0),))  # says one token for ever
ON = request("hello", N_TOKENS)
Sizes = tuple[int, ...]


def measured(sizes: Sizes, *requests: Request) -> list[RequestFigures]:
    """The figures of these questions, one after another; no token of them is wrong."""
    chance, processes = random.Random(1), list[Process]()

    def spawn(loop: VirtualLoop, protocol: object) -> Process:
        processes.append(Process(loop, protocol, NOBODYS + len(processes), slept, lambda: 0.0))
        return processes[-1]

    async def play() -> list[RequestFigures]:
        path = f"fake:seconds_per_layer={LAYER_S}"
        network, result = Network(loop, chance, ONE_WAY_S), []
        async with pool(*sizes, paths=[path], wrap=network.wire, peers=True) as built:
            for query in requests:
                ids, finish = await answer(built.pipeline, query)
                assert ids == undisturbed(replace(query, guesses=True), shape())
                result.append(finish.figures)
        return result

    loop = VirtualLoop(spawn)
    with running(loop) as slept, pytest.MonkeyPatch.context() as patch:
        patch.setattr(psutil, "Process", lambda pid: processes[pid - NOBODYS])
        return run(loop, play())


def off(query: Request) -> Request:
    return replace(query, guesses=False)


@pytest.mark.parametrize(("sizes", "least"), [((2, 4, 2), 1.6), ((2, 3, 2, 1), 2.0), ((3, 4, 1), 1.5)])
def test_a_text_that_repeats_is_as_quick_as_the_slowest_machine(sizes: Sizes, least: float) -> None:
    loop = replace(ON, sampling=LOOP)
    warm, plain, guessed = measured(sizes, ON, off(loop), loop)
    assert warm.guessed + plain.guessed < 5
    assert guessed.guessed_right > 0.7 * N_TOKENS
    assert guessed.decode_tok_s > least * plain.decode_tok_s


@pytest.mark.parametrize("sizes", [(2, 4, 2), (2, 3, 2, 1), (1, 6, 1)])
def test_a_text_that_does_not_repeat_loses_nothing(sizes: Sizes) -> None:
    plain, guessed = measured(sizes, off(ON), ON)
    assert guessed.guessed < 0.05 * N_TOKENS
    assert guessed.decode_tok_s > 0.99 * plain.decode_tok_s


@pytest.mark.parametrize(
    ("sizes", "truth", "least"),
    [
        ((2, 4, 2), 0.2, 1.05),  # a wrong guess of equal machines costs hardly anything
        ((2, 4, 2), 0.5, 1.2),
        ((2, 3, 2, 1), 0.5, 1.25),
        ((3, 2, 3), 0.2, 1.0),
        ((1, 6, 1), 0.5, 0.94),  # here it holds the lender up, which has to be found out first
        ((1, 6, 1), 0.8, 1.1),
    ],
)
def test_guesses_that_are_right_now_and_then(
    sizes: Sizes, truth: float, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle = Oracle(truth, seed=3)
    oracle.knows(ON.ids, undisturbed(ON, shape()))
    monkeypatch.setattr(Lookup, "find", lambda _self, *known: oracle.find(*known))
    plain, guessed = measured(sizes, off(ON), ON)
    assert guessed.decode_tok_s > least * plain.decode_tok_s


@pytest.mark.parametrize("sizes", [(2, 4, 2), (1, 6, 1)])
@pytest.mark.parametrize("n_alike", [2, 16])
def test_a_lookup_that_is_always_wrong_is_soon_not_believed(
    sizes: Sizes, n_alike: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(_self: Lookup, tokens: array[int], pending: Sequence[int] = ()) -> TokenMatch:
        return TokenMatch(259 + (len(tokens) + len(pending)) % 40, n_alike)

    monkeypatch.setattr(Lookup, "find", wrong)
    plain, guessed = measured(sizes, off(ON), ON)
    assert guessed.guessed_right == 0
    assert guessed.guessed < 0.65 * N_TOKENS  # further rows take no time here
    assert guessed.decode_tok_s > 0.95 * plain.decode_tok_s
