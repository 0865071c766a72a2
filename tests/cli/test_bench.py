"""The benchmark: its figures from known times, and what it asks of a node."""

from __future__ import annotations

from typing import Any

import pytest

from app.api.responses import Answer
from app.core.bench import BenchRound, TimedAnswer, energy, figures, percentile, prompt_ids, spread, stages
from app.decoding import convert
from tests.cli.answers import ANSWER, KITCHEN, LOADED, MODELS, PLAN, SNAPSHOT, STAGES, Json, streamed
from tests.cli.fake_node import Failed, FakeNode, Lines, error

KNOWN = convert({**ANSWER, "token_ids": list(range(11)), "prompt_tokens": 100}, Answer)


def timed(first: float, last: float) -> TimedAnswer:
    return TimedAnswer(first, last, KNOWN)


def test_energy_of_a_token_is_that_of_all_machines() -> None:
    rounds = [BenchRound((timed(0.5, 1.5),), 10.0), BenchRound((timed(0.7, 2.7),), 12.0)]
    result = energy(72.0, rounds)
    assert result is not None
    assert result["watt_hours"] == pytest.approx(72.0 * 22 / 3600)
    assert result["joules_per_token"] == pytest.approx(72.0 * 22 / 22)  # 11 tokens each
    assert energy(None, rounds) is None


def test_speed_of_one_stream() -> None:
    result = figures(1, [BenchRound((timed(0.5, 1.5),), 1.6), BenchRound((timed(0.7, 2.7),), 2.8)])
    assert result["ttft_s"]["mean"] == pytest.approx(0.6)
    assert result["ttft_s"]["deviation"] == pytest.approx(0.1414, abs=1e-4)
    assert result["decode_tok_s"]["mean"] == pytest.approx((10 + 5) / 2)
    assert result["total_tok_s"]["mean"] == pytest.approx((11 / 1.6 + 11 / 2.8) / 2)
    assert result["prefill_tok_s"]["high"] == pytest.approx(200)
    assert result["tokens"] == [11, 11]


def test_who_was_busy_hears_no_faster_than_it_was_made() -> None:
    """Seen: 35,645 tok/s from the Guide, on a computer that was busy."""
    rate = KNOWN.decode_tok_s
    assert rate is not None
    assert timed(0.5, 0.5001).decode_tok_s == rate
    assert timed(0.5, 0.5).decode_tok_s == rate
    assert timed(0.5, 0.5 + 20 / rate).decode_tok_s == pytest.approx(rate / 2)


def test_streams_together_count_all_tokens_of_the_round() -> None:
    result = figures(2, [BenchRound((timed(0.5, 1.5), timed(0.9, 1.9)), 2.0)])
    assert result["total_tok_s"]["mean"] == pytest.approx(11.0)
    assert result["ttft_p99_s"] == 0.9
    assert result["total_tok_s"]["deviation"] is None


def test_what_was_not_measured_is_none() -> None:
    assert spread([]) is None
    assert percentile([], 0.99) is None
    single = TimedAnswer(0.5, 0.5, convert({**ANSWER, "token_ids": [1]}, Answer))
    assert figures(1, [BenchRound((single,), 1.0)])["decode_tok_s"] is None


@pytest.mark.parametrize(("n", "rank"), [(1, 0), (40, 39), (100, 98), (200, 197)])
def test_the_percentile_is_nearest_rank(n: int, rank: int) -> None:
    assert percentile([float(i) for i in range(n)], 0.99) == rank


def test_prompts_differ_from_the_first_token_on_and_repeat_with_the_seed() -> None:
    choice = [(streams, run, stream) for streams in (1, 8) for run in range(5) for stream in range(8)]
    prompts = [tuple(prompt_ids(7, group, 64, 4096)) for group in choice]
    assert len({prompt[:2] for prompt in prompts}) == len(prompts)
    assert prompts[0] == tuple(prompt_ids(7, choice[0], 64, 4096))
    assert all(0 <= token < 4096 for prompt in prompts for token in prompt)
    assert max(prompt_ids(7, (1, 0, 0), 500, None)) < 259


