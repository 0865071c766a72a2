"""Ids are exactly what they look like, or an error."""

from __future__ import annotations

import pytest

from app.core.ids import machine_id, pipeline_id


def test_ids_are_read() -> None:
    assert machine_id("0f" * 32) == "0f" * 32
    assert pipeline_id("0f" * 16) == b"\x0f" * 16


@pytest.mark.parametrize("text", ["", "0f", "0F" * 32, "xx" * 32, "0f" * 33, "０f" * 32])
def test_anything_else_is_refused(text: str) -> None:
    for read in (machine_id, pipeline_id):
        with pytest.raises(ValueError, match="hex digits"):
            read(text)
