"""The page that Prometheus reads, after answers were made."""

from __future__ import annotations

import asyncio
import json
import re

import aiohttp

from app.api.responses import Answer
from app.gateway.metrics import Metrics
from tests.gateway.conftest import Open
from tests.node.prometheus import samples

KINDS = {
    "decode_tokens_per_second": "histogram", "time_to_first_token_seconds": "histogram",
    "time_between_tokens_seconds": "histogram", "request_to_driver_seconds": "histogram",
    "queue_waiting": "gauge", "queue_running": "gauge", "answers_running": "gauge", "model_loaded": "gauge",
    "vectors_memory_bytes": "gauge", "replica_up": "gauge", "replica_answers": "gauge",
    "requests_total": "counter", "tokens_total": "counter", "guessed_tokens_total": "counter",
    "recoveries_total": "counter", "stage_busy_seconds_total": "counter", "stage_wait_seconds_total": "counter",
    "stage_steps_total": "counter", "link_bytes_total": "counter",
}  # fmt: skip


async def test_the_page_counts_what_was_done(http: aiohttp.ClientSession) -> None:
    ask = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 5, "temperature": 0}
    async with http.post("/v1/chat/completions", json=ask) as answer:
        assert answer.status == 200
    async with http.get("/metrics") as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = await answer.text()
    assert samples(text, "tokens_total", kind="answer")[0] >= 5
    request = {"path": "/v1/chat/completions", "status": "200"}
    assert samples(text, "requests_total", **request)[0] >= 1
    (right,), (answered,) = (
        samples(text, "guessed_tokens_total", outcome="right"),
        samples(text, "tokens_total", kind="answer"),
    )
    assert 0 <= right < answered  # even one machine may check guesses, where that is measured to be faster
    (begun,) = samples(text, "time_to_first_token_seconds_count")
    (ended,) = samples(text, "request_to_driver_seconds_count")
    assert 1 <= ended <= begun  # others that were cut off in between are not timed whole
    assert samples(text, "request_to_driver_seconds_sum")[0] > 0
    assert samples(text, "time_between_tokens_seconds_count")[0] >= 3
    assert samples(text, "model_loaded", model="guide") == [1]
    assert samples(text, "decode_tokens_per_second_sum")[0] > 0
    assert samples(text, "decode_tokens_per_second_count")[0] >= 1
    for name in ("queue_waiting", "queue_running", "recoveries_total"):
        assert len(samples(text, name)) == 1
    assert dict(re.findall(r"^# TYPE poolhouse_(\S+) (\S+)$", text, re.MULTILINE)) == KINDS
    (busy,) = samples(text, "stage_busy_seconds_total")
    (waited,) = samples(text, "stage_wait_seconds_total")
    assert busy > 0
    assert waited >= 0
    stages = re.findall(r"^poolhouse_stage_steps_total.*", text, re.MULTILINE)
    assert stages
    assert all('layers="1-' in stage for stage in stages), stages  # counted as `status` does
    assert samples(text, "link_bytes_total", direction="out")


async def test_a_route_asked_by_another_method_is_counted_by_its_name(http: aiohttp.ClientSession) -> None:
    for path, status in (("/v1/models/guide", 405), ("/nobody/knows", 404)):
        async with http.delete(path) as answer:
            assert (answer.status, "nothing at" in await answer.text()) == (status, status == 404)
    async with http.get("/metrics") as answer:
        page = await answer.text()
    assert samples(page, "requests_total", path="/v1/models/{name}", status="405")
    assert samples(page, "requests_total", path="(none)", status="404")
    assert not samples(page, "requests_total", path="(none)", status="405")


async def test_the_owner_s_own_answers_are_counted_too(api: Open, http: aiohttp.ClientSession) -> None:
    before = await counted(http, "answer")
    ask = ("ask", "Hello", "--max-tokens", "3", "--json")
    data = json.loads((await asyncio.to_thread(api.node.run, *ask)).stdout)
    assert await counted(http, "answer") == before + len(data["token_ids"])


async def counted(http: aiohttp.ClientSession, kind: str) -> float:
    async with http.get("/metrics") as page:
        return sum(samples(await page.text(), "tokens_total", kind=kind))


async def test_what_was_read_and_written_counts_also_of_who_left(http: aiohttp.ClientSession) -> None:
    begun = [await counted(http, kind) for kind in ("prompt", "answer")]
    question = {"role": "user", "content": f"Which of all these words is the last one? {'maybe ' * 60}"}
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
    figures = Metrics()
    figures.count(
        Answer(
            prompt_tokens=9,
            reused_tokens=4,
            token_ids=[1, 2],
            guessed=3,
            guessed_right=2,
            recoveries=2,
            decode_tok_s=30.0,
        )
    )
    page = figures.page().decode()
    assert samples(page, "tokens_total", kind="prompt") == [5]
    assert samples(page, "tokens_total", kind="reused") == [4]
    assert samples(page, "guessed_tokens_total", outcome="wrong") == [1]
    assert samples(page, "recoveries_total") == [2]
    assert samples(page, "decode_tokens_per_second_count") == [1]


def test_buckets_add_up() -> None:
    figures = Metrics()
    for measure in (0.5, 1, 1.5, 900):
        figures.rate.observe(measure)
    page = figures.page().decode()
    counts = [samples(page, "decode_tokens_per_second_bucket", le=le) for le in ("1.0", "2.0", "+Inf")]
    assert counts == [[2], [3], [4]]
    assert samples(page, "decode_tokens_per_second_sum") == [903]
    assert samples(page, "decode_tokens_per_second_count") == [4]


def test_labels_are_escaped() -> None:
    figures, odd = Metrics(), 'x"\n\\'
    figures.tokens.labels(kind=odd).inc()
    page = figures.page().decode()
    assert '{kind="x\\"\\n\\\\"} 1.0\n' in page
    assert samples(page, "tokens_total", kind=odd) == [1]
    assert page.count("# TYPE") == 8


def test_a_number_that_has_grown_large_still_grows_by_one() -> None:
    figures = Metrics()
    for more in (123_456_789_012, 1):
        figures.tokens.labels(kind="answer").inc(more)
    assert samples(figures.page().decode(), "tokens_total", kind="answer") == [123_456_789_013]
