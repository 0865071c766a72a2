"""Animations in the window, which the user or the system can turn off."""

from __future__ import annotations

import sys
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtDBus import QDBusConnection, QDBusMessage, QDBusPendingCallWatcher, QDBusVariant
from PySide6.QtWidgets import QApplication

from app.gui.app.preferences import Preferences

PORTAL = "org.freedesktop.portal.Desktop"
PORTAL_PATH, PORTAL_SETTINGS = "/org/freedesktop/portal/desktop", "org.freedesktop.portal.Settings"
STANDARD = ("org.freedesktop.appearance", "reduced-motion")
GNOME = ("org.gnome.desktop.interface", "enable-animations")
KDE = ("org.kde.kdeglobals.KDE", "AnimationDurationFactor")
WAIT_MS = 2000
SPI_GETCLIENTAREAANIMATION = 0x1042  # winuser.h


class SystemMotion(QObject):
    """The system's reduced-motion setting, read by `look`. `changed` is emitted when its value changes."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None, bus: QDBusConnection | None = None) -> None:
        super().__init__(parent)
        self.reduced = False
        self._bus = bus
        self._told: dict[tuple[str, str], bool] = {}
        self._asked = 0  # pending requests

    def look(self) -> None:
        """Read the setting. On Linux, the reply arrives later, if at all."""
        if sys.platform == "win32" or sys.platform == "darwin":
            self._take(_asks_for_less())
        elif not self._asked:
            self._ask_portal(self._bus or QDBusConnection.sessionBus())

    def _ask_portal(self, bus: QDBusConnection) -> None:
        """Query the desktop portal, which also answers sandboxed programs."""
        if not bus.isConnected():
            return
        self._told = {}
        for key in (STANDARD, GNOME, KDE):
            message = QDBusMessage.createMethodCall(PORTAL, PORTAL_PATH, PORTAL_SETTINGS, "Read")
            message.setArguments(list(key))
            watcher = QDBusPendingCallWatcher(bus.asyncCall(message, WAIT_MS), self)
            watcher.setProperty("key", list(key))
            watcher.finished.connect(self._heard)
            self._asked += 1

    def _heard(self, watcher: QDBusPendingCallWatcher) -> None:
        self._asked -= 1
        arguments = watcher.reply().arguments() if not watcher.isError() else []
        space, name = watcher.property("key")
        reduced = less_motion((space, name), _bare(arguments[0])) if arguments else None
        if reduced is not None:
            self._told[space, name] = reduced
        watcher.deleteLater()
        if not self._asked:
            self._take(any(self._told.values()))

    def _take(self, reduced: bool) -> None:
        if reduced != self.reduced:
            self.reduced = reduced
            self.changed.emit()


def less_motion(key: tuple[str, str], value: Any) -> bool | None:
    """Return whether a Linux desktop setting requests reduced motion, or None for an unknown setting or value."""
    match key, value:
        case (("org.freedesktop.appearance", _), 0 | 1):
            return bool(value == 1)
        case (("org.gnome.desktop.interface", _), bool()):
            return not value
        case (("org.kde.kdeglobals.KDE", _), str() | int() | float()):
            try:
                return float(value) == 0
            except ValueError:
                return None
    return None


def _bare(value: Any) -> Any:
    """Unwrap a D-Bus value from its variants. The portal's `Read` method wraps it twice."""
    while isinstance(value, QDBusVariant):
        value = value.variant()
    return value


if sys.platform == "win32":

    def _asks_for_less() -> bool:
        """Return whether the Windows setting "Animation effects" (Accessibility > Visual effects) is off.

        Based on the documentation; untested.
        """
        import ctypes
        from ctypes import wintypes

        moves = wintypes.BOOL(True)
        ask = ctypes.windll.user32.SystemParametersInfoW
        return bool(ask(SPI_GETCLIENTAREAANIMATION, 0, ctypes.byref(moves), 0)) and not moves.value

elif sys.platform == "darwin":

    def _asks_for_less() -> bool:
        """Return whether the macOS setting "Reduce motion" (Accessibility > Display) is on.

        Based on the documentation; untested.
        """
        import ctypes

        objc = ctypes.CDLL("/usr/lib/libobjc.A.dylib")
        ctypes.CDLL("/System/Library/Frameworks/AppKit.framework/AppKit")
        objc.objc_getClass.restype = objc.sel_registerName.restype = ctypes.c_void_p
        address = ctypes.cast(objc.objc_msgSend, ctypes.c_void_p).value or 0
        object_of = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(address)
        flag_of = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p)(address)
        name = objc.sel_registerName
        workspace = object_of(objc.objc_getClass(b"NSWorkspace"), name(b"sharedWorkspace"))
        return bool(flag_of(workspace, name(b"accessibilityDisplayShouldReduceMotion")))


REDUCE_MOTION = "look/reduce_motion"
SYSTEM, ALWAYS, NEVER = "", "always", "never"
ALWAYS_ONCE = "true"  # value written by earlier versions
STILL = "poolhouse-still"  # application property
EFFECTS = Qt.UIEffect.UI_General  # animations of menus, lists and tooltips


class Motion(QObject):
    """The switch for animations in the window. While `still` is set, nothing moves or fades."""

    changed = Signal()

    def __init__(self, app: QApplication, preferences: Preferences, system: SystemMotion | None = None) -> None:
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
        """The user's preference, which is SYSTEM, ALWAYS or NEVER reduce motion."""
        kept = self._preferences.text(REDUCE_MOTION).lower()
        if kept in (ALWAYS, ALWAYS_ONCE):
            return ALWAYS
        return NEVER if kept == NEVER else SYSTEM

    def choose(self, wish: str) -> None:
        """Store the user's preference."""
        if wish == SYSTEM:
            self._preferences.forget(REDUCE_MOTION)
        else:
            self._preferences.keep(REDUCE_MOTION, wish)

    def _preference_changed(self, name: str) -> None:
        if name == REDUCE_MOTION:
            self._judge()

    def _state_changed(self, state: Qt.ApplicationState) -> None:
        """Reread the system setting when the window becomes active, because the user may have changed it."""
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
    """Return whether animations are allowed, for widgets that have no access to the Motion object."""
    return not QApplication.instance().property(STILL)  # type: ignore[union-attr]