def test_stages_are_the_mean_of_an_answer() -> None:
    reports = stages([KNOWN, KNOWN])
    assert [(item["first"], item["last"]) for item in reports] == [(0, 4), (4, 8), (8, 12)]
    assert reports[1] == {"machine": "attic-pc", "first": 4, "last": 8, "busy_s": 0.12,
                       "wait_s": 0.01, "bytes_in": 12288, "bytes_out": 12288, "steps": 3}  # fmt: skip


ARGUMENTS = ("bench", "guide", "--prompt", "32", "--output", "4", "--streams", "1,3", "--runs", "2")


def test_it_measures_a_loaded_model(poolhouse: Any, answering: Any) -> None:
    node = answering(
        {
            ("GET", "/models"): {"models": MODELS},
            ("GET", "/status"): SNAPSHOT,
            ("POST", "/ask"): lambda body: streamed(*"abcd"),
        }
    )
    said = poolhouse(*ARGUMENTS, "--json")
    assert [result["streams"] for result in said.json["results"]] == [1, 3]
    assert said.json["results"][1]["tokens"] == [4] * 6
    requests = [body for _, path, body in node.asked if path == "/ask"]
    assert len(requests) == 1 + 2 + 6
    assert len({tuple(body["prompt_ids"]) for body in requests}) == len(requests)
    assert all(len(body["prompt_ids"]) == 32 and body["ignore_end"] for body in requests)
    assert not [path for _, path, _ in node.asked if path == "/load"]


def test_it_loads_what_does_not_suffice_and_says_what_flatters(poolhouse: Any, answering: Any) -> None:
    reused = {**ANSWER, "reused_tokens": 5, "token_ids": [1, 2]}
    node = answering(
        {
            ("GET", "/models"): {"models": MODELS},
            ("GET", "/status"): {**SNAPSHOT, "loaded": None},
            ("POST", "/load"): Lines([{"done": {"loaded": LOADED}}]),
            ("POST", "/unload"): {"unloaded": "guide"},
            ("POST", "/ask"): lambda body: streamed(*"ab", answer=reused),
        }
    )
    said = poolhouse(*ARGUMENTS, "--split", "4,4,4")
    assert said.code == 0
    load = next(body for _, path, body in node.asked if path == "/load")
    assert load == {
        "model": "guide", "split": [4, 4, 4], "number": "f16", "context": 36, "users": 3
    }  # fmt: skip
    assert node.asked[-1][1] == "/unload"  # as it was before
    assert "prompt tokens were reused, not computed." in said.out
    assert "an answer ended early, after 2 tokens." in said.out
    assert max(len(line) for line in said.out.splitlines()) <= 80


SHORT: Json = {**LOADED, "context": 8, "shape": "split", "kv": "q8_0", "number": "q8", "exact": True}
SPLIT = [stage["last"] - stage["first"] for stage in LOADED["stages"]]
ELSEWHERE = Lines([{"done": {**PLAN, "stages": [{**STAGES[0], "last": 12, "role": "whole"}]}}])
UNKNOWN = Failed(404, error("BadInput", "model_unknown", "guide is gone.", name="guide", there=""))


def pool_with(answering: Any, was: Json | None, **more: Any) -> FakeNode:
    """A node with something loaded: `/status` tells of what was loaded last. loads: so many succeed."""
    now, n_loads = [was], [0]

    def load(body: Json) -> Any:
        if n_loads[0] == more.get("loads", 2):
            return UNKNOWN
        n_loads[0] += 1
        now[0] = {**LOADED, "context": body.get("context"), "users": 3}
        return Lines([{"done": {"loaded": now[0]}}])

    return answering(  # type: ignore[no-any-return]
        {
            ("GET", "/models"): {"models": MODELS},
            ("GET", "/status"): lambda body: {**SNAPSHOT, "loaded": now[0]},
            ("POST", "/plan"): more.get("plan", Lines([{"done": PLAN}])),
            ("POST", "/load"): load,
            ("POST", "/ask"): more.get("ask", lambda body: streamed(*"abcd")),
        }
    )


