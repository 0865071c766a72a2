"""The page that Prometheus reads, after answers were made."""

from __future__ import annotations

import asyncio
import json
import re

import aiohttp

from app.node.chat_api.figures import Figures, Histogram, series
from tests.node.chat_api.conftest import Open

KINDS = {
    "decode_tokens_per_second": "histogram", "time_to_first_token_seconds": "histogram",
    "time_between_tokens_seconds": "histogram", "request_to_driver_seconds": "histogram",
    "queue_waiting": "gauge", "queue_running": "gauge", "answers_running": "gauge", "model_loaded": "gauge",
    "vectors_memory_bytes": "gauge", "replica_up": "gauge", "replica_answers": "gauge",
    "requests_total": "counter", "tokens_total": "counter", "guessed_tokens_total": "counter",
    "recoveries_total": "counter", "stage_busy_seconds_total": "counter", "stage_wait_seconds_total": "counter",
    "stage_steps_total": "counter", "link_bytes_total": "counter",
}  # fmt: skip
LINE = re.compile(r'[a-z_]+(\{[a-z]+="[^"\n]*"(,[a-z]+="[^"\n]*")*\})? [0-9.e+-]+')


async def test_the_page_counts_what_was_done(http: aiohttp.ClientSession) -> None:
    ask = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 5, "temperature": 0}
    async with http.post("/v1/chat/completions", json=ask) as answer:
        assert answer.status == 200
    async with http.get("/metrics") as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = await answer.text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(LINE.fullmatch(line) or 'le="' in line for line in lines), lines
    values = dict(line.rsplit(" ", 1) for line in lines)
    assert float(values['poolhouse_tokens_total{kind="answer"}']) >= 5
    assert float(values['poolhouse_requests_total{path="/v1/chat/completions",status="200"}']) >= 1
    assert (
        values['poolhouse_guessed_tokens_total{outcome="right"}'] == "0"
    )  # one machine: none idle
    begun = float(values["poolhouse_time_to_first_token_seconds_count"])
    ended = float(values["poolhouse_request_to_driver_seconds_count"])
    assert 1 <= ended <= begun  # others that were cut off in between are not timed whole
    assert float(values["poolhouse_request_to_driver_seconds_sum"]) > 0
    assert float(values["poolhouse_time_between_tokens_seconds_count"]) >= 3
    assert values['poolhouse_model_loaded{model="guide"}'] == "1"
    assert float(values["poolhouse_decode_tokens_per_second_sum"]) > 0
    assert float(values["poolhouse_decode_tokens_per_second_count"]) >= 1
    assert {"poolhouse_queue_waiting", "poolhouse_queue_running"} <= values.keys()
    assert "poolhouse_recoveries_total" in values
    assert dict(re.findall(r"^# TYPE poolhouse_(\S+) (\S+)$", text, re.MULTILINE)) == KINDS
    (busy,), (waited,) = (
        [
            values[name]
            for name in values
            if name.startswith(f"poolhouse_stage_{what}_seconds_total")
        ]
        for what in ("busy", "wait")
    )
    assert float(busy) > 0
    assert float(waited) >= 0
    stages = [name for name in values if name.startswith("poolhouse_stage_steps_total")]
    assert all('layers="1-' in name for name in stages), stages  # counted as `status` does
    assert any(
        name.startswith("poolhouse_link_bytes_total") and 'direction="out"' in name
        for name in values
    )


async def test_a_route_asked_by_another_method_is_counted_by_its_name(
    http: aiohttp.ClientSession,
) -> None:
    for path, status in (("/v1/models/guide", 405), ("/nobody/knows", 404)):
        async with http.delete(path) as answer:
            assert (answer.status, "nothing at" in await answer.text()) == (status, status == 404)
    async with http.get("/metrics") as answer:
        page = await answer.text()
    assert 'poolhouse_requests_total{path="/v1/models/{name}",status="405"}' in page
    assert 'poolhouse_requests_total{path="(none)",status="404"}' in page
    assert 'path="(none)",status="405"' not in page


async def test_the_owner_s_own_answers_are_counted_too(
    api: Open, http: aiohttp.ClientSession
) -> None:
    before = await counted(http, "answer")
    ask = ("ask", "Hello", "--max-tokens", "3", "--json")
    told = json.loads((await asyncio.to_thread(api.node.run, *ask)).stdout)
    assert await counted(http, "answer") == before + len(told["token_ids"])


async def counted(http: aiohttp.ClientSession, kind: str) -> float:
    async with http.get("/metrics") as page:
        found = re.search(rf'tokens_total\{{kind="{kind}"\}} (\S+)', await page.text())
        return float(found[1]) if found else 0.0


async def test_what_was_read_and_written_counts_also_of_who_left(
    http: aiohttp.ClientSession,
) -> None:
    begun = [await counted(http, kind) for kind in ("prompt", "answer")]
    question = {
        "role": "user",
        "content": f"Which of all these words is the last one? {'maybe ' * 60}",
    }
    ask = {"messages": [question], "max_tokens": 500, "stream": True}
    async with http.post("/v1/chat/completions", json=ask) as answer:
        await answer.content.readuntil(b"content")
        answer.close()
    async with asyncio.timeout(30):
        now = begun
        while now == begun:
            now = [await counted(http, kind) for kind in ("prompt", "answer")]
    read, wrote = (after - before for after, before in zip(now, begun, strict=True))
    assert read > 60
    assert 1 <= wrote < 500


def test_what_an_answer_went_through_is_counted() -> None:
    figures = Figures()
    figures.count(
        {"prompt_tokens": 9, "reused_tokens": 4, "token_ids": [1, 2], "guessed": 3, "guessed_right": 2,
         "recoveries": 2, "decode_tok_s": 30.0}
    )  # fmt: skip
    page = figures.text({})
    for line in (
        'poolhouse_tokens_total{kind="prompt"} 5',
        'poolhouse_tokens_total{kind="reused"} 4',
        'poolhouse_guessed_tokens_total{outcome="wrong"} 1',
        "poolhouse_recoveries_total 2",
        "poolhouse_decode_tokens_per_second_count 1",
    ):
        assert f"\n{line}\n" in page


def test_buckets_add_up() -> None:
    seen = Histogram((1, 2))
    for measure in (0.5, 1, 1.5, 9):
        seen.add(measure)
    text = seen.text("m", "About.")
    assert (
        'm_bucket{le="1"} 2\nm_bucket{le="2"} 3\nm_bucket{le="+Inf"} 4\nm_sum 12.000000\nm_count 4\n'
        in text
    )


def test_labels_are_escaped() -> None:
    assert series("m", "gauge", "About.", [({"a": 'x"\n\\'}, 1)]).endswith('m{a="x\\"\\n\\\\"} 1\n')
    assert Figures().text({}).count("# TYPE") == 8


def test_a_number_that_has_grown_large_still_grows_by_one() -> None:
    figures = Figures()
    for more in (123_456_789_012, 1):
        figures.tokens.add(more, kind="answer")
    assert 'tokens_total{kind="answer"} 123456789013\n' in figures.text({})
    assert series("m", "gauge", "About.", [({}, 0.1 + 0.2)]).endswith("m 0.3\n")
