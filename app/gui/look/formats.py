"""Numbers, quantities and times formatted for the user's language and country."""

from __future__ import annotations

import math

from PySide6.QtCore import QCoreApplication, QDate, QDateTime, QLocale

from app.core.planner.forecast_range import rounded_range

GIB, MIB, KIB = 1 << 30, 1 << 20, 1 << 10
MINUTE_S, HOUR_S, STEP_S = 60, 3600, 5


def number(value: float, digits: int = 0) -> str:
    """Format a number with `digits` decimals."""
    return QLocale().toString(float(value), "f", digits)


def size(n_bytes: float) -> str:
    """Format a number of bytes in GiB, MiB, KiB or B."""
    if n_bytes >= GIB:
        return f"{number(n_bytes / GIB, 1)} GiB"
    if n_bytes >= MIB:
        return f"{number(n_bytes / MIB, 0 if n_bytes >= 10 * MIB else 1)} MiB"
    if 0 < n_bytes < KIB:
        return f"{number(n_bytes)} B"
    return f"{number(n_bytes / KIB)} KiB"


def whole_size(n_bytes: float, most: float | None = None) -> str:
    """Format a number of bytes in whole GiB, or a range such as `4–16 GiB`."""
    low = number(n_bytes / GIB)
    return f"{low} GiB" if most is None else f"{low}–{number(most / GIB)} GiB"


def rate(bytes_per_s: float) -> str:
    """Format the throughput of a link in Mbit/s or Gbit/s."""
    mbit = bytes_per_s * 8 / 1e6
    if mbit >= 1000:
        return f"{number(mbit / 1000, 2)} Gbit/s"
    return f"{number(mbit, 0 if mbit >= 10 else 1)} Mbit/s"


def energy(watt_hours: float) -> str:
    """Format an amount of energy in Wh, or in kWh from 1000 Wh."""
    if watt_hours >= 1000:
        return f"{number(watt_hours / 1000, 1)} kWh"
    return f"{number(watt_hours, 1 if watt_hours < 10 else 0)} Wh"


def token_energy(joules: float) -> str:
    """Format the energy used per token of an answer."""
    return f"{number(joules, 2 if joules < 10 else 0)} J/token"


def speed(tok_s: float) -> str:
    """Format a speed in tokens per second."""
    return f"{number(tok_s, 1 if tok_s < 100 else 0)} tok/s"


def speed_range(tok_s: float, spread: float) -> str:
    """Format a forecast speed as a range, such as `9–14 tok/s`."""
    return f"{plain_range(tok_s, spread)} tok/s"


def seconds_range(value: float, spread: float) -> str:
    """Format a forecast duration as a range, such as `0.8–1.3 s`."""
    high = value * spread
    if high < 0.1:
        return f"{plain_range(value * 1000, spread)} ms"
    if high < MINUTE_S:
        return f"{plain_range(value, spread)} s"
    return f"{plain_range(value / MINUTE_S, spread)} min"


def plain_range(value: float, spread: float) -> str:
    """Format a forecast as a range without its unit, such as `9–14`."""
    low, high, digits = rounded_range(value, spread)
    shown = number(low, digits)
    return shown if low == high else f"{shown}–{number(high, digits)}"


def seconds(value: float) -> str:
    """Format a duration, such as `25 ms`, `0.9 s`, `12 s`, `2 min 05 s` or `3 h 10 min`."""
    if value < 0.1:
        return f"{number(value * 1000, 1 if value < 0.01 else 0)} ms"
    if value < 10:
        return f"{number(value, 1)} s"
    whole = round(value)
    if whole < MINUTE_S:
        return f"{whole} s"
    if whole < HOUR_S:
        return f"{whole // MINUTE_S} min {whole % MINUTE_S:02d} s"
    return f"{whole // HOUR_S} h {whole % HOUR_S // MINUTE_S:02d} min"


def whole_seconds(value: float) -> str:
    """Format a duration without decimals, such as `5 s` instead of `5.0 s`."""
    whole = round(value)
    return f"{whole} s" if whole < MINUTE_S else seconds(whole)


def roughly(value: float) -> str:
    """Format an estimated duration, such as `2 s`, `25 s` or `5 min`."""
    if value < MINUTE_S - STEP_S:
        return f"{max(2, math.ceil(value))} s" if value < STEP_S else f"{STEP_S * math.ceil(value / STEP_S)} s"
    return f"{max(1, round(value / MINUTE_S))} min"


def percent(share: float) -> str:
    """Format a fraction as a percentage."""
    return f"{number(100 * share)}{percent_sign()}"


def percent_sign() -> str:
    """Return the percent sign to append to a number. In German, it is preceded by a space."""
    return " %" if QLocale().language() == QLocale.Language.German else "%"


def clock(at: float) -> str:
    """Format a Unix time: `14:05` if today, otherwise `Yesterday 14:05` or `3 Nov 14:05`."""
    moment = QDateTime.fromSecsSinceEpoch(int(at))
    time = QLocale().toString(moment.time(), QLocale.FormatType.ShortFormat)
    ago = moment.date().daysTo(QDate.currentDate())
    if ago == 0:
        return time
    if ago == 1:
        return QCoreApplication.translate("Moments", "Yesterday {time}").format(time=time)
    return f"{day(at)} {time}"


def day(at: float) -> str:
    """Format the date of a Unix time, such as `3 Nov`, with the year if it is not the current one."""
    date = QDateTime.fromSecsSinceEpoch(int(at)).date()
    if date.year() == QDate.currentDate().year():
        return QLocale().toString(date, "d MMM")
    return QLocale().toString(date, "d MMM yyyy")


def exact(at: float) -> str:
    """Format a Unix time as a full date and time, for tooltips and reports."""
    moment = QDateTime.fromSecsSinceEpoch(int(at))
    date = QLocale().toString(moment.date(), QLocale.FormatType.LongFormat)
    return f"{date}, {QLocale().toString(moment.time(), QLocale.FormatType.ShortFormat)}"
