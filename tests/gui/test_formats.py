"""Numbers as a person reads them: no digit is shown that is not known."""

from __future__ import annotations

import pytest

from app.gui import formats


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0.0, "0 s"),
        (4.6, "5 s"),
        (5, "5 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (3700, "1 h 01 min"),
    ],
)
def test_a_time_that_is_known_to_a_second_has_no_tenths(value: float, told: str) -> None:
    assert formats.whole_seconds(value) == told