def bodies(node: FakeNode, path: str) -> list[Json]:
    return [body for _, where, body in node.asked if where == path]


def test_what_was_loaded_is_loaded_again_as_the_planner_does_it(poolhouse: Any, answering: Any) -> None:
    """Its machines, how its context is kept and its numbers travel: nothing is left to chance."""
    node = pool_with(answering, SHORT)
    assert poolhouse(*ARGUMENTS).code == 0
    own, again = bodies(node, "/load")
    assert own["context"] == 36
    assert again == {
        "model": "guide", "context": 8, "users": 8, "kv": "q8_0", "number": "q8", "exact": True,
        "measure": False, "without": [KITCHEN], "shape": "split",
    }  # fmt: skip
    assert bodies(node, "/plan")[0]["number"] == "q8"


def test_a_split_by_hand_comes_back_by_hand(poolhouse: Any, answering: Any) -> None:
    def plan(body: Json) -> Any:
        return Lines([{"done": PLAN}]) if "split" in body else ELSEWHERE

    node = pool_with(answering, SHORT, plan=plan)
    assert poolhouse(*ARGUMENTS).code == 0
    again = bodies(node, "/load")[1]
    assert (again["split"], again["kv"], again["without"]) == (SPLIT, "q8_0", [KITCHEN])
    assert "shape" not in again


@pytest.mark.parametrize("plan", [ELSEWHERE, UNKNOWN])
def test_counts_are_not_given_to_other_machines(poolhouse: Any, answering: Any, plan: Any) -> None:
    """The planner places the same model on the same machines, even if it would now choose another split."""
    node = pool_with(answering, SHORT, plan=plan)
    assert poolhouse(*ARGUMENTS).code == 0
    assert len(bodies(node, "/plan")) == 2
    again = bodies(node, "/load")[1]
    assert "split" not in again
    assert again["without"] == [KITCHEN]


def test_figures_are_not_lost_where_what_was_loaded_does_not_come_back(poolhouse: Any, answering: Any) -> None:
    pool_with(answering, SHORT, loads=1)
    said = poolhouse(*ARGUMENTS, "--json")
    assert said.code == 0
    assert [result["streams"] for result in said.json["results"]] == [1, 3]
    sentence, after = said.err.splitlines()[-2:]
    assert "guide" in sentence
    assert after == "The model that was loaded before the benchmark was not loaded again."


def test_a_benchmark_that_fails_puts_back_what_was_loaded(poolhouse: Any, answering: Any) -> None:
    silent = Lines([{"done": {**ANSWER, "token_ids": []}}])
    node = pool_with(answering, SHORT, ask=lambda body: silent)
    said = poolhouse(*ARGUMENTS)
    assert said.code == 1
    assert said.err.splitlines()[-1].startswith("guide generated no tokens")
    assert [body["context"] for body in bodies(node, "/load")] == [36, 8]


def test_what_a_refused_load_left_alone_is_not_loaded_anew(poolhouse: Any, answering: Any) -> None:
    node = pool_with(answering, SHORT, loads=0)
    assert poolhouse(*ARGUMENTS).code == 1
    assert len(bodies(node, "/load")) == 1


def test_one_failed_stream_ends_the_benchmark_with_its_sentence(poolhouse: Any, answering: Any) -> None:
    answering(
        {
            ("GET", "/models"): {"models": MODELS},
            ("GET", "/status"): SNAPSHOT,
            ("POST", "/ask"): Lines([{"done": {**ANSWER, "token_ids": []}}]),
        }
    )
    said = poolhouse(*ARGUMENTS)
    assert said.code == 1
    assert said.err.splitlines()[-1].startswith("guide generated no tokens")
