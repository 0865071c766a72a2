"""The page that Prometheus reads, after answers were made."""

from __future__ import annotations

import re

import aiohttp

from app.node.chat_api.figures import Figures, Histogram, series

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
    (busy,) = [
        values[name] for name in values if name.startswith("poolhouse_stage_busy_seconds_total")
    ]
    assert float(busy) > 0
    assert any(
        name.startswith("poolhouse_link_bytes_total") and 'direction="out"' in name
        for name in values
    )


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
