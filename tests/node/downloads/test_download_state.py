"""Tests of a download's report about its last check."""

from __future__ import annotations

from app.node.downloads.download_ledger import DownloadProgress


def test_a_check_has_a_pace_of_its_own() -> None:
    live = DownloadProgress(100)
    live.checking(100)
    live.checked(0, 100)
    live.checked(50, 100)
    assert (live.bytes_per_s() or 0) > 0
    live.finished(100)
    assert live.bytes_per_s() is None
