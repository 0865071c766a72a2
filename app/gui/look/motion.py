"""Whether anything may move: as a person chose, or else as the system asks."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QApplication

from app.gui.app.preferences import Preferences
from app.gui.look.system_motion import SystemMotion

REDUCE_MOTION = "look/reduce_motion"
SYSTEM, ALWAYS, NEVER = "", "always", "never"
ALWAYS_ONCE = "true"  # how earlier versions wrote it
STILL = "poolhouse-still"  # a property of the application
EFFECTS = Qt.UIEffect.UI_General  # menus, lists and tooltips that unfold or fade


class Motion(QObject):
    """`still`: nothing moves or fades. `changed` when it is another."""

    changed = Signal()

    def __init__(
        self, app: QApplication, preferences: Preferences, system: SystemMotion | None = None
    ) -> None:
        super().__init__(app)
        self._app = app
        self._preferences, self._system = preferences, system or SystemMotion(self)
        self._has_effects = QApplication.isEffectEnabled(EFFECTS)
        self.still = False
        app.setProperty(STILL, False)
        self._judge()
        preferences.changed.connect(self._preference_changed)
        self._system.changed.connect(self._judge)
        app.applicationStateChanged.connect(self._state_changed)
        self._system.look()

    @property
    def wish(self) -> str:
        """SYSTEM, ALWAYS or NEVER."""
        kept = self._preferences.text(REDUCE_MOTION).lower()
        if kept in (ALWAYS, ALWAYS_ONCE):
            return ALWAYS
        return NEVER if kept == NEVER else SYSTEM

    def choose(self, wish: str) -> None:
        """A person's own choice."""
        if wish == SYSTEM:
            self._preferences.forget(REDUCE_MOTION)
        else:
            self._preferences.keep(REDUCE_MOTION, wish)

    def _preference_changed(self, name: str) -> None:
        if name == REDUCE_MOTION:
            self._judge()

    def _state_changed(self, state: Qt.ApplicationState) -> None:
        """Whoever comes back may have changed it in the system's settings."""
        if state is Qt.ApplicationState.ApplicationActive:
            self._system.look()

    def _judge(self) -> None:
        wish = self.wish
        still = wish == ALWAYS or (wish == SYSTEM and self._system.reduced)
        if still != self.still:
            self.still = still
            self._app.setProperty(STILL, still)
            QApplication.setEffectEnabled(EFFECTS, self._has_effects and not still)
            self.changed.emit()


def may_move() -> bool:
    """For small parts that are given no Motion."""
    return not QApplication.instance().property(STILL)  # type: ignore[union-attr]
