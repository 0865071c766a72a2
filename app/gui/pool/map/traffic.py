"""Dots that move along the links while an answer is computed; without a timer at all other times."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QEvent, QObject, QPointF, Qt, QTimer
from PySide6.QtGui import QPainterPath
from PySide6.QtWidgets import QGraphicsEllipseItem, QGraphicsView

from app.gui.look import sizes
from app.gui.look.theme import Theme

FRAME_MS = 33
ROUND_FRAMES = 72  # there and back
STEPS = 48  # of a path, looked up instead of computed in every frame
DOTS = 2  # on each link


class Traffic(QObject):
    """Moves the dots. `still` stops them (reduced motion)."""

    def __init__(self, view: QGraphicsView, theme: Theme) -> None:
        super().__init__(view)
        self._view, self._theme = view, theme
        self._tracks: dict[str, tuple[QPointF, ...]] = {}
        self._paths: dict[str, QPainterPath] = {}
        self._dots: dict[str, list[QGraphicsEllipseItem]] = {}
        self._frame = 0
        self.still = False
        self._timer = QTimer(self)
        self._timer.setInterval(FRAME_MS)
        self._timer.timeout.connect(self._move)
        view.installEventFilter(self)
        self._window: QObject | None = None

    @property
    def moves(self) -> bool:
        return self._timer.isActive()

    def show_on(self, paths: Mapping[str, QPainterPath]) -> None:
        """Move dots along these links; an empty mapping stops them."""
        if paths != self._paths:
            self._paths = dict(paths)
            self._tracks = {key: _track(path) for key, path in paths.items()}
            self._place_dots()
        self.refresh()

    def refresh(self) -> None:
        """Start or stop the timer: dots move only while they are visible."""
        window = self._view.window()
        seen = self._view.isVisible() and not window.isMinimized()
        moves = bool(self._tracks) and seen and not self.still
        for dots in self._dots.values():
            for dot in dots:
                dot.setVisible(moves)
        if moves and not self._timer.isActive():
            self._move()
            self._timer.start()
        elif not moves:
            self._timer.stop()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        """Notice that the view or its window is shown, hidden or minimized."""
        kinds = (QEvent.Type.Show, QEvent.Type.Hide, QEvent.Type.WindowStateChange)
        if event.type() in kinds:
            if event.type() == QEvent.Type.Show:  # a window that ends hides too, half gone already
                self._watch_window()
            QTimer.singleShot(0, self, self.refresh)
        return False

    def _watch_window(self) -> None:
        window = self._view.window()
        if window is not self._window and window is not self._view:
            if self._window is not None:
                self._window.removeEventFilter(self)
            self._window = window
            window.installEventFilter(self)

    def _place_dots(self) -> None:
        scene = self._view.scene()
        for key in self._dots.keys() - self._tracks.keys():
            for dot in self._dots.pop(key):
                scene.removeItem(dot)
        side = self._theme.px(sizes.S)
        for key in self._tracks.keys() - self._dots.keys():
            made = []
            for _ in range(DOTS):
                dot = QGraphicsEllipseItem(-side / 2, -side / 2, side, side)
                dot.setPen(Qt.PenStyle.NoPen)
                dot.setZValue(0.5)  # over the line, under plates and cards
                scene.addItem(dot)
                made.append(dot)
            self._dots[key] = made
        for dots in self._dots.values():
            for dot in dots:
                dot.setBrush(self._theme.color("accent"))

    def _move(self) -> None:
        self._frame = (self._frame + 1) % ROUND_FRAMES
        for key, dots in self._dots.items():
            track = self._tracks[key]
            for number, dot in enumerate(dots):
                at = (self._frame / ROUND_FRAMES + number / DOTS) % 1.0
                there = 2 * at if at < 0.5 else 2 - 2 * at
                dot.setPos(track[round(there * (STEPS - 1))])


def _track(path: QPainterPath) -> tuple[QPointF, ...]:
    return tuple(path.pointAtPercent(step / (STEPS - 1)) for step in range(STEPS))
