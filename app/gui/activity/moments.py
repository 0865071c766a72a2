"""Moments as a person reads them: the time today, with the day before that."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QDate, QDateTime, QLocale


def clock(at: float) -> str:
    """A Unix time: `14:05` today, `Yesterday 14:05`, `3 Nov 14:05`."""
    moment = QDateTime.fromSecsSinceEpoch(int(at))
    time = QLocale().toString(moment.time(), QLocale.FormatType.ShortFormat)
    ago = moment.date().daysTo(QDate.currentDate())
    if ago == 0:
        return time
    if ago == 1:
        return QCoreApplication.translate("Moments", "Yesterday {time}").format(time=time)
    return f"{day(at)} {time}"


def day(at: float) -> str:
    """A Unix time's day: `3 Nov`, with the year when it is another one."""
    date = QDateTime.fromSecsSinceEpoch(int(at)).date()
    if date.year() == QDate.currentDate().year():
        return QLocale().toString(date, "d MMM")
    return QLocale().toString(date, "d MMM yyyy")


def exact(at: float) -> str:
    """Day and time in full, for tooltips and reports."""
    moment = QDateTime.fromSecsSinceEpoch(int(at))
    date = QLocale().toString(moment.date(), QLocale.FormatType.LongFormat)
    return f"{date}, {QLocale().toString(moment.time(), QLocale.FormatType.ShortFormat)}"
