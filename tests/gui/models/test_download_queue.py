"""The panel of downloads: their sum, their order, and buttons for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from app.api.downloads import Download, totals
from app.gui.models.models_page import ModelsPage
from app.gui.models.transfers import totals_words
from tests.gui.models.offers import GIB, download


@pytest.fixture
def posted(page: ModelsPage) -> Iterator[list[tuple[str, Any]]]:
    """The requests of the window, which reach no node."""
    requests: list[tuple[str, Any]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page.services.client, "post", lambda path, body, *_, **__: requests.append((path, body)))
        yield requests


def show(page: ModelsPage, *states: str) -> None:
    items = {
        f"d{n}": download(state, id=f"d{n}", name=f"Model {n}", place=n, done_bytes=GIB, total_bytes=4 * GIB)
        for n, state in enumerate(states)
    }
    pool = page.services.pool
    pool.snapshot = {**pool.snapshot, "downloads": dict(reversed(items.items()))}
    page.transfers.refresh()


def test_several_downloads_have_a_sum(page: ModelsPage, posted: list[tuple[str, Any]]) -> None:
    panel = page.transfers
    show(page, "running")
    assert not panel.sum.isVisibleTo(panel)
    assert not panel.pause_all.isVisibleTo(panel)
    show(page, "running", "waiting", "paused")
    assert panel.sum.whole() == "3 download(s) · 3.0 GiB of 12.0 GiB · 100 MiB/s · 1 min 01 s left"
    assert panel.pause_all.isVisibleTo(panel)
    assert panel.resume_all.isVisibleTo(panel)
    panel.pause_all.click()
    panel.resume_all.click()
    assert posted == [("/downloads/pause", None), ("/downloads/resume", None)]
    show(page, "paused", "paused")
    assert not panel.pause_all.isVisibleTo(panel)
    assert panel.sum.whole().endswith("paused")
    show(page)


def test_rows_stand_in_the_order_in_which_they_run_and_can_be_moved(
    page: ModelsPage, posted: list[tuple[str, Any]]
) -> None:
    show(page, "done", "running", "waiting", "waiting")
    panel = page.transfers
    assert [panel._box.indexOf(panel.rows[f"d{n}"]) for n in range(4)] == [0, 1, 2, 3]
    first, middle, last = (panel.rows[f"d{n}"] for n in (1, 2, 3))
    assert not panel.rows["d0"].up.isVisibleTo(panel)
    assert not first.up.isEnabled()
    assert not last.down.isEnabled()
    assert middle.up.accessibleName() == "Download Model 2 earlier"
    middle.up.click()
    middle.down.click()
    first.down.click()
    assert posted == [
        ("/downloads/d2/move", {"before": "d1"}),
        ("/downloads/d2/move", {"before": None}),
        ("/downloads/d1/move", {"before": "d3"}),
    ]
    show(page)


def test_an_unknown_size_makes_a_sum_at_least(page: ModelsPage) -> None:
    sums = totals([Download(id="a", state="running", done_bytes=GIB, total_bytes=2 * GIB), Download(id="b")])
    assert totals_words(sums) == "2 download(s) · 1.0 GiB of at least 2.0 GiB"
