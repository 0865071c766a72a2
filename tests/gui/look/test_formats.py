"""Numbers as a person reads them: no digit is shown that is not known."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QLocale

from app.gui.look import formats


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.0, "0 s"), (4.6, "5 s"), (5, "5 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (3700, "1 h 01 min")],
)
def test_a_time_that_is_known_to_a_second_has_no_tenths(value: float, expected: str) -> None:
    assert formats.whole_seconds(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(0.3, "2 s"), (4.2, "5 s"), (21, "25 s"), (57, "1 min"), (280, "5 min")]
)
def test_a_time_to_come_is_round(value: float, expected: str) -> None:
    assert formats.roughly(value) == expected


@pytest.mark.parametrize(
    ("watt_hours", "expected"), [(0.14, "0.1 Wh"), (9.0, "9.0 Wh"), (250.4, "250 Wh"), (1240, "1.2 kWh")]
)
def test_energy_is_told_as_on_a_bill(watt_hours: float, expected: str) -> None:
    assert formats.energy(watt_hours) == expected


@pytest.mark.parametrize(("language", "expected"), [("en", "25%"), ("de", "25 %")])
def test_a_percentage_is_written_as_in_its_language(language: str, expected: str) -> None:
    before = QLocale()
    QLocale.setDefault(QLocale(language))
    try:
        assert formats.percent(0.25) == expected
    finally:
        QLocale.setDefault(before)
