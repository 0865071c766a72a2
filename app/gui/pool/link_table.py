"""The links that the map draws thin, as a table below that of the machines."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QCoreApplication, QSize
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.gui.look import formats
from app.gui.look.theme import Theme
from app.gui.pool import machine_words
from app.gui.pool.fact_table import Column, FactModel, FactTable
from app.gui.pool.link_facts import Between
from app.gui.widgets.labels import label, tooltip
from app.gui.widgets.layouts import column

MOST_ROWS = 4  # seen at once


class _SortedLinks(FactTable):
    """As high as its rows, up to a few. Two names are what tells one from another."""

    name_share = 0.35

    def __init__(self, theme: Theme, title: str) -> None:
        model = FactModel(_link_columns(), lambda one: one.key, lambda one: tooltip(*machine_words.all_between(one)))
        super().__init__(theme, model, title)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_links(self, links: Sequence[Between]) -> None:
        self._model.show_facts(links)
        self.fit_columns()
        self.updateGeometry()

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        rows = min(MOST_ROWS, self._model.rowCount()) * self.verticalHeader().defaultSectionSize()
        bar = self.horizontalScrollBar()
        frame = 2 * self.frameWidth() + (bar.sizeHint().height() if bar.maximum() else 0)
        return QSize(0, rows + self.horizontalHeader().sizeHint().height() + frame)

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return self.sizeHint()


class LinkTable(QWidget):
    """Not there where nothing is known of such a link."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        title = self.tr("Links between other machines")
        self.table = _SortedLinks(theme, title)
        self.setLayout(column(label(title, "muted"), self.table))
        self.hide()

    def show_links(self, links: Sequence[Between]) -> None:
        self.table.show_links(links)
        self.setVisible(bool(links))


def _link_columns() -> tuple[Column, ...]:
    unknown = _tr("not measured")
    return (
        Column(_tr("Between"), machine_words.ends, machine_words.ends, figure=False),
        Column(_tr("There"), _figure("out_bytes_per_s", formats.rate, unknown), _value("out_bytes_per_s")),
        Column(_tr("Back"), _figure("in_bytes_per_s", formats.rate, unknown), _value("in_bytes_per_s")),
        Column(_tr("Round trip"), _figure("round_trip_s", machine_words.milliseconds, unknown), _value("round_trip_s")),
        Column(
            _tr("By"),
            lambda one: machine_words.carried(one.link),
            lambda one: machine_words.carried(one.link),
            figure=False,
        ),
        Column(_tr("Measured"), _figure("measured_at", machine_words.age, unknown), _value("measured_at")),
    )


def _figure(name: str, told: Callable[[float], str], unknown: str) -> Callable[[Between], str]:
    def shown(one: Between) -> str:
        found = getattr(one.link, name)
        return unknown if found is None else told(found)

    return shown


def _value(name: str) -> Callable[[Between], float]:
    def value(one: Between) -> float:
        found = getattr(one.link, name)
        return -1.0 if found is None else float(found)

    return value


def _tr(text: str) -> str:
    return QCoreApplication.translate("Household", text)
