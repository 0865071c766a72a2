"""Measured links, as people read them."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from app.api.snapshot import Link, LinkReport
from app.cli.views.machines_view import link_medium, links_view, megabits, short_link

MEASURED = LinkReport(
    name="attic",
    measured_round_trip_seconds=0.0003,
    round_trip_p95_seconds=0.0012,
    jitter_seconds=0.0001,
    out_bytes_per_s=117e6,
    in_bytes_per_s=11.75e6,
    interface="eth0",
    kind="ethernet",
    far_kind="ethernet",
)


def shown(*links: LinkReport) -> str:
    out = StringIO()
    Console(file=out, width=100).print(links_view(links))
    return out.getvalue()


@pytest.mark.parametrize(
    ("bytes_per_s", "words"),
    [(None, "not measured"), (125e3, "1.0 Mbit/s"), (11.75e6, "94 Mbit/s"), (300e6, "2.4 Gbit/s")],
)
def test_rates_are_said_as_networks_are_sold(bytes_per_s: float | None, words: str) -> None:
    assert megabits(bytes_per_s) == words


def test_a_row_has_every_figure() -> None:
    row = shown(MEASURED)
    for part in ("attic", "936 Mbit/s", "94 Mbit/s", "0.3 ms", "1.2 ms", "0.1 ms", "cable (eth0)"):
        assert part in row


def test_a_link_that_was_not_measured_says_why() -> None:
    text = shown(LinkReport(name="loft\x1b[2J", reason="loft is at work\x07."))
    assert "loft is at work" in text
    assert "not measured" in text
    assert "\x1b" not in text
    assert "\x07" not in text


def test_the_far_end_is_named_when_it_is_the_other_kind() -> None:
    far = Link(kind="ethernet", interface="eth0", far_kind="wifi")
    assert link_medium(far) == "cable (eth0), Wi-Fi there"
    assert link_medium(Link(kind="wifi", interface="wlan0", far_kind="unknown")) == "Wi-Fi (wlan0)"
    assert link_medium(Link()) == ""


def test_in_a_narrow_column() -> None:
    assert short_link(MEASURED) == "94 Mbit/s, 0.3 ms"
    assert short_link(Link(round_trip_seconds=0.0042)) == "4.2 ms"
    wifi = Link(kind="ethernet", far_kind="wifi", out_bytes_per_s=6e6, in_bytes_per_s=6e6,
                measured_round_trip_seconds=0.009)  # fmt: skip
    assert short_link(wifi) == "48 Mbit/s, 9.0 ms, Wi-Fi"
