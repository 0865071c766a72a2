"""Tests of whether a window can be shown, and of the message if it cannot."""

from __future__ import annotations

import sys

import pytest

from app.cli import welcome
from app.core.errors import AppError
from app.core.reasons import said


def test_a_display_is_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert welcome.has_screen() is (sys.platform in ("win32", "darwin"))
    monkeypatch.setenv("DISPLAY", ":7")
    assert welcome.has_screen()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="libraries come with Qt elsewhere")
def test_missing_libraries_are_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setitem(welcome.X11_LIBRARIES, "libno-such-thing.so.9", "libno-such-thing9")
    with pytest.raises(AppError) as refused:
        welcome.require_libraries()
    assert "apt-get install libno-such-thing9" in said(refused.value)
