"""A drawing of the household, with its computers under one roof and others outside that could join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from PySide6.QtCore import QCoreApplication, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.api.snapshot import LendingState, Snapshot
from app.core.errors import AppError
from app.gui.api.node_client import Call
from app.gui.app.app_context import AppContext
from app.gui.look import drawing, formats, sizes
from app.gui.look.theme import Theme
from app.gui.pool.machine_facts import strangers_of

MOST_INSIDE, MOST_OUTSIDE = 4, 2
PLACE = 112  # width of a computer with its name
SCREEN = (60, 40)
FOOT = (24, 4)
EAVES = 12  # by which the roof is wider than the house
ROOF, ROOM = 40, 112
ARROW = 36

translate = QCoreApplication.translate


class Standing(StrEnum):
    """The relation of a drawn computer to the household."""

    THIS = "this"
    MEMBER = "member"
    OFFLINE = "offline"
    NEARBY = "nearby"  # runs Poolhouse but has not joined
    IMAGINED = "imagined"  # the place of a computer that could join


@dataclass(frozen=True, slots=True)
class DrawnComputer:
    """A computer in the drawing, with the text below its name."""

    name: str
    note: str
    standing: Standing


def computers_of(snapshot: Snapshot, own_name: str, own_bytes: int) -> tuple[DrawnComputer, ...]:
    """Return the computers to draw: this one, the other members, and nearby computers that could join.

    own_name: the name that the user is giving to this computer. own_bytes: the memory that this computer's models may
    use, or 0 if unknown.
    """
    made = [DrawnComputer(own_name, formats.size(own_bytes) if own_bytes else "", Standing.THIS)]
    members = [machine for machine in snapshot.sorted_machines if not machine.this]
    for machine in members[: MOST_INSIDE - 1]:
        note = formats.size(machine.lent_bytes) if machine.lent_bytes else ""
        standing = Standing.MEMBER if machine.online else Standing.OFFLINE
        made.append(DrawnComputer(machine.name, note, standing))
    nearby = strangers_of(snapshot)[:MOST_OUTSIDE]
    for stranger in nearby:
        note = translate("HouseholdPicture", "showing a code") if stranger.pairing_address else ""
        name = stranger.name or translate("HouseholdPicture", "Nearby")
        made.append(DrawnComputer(name, note, Standing.NEARBY))
    if not nearby:
        name = translate("HouseholdPicture", "One more")
        made.append(DrawnComputer(name, translate("HouseholdPicture", "can join"), Standing.IMAGINED))
    return tuple(made)


def together_bytes(snapshot: Snapshot, own_bytes: int) -> int:
    """Return the memory that models may use here, plus the memory that all other members lend."""
    lenders = (machine for machine in snapshot.machines.values() if not machine.this and machine.online)
    return own_bytes + sum(machine.lent_bytes or 0 for machine in lenders)


class HouseholdPicture(QWidget):
    """The drawing. Screen readers read it as one sentence."""

    def __init__(self, services: AppContext) -> None:
        super().__init__()
        self._services, self._theme = services, services.theme
        self._call: Call | None = None
        self._own_bytes = 0  # asked for once for each page, because free memory fluctuates constantly
        self._own_name = ""
        self._computers: Sequence[DrawnComputer] = ()
        self._sum = ""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._theme.changed.connect(self._theme_changed)

    def refresh(self) -> None:
        """Request how much memory models may use on this computer, replacing any pending request."""
        if self._call is not None:
            self._call.cancel()
        self._call = self._services.client.get("/lending", self._told, self._untold, answer=LendingState)

    def _told(self, lending: LendingState) -> None:
        self._call, self._own_bytes = None, lending.own_most_bytes
        self.show_household(self._services.pool.now, self._own_name)

    def _untold(self, _: AppError) -> None:
        self._call = None

    def show_household(self, snapshot: Snapshot, own_name: str) -> None:
        """Draw the current state of the household."""
        if not self._own_bytes and self._call is None and self.isVisible() and self._services.pool.is_there:
            self.refresh()
        self._own_name = own_name
        computers = computers_of(snapshot, own_name, self._own_bytes)
        total = together_bytes(snapshot, self._own_bytes)
        words = formats.size(total) if total and len(snapshot.machines) > 1 else ""
        if (computers, words) == (self._computers, self._sum):
            return
        self._computers, self._sum = computers, words
        self.setAccessibleName(self._sentence())
        self.update()

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        px = self._theme.px
        wide = px(PLACE) * (len(self._computers) or 2) + px(ARROW) + 2 * px(EAVES)
        return QSize(wide, px(ROOF) + px(ROOM))

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return QSize(self._theme.px(PLACE), self.sizeHint().height())

    def paintEvent(self, _: QPaintEvent) -> None:  # noqa: N802  Qt's name
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        inside = [computer for computer in self._computers if computer.standing not in OUTSIDE]
        outside = [computer for computer in self._computers if computer.standing in OUTSIDE]
        px, place = self._theme.px, self._place()
        wide = place * len(self._computers) + px(ARROW) + 2 * px(EAVES)
        left = max(0.0, (self.width() - wide) / 2) + px(EAVES)
        house = QRectF(left, px(ROOF), place * len(inside), px(ROOM) - 1)
        self._house(painter, house)
        self._link(painter, house, len(inside))
        for number, computer in enumerate(inside):
            self._computer(painter, QRectF(left + number * place, house.top(), place, house.height()), computer)
        if outside:
            self._arrow(painter, house)
        begin = house.right() + px(EAVES) + px(ARROW)
        for number, computer in enumerate(outside):
            self._computer(painter, QRectF(begin + number * place, house.top(), place, house.height()), computer)
        painter.end()

    def _theme_changed(self) -> None:
        self.updateGeometry()
        self.update()

    def _place(self) -> float:
        """Return the width of each computer, which is smaller in a narrow window."""
        room = self.width() - self._theme.px(ARROW) - 2 * self._theme.px(EAVES)
        return min(float(self._theme.px(PLACE)), room / max(1, len(self._computers)))

    def _house(self, painter: QPainter, house: QRectF) -> None:
        px, over = self._theme.px, self._theme.px(EAVES)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.color("selected"))
        painter.drawRoundedRect(house, px(sizes.XS), px(sizes.XS))
        painter.drawRect(house.adjusted(0, 0, 0, -house.height() / 2))
        top, middle = float(px(sizes.XS)), house.center().x()
        eaves = house.top() + px(sizes.XS)
        roof = QPolygonF(
            [QPointF(house.left() - over, eaves), QPointF(middle, top), QPointF(house.right() + over, eaves)]
        )
        pen = QPen(self._theme.color("accent"), px(sizes.XS), Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap)
        pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
        painter.drawPolygon(roof)
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPolyline(roof)
        if self._sum:
            font = self._theme.font(sizes.SECTION, bold=True)
            high = drawing.line_height(font)
            where = QRectF(house.left(), eaves - high, house.width(), high)
            drawing.draw_text(painter, where, self._sum, font, self._theme.color("text"), drawing.CENTER)

    def _link(self, painter: QPainter, house: QRectF, number: int) -> None:
        """Draw the line that connects the computers of the household."""
        if number < 2:
            return
        place = house.width() / number
        y = house.top() + self._theme.px(sizes.L) + self._theme.px(SCREEN[1]) / 2
        painter.setPen(QPen(self._theme.color("good"), 2))
        painter.drawLine(QPointF(house.left() + place / 2, y), QPointF(house.right() - place / 2, y))

    def _arrow(self, painter: QPainter, house: QRectF) -> None:
        """Draw the arrow that points into the house."""
        px = self._theme.px
        y = house.top() + px(sizes.L) + px(SCREEN[1]) / 2
        far, near = house.right() + px(EAVES) + px(ARROW), house.right() + px(sizes.XS)
        color = self._theme.color("accent")
        painter.setPen(QPen(color, 2, Qt.PenStyle.DashLine))
        painter.drawLine(QPointF(far, y), QPointF(near + px(sizes.S), y))
        painter.setPen(QPen(color, 2, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        for way in (-1, 1):
            painter.drawLine(QPointF(near, y), QPointF(near + px(sizes.S), y + way * px(sizes.S) * 0.75))

    def _computer(self, painter: QPainter, where: QRectF, computer: DrawnComputer) -> None:
        px, theme = self._theme.px, self._theme
        edge, fill, text = _colors(theme, computer.standing)
        middle = where.center().x()
        screen = QRectF(middle - px(SCREEN[0]) / 2, where.top() + px(sizes.L), px(SCREEN[0]), px(SCREEN[1]))
        style = Qt.PenStyle.DashLine if computer.standing in OUTSIDE else Qt.PenStyle.SolidLine
        drawing.draw_surface(painter, screen, px(sizes.XS), fill, QPen(edge, 2, style))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(edge)
        painter.drawRoundedRect(
            QRectF(middle - px(FOOT[0]) / 2, screen.bottom() + px(FOOT[1]), px(FOOT[0]), px(FOOT[1])), 2, 2
        )
        sign = SIGNS[computer.standing]
        side = float(px(sizes.TITLE))
        spot = QRectF(middle - side / 2, screen.center().y() - side / 2, side, side)
        drawing.draw_icon(painter, spot, sign, theme.color("on_accent") if computer.standing in FULL else edge)
        name, small = theme.font(sizes.BODY, bold=computer.standing not in OUTSIDE), theme.font(sizes.CAPTION)
        y, pad = screen.bottom() + px(sizes.L), px(sizes.XS)
        line = QRectF(where.left() + pad, y, where.width() - 2 * pad, drawing.line_height(name))
        drawing.draw_text(painter, line, computer.name, name, text, drawing.CENTER)
        below = QRectF(line.left(), line.bottom(), line.width(), drawing.line_height(small))
        drawing.draw_text(painter, below, computer.note, small, theme.color("muted"), drawing.CENTER)

    def _sentence(self) -> str:
        """Return a sentence that describes the drawing."""
        inside = [_words(computer) for computer in self._computers if computer.standing not in OUTSIDE]
        nearby = [_words(computer) for computer in self._computers if computer.standing is Standing.NEARBY]
        words = self.tr("Your household: {names}.").format(names=", ".join(inside))
        if self._sum:
            words += " " + self.tr("Together: {size}.").format(size=self._sum)
        if nearby:
            words += " " + self.tr("Nearby: {names}.").format(names=", ".join(nearby))
        return words


OUTSIDE = (Standing.NEARBY, Standing.IMAGINED)
FULL = (Standing.THIS, Standing.MEMBER)
SIGNS = {
    Standing.THIS: "chat",
    Standing.MEMBER: "check",
    Standing.OFFLINE: "tray-away",
    Standing.NEARBY: "wifi",
    Standing.IMAGINED: "add",
}


def _words(computer: DrawnComputer) -> str:
    return f"{computer.name} ({computer.note})" if computer.note else computer.name


def _colors(theme: Theme, standing: Standing) -> tuple[QColor, QColor, QColor]:
    """Return the colors of a computer's edge, screen and name."""
    match standing:
        case Standing.THIS:
            return theme.color("accent"), theme.color("accent"), theme.color("text")
        case Standing.MEMBER:
            return theme.color("good"), theme.color("good"), theme.color("text")
        case Standing.NEARBY:
            return theme.color("accent"), theme.color("card"), theme.color("text")
        case _:
            return theme.color("border"), theme.color("card"), theme.color("muted")
