"""The Phones settings, which let phones and tablets chat here, and the dialog that adds one."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton, QWidget

from app.api.phones import Phone, PhoneCode, Phones
from app.gui.api.node_client import segment
from app.gui.app.app_context import AppContext
from app.gui.app.node_dialog import Sheet
from app.gui.look import sizes
from app.gui.look.accessibility import announce
from app.gui.pool.machine_words import moment
from app.gui.settings.settings_group import Setting, SettingsGroup
from app.gui.widgets.buttons import Switch, button
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label, paragraph, show_if
from app.gui.widgets.layouts import column
from app.gui.widgets.qr_code import QrCode

LOOK_MS = 1000  # between looks at whether a device has joined
CODE_SIDE = 260


class AddPhoneDialog(Sheet):
    """A dialog that shows a one-time code as a QR code and in digits until a device has used it."""

    def __init__(self, services: AppContext, known: Phones, group: SettingsGroup, parent: QWidget) -> None:
        sentence = self.tr("Connect the device to the same network, then point its camera at this code.")
        super().__init__(services, self.tr("Add a phone or tablet"), sentence, parent)
        self._group, self._known = group, {device.id for device in known.devices}
        self.picture = QrCode(services.theme.px(CODE_SIDE))
        self.picture.setAccessibleName(self.tr("QR code with the address and the code"))
        self.by_hand = paragraph("", "muted")
        self.code = paragraph("", "section")
        self.left = paragraph("", "caption")
        warns = paragraph(
            self.tr(
                "The browser shows a warning the first time because a home computer has no public "
                "certificate. The connection is still encrypted. Continue if the browser shows this "
                "SHA-256 fingerprint for the certificate:"
            ),
            "caption",
        )
        self.fingerprint = paragraph(_in_groups(known.fingerprint), "caption")
        self.add(
            self.picture, column(self.by_hand, self.code, self.left, gap=sizes.XS), column(warns, self.fingerprint)
        )
        self.new = button(self.tr("New code"), self._ask_code)
        self.offer(self.tr("Close"), self.new)
        self._timer = QTimer(self)
        self._timer.setInterval(LOOK_MS)
        self._timer.timeout.connect(self._look)
        self.finished.connect(self._void)
        self._ask_code()

    def _ask_code(self) -> None:
        self.notice.clear()
        self.new.setEnabled(False)
        self.keep(self.services.client.post("/phones/code", {}, self._show_code, self.fail, answer=PhoneCode))

    def _show_code(self, code: PhoneCode) -> None:
        address = code.addresses[0] if code.addresses else ""
        self.picture.show_text(f"{address}#{code.code}")
        self.by_hand.setText(self.tr("Or open {address} on the device and enter this code:").format(address=address))
        self.code.setText(f"{code.code[:4]} {code.code[4:]}")
        self._show_left(code.seconds_left)
        self.new.setEnabled(True)
        self._timer.start()
        self.fit()

    def _look(self) -> None:
        self.keep(self.services.client.get("/phones", self._looked, answer=Phones))

    def _looked(self, state: Phones) -> None:
        joined = [device for device in state.devices if device.id not in self._known]
        if joined:
            words = self.tr("{name} is connected.").format(name=joined[-1].name)
            self._group.told.emit(words, "info")
            announce(self, words)
            self._group.refresh()
            self.accept()
        else:
            self._show_left(state.code_seconds)

    def _show_left(self, seconds_left: float) -> None:
        if seconds_left > 0:
            minutes, seconds = divmod(round(seconds_left), 60)
            words = self.tr("Valid for {time} and for one device.")
            self.left.setText(words.format(time=f"{minutes}:{seconds:02}"))
            return
        self._timer.stop()
        self.picture.show_text("")
        self.code.setText("")
        self.left.setText(self.tr("This code has expired, or a wrong code was entered too many times."))
        self.new.setFocus()

    def _void(self) -> None:
        """Make the code invalid, because nobody can see it anymore."""
        self._timer.stop()
        self.services.client.delete("/phones/code", lambda _: None, answer=Phones)


class RemovePhoneDialog(Sheet):
    """A confirmation dialog for removing a device."""

    def __init__(self, services: AppContext, device: Phone, group: PhoneSettings, parent: QWidget) -> None:
        title = self.tr("Remove {name}").format(name=device.name)
        sentence = self.tr(
            "Any answer on the device stops immediately, and the device needs a new code to "
            "connect again. Chats stored on it are kept."
        )
        super().__init__(services, title, sentence, parent)
        self._device, self._group = device, group
        self.act = button(title.replace("&", "&&"), self.remove, "danger")  # one & would underline the next letter
        self.offer(self.tr("Cancel"), self.act)

    def remove(self) -> None:
        self.act.setEnabled(False)
        path = f"/phones/devices/{segment(self._device.id)}"
        self.keep(self.services.client.delete(path, self._removed, self.fail, answer=Phones))

    def _removed(self, state: Phones) -> None:
        self._group.show_phones(state)
        words = self.tr("{name} may no longer chat here.").format(name=self._device.name)
        self._group.told.emit(words, "info")
        self.accept()


class PhoneSettings(SettingsGroup):
    """The Phones settings, with the on-off switch, the address, and the devices."""

    def __init__(self, services: AppContext) -> None:
        super().__init__(services, self.tr("Phones"))
        self.state = Phones()
        self.on = Switch(services.theme, self.tr("Phones and tablets may chat here"), self._switch)
        self.add_device = button(self.tr("Add a phone or tablet…"), self._add, "primary")
        copy = button(self.tr("Copy"), self._copy)
        copy.setAccessibleName(self.tr("Copy the address for phones"))
        self.address = label()
        self._where = Setting(self.tr("Address for phones"), "", Flow(self.address, copy), words="url https")
        self._trust = Setting(
            self.tr("Certificate fingerprint"),
            self.tr(
                "Browsers show a warning the first time because this computer made its own "
                "certificate. Before you continue there, check that the browser shows the same "
                "fingerprint."
            ),
            words="sha256 warning tls",
        )
        self.fingerprint = self._trust.default
        self._adds = Setting(
            self.tr("Add a device"),
            self.tr("Each device joins with a one-time code and may only chat with models that are loaded."),
            self.add_device,
            words="qr code scan iphone android ipad",
        )
        self.add(
            Setting(
                self.tr("Phones and tablets may chat here"),
                self.tr(
                    "Phones open a chat page in their browser over your own network. They need no app, "
                    "no account and no internet."
                ),
                self.on,
                default=self.tr("Default: off"),
                words="iphone android ipad mobile web",
            ),
            self._adds,
            self._where,
            self._trust,
        )
        self._devices = self.add(title=self.tr("Devices"))
        self.none = Setting(self.tr("No device is connected."))
        self._devices.put(self.none)
        self.rows: dict[str, Setting] = {}
        self.removals: dict[str, QPushButton] = {}

    def refresh(self) -> None:
        self.ask("GET", "/phones", self.show_phones, answer=Phones)

    def reset(self) -> None:
        self._switch(False)

    def reset_words(self) -> str:
        kept = self.tr("The devices stay paired. They can chat again when you turn this on.")
        return f"{super().reset_words()} {kept}"

    def show_phones(self, state: Phones) -> None:
        """Show the node's current state."""
        self.state = state
        self.on.show_on(state.on)
        self.add_device.setEnabled(state.listening)
        for row in (self._where, self._trust):
            row.setEnabled(state.listening)
        off = self.tr("Off") if not state.on else self.tr("This computer is not on any of the household's networks.")
        self.address.setText(state.addresses[0] if state.addresses else off)
        self.fingerprint.setText(_in_groups(state.fingerprint))
        show_if(self.fingerprint, bool(state.fingerprint))
        for device in state.devices:
            if device.id not in self.rows:
                self.rows[device.id] = self._row(device)
                self._devices.put(self.rows[device.id])
            self.rows[device.id].set_about(self._about(device))
        there = {device.id for device in state.devices}
        for key, row in self.rows.items():
            row.is_removed = key not in there
        self.none.is_removed = bool(there)
        self.search_again()

    def _row(self, device: Phone) -> Setting:
        remove = self.removals[device.id] = button(self.tr("Remove…"), partial(self._remove, device))
        remove.setAccessibleName(self.tr("Remove {name}").format(name=device.name))
        return Setting(device.name, "", remove, words="device")

    def _about(self, device: Phone) -> str:
        if device.used_at is None:
            return self.tr("Added {added}, not used yet").format(added=moment(device.added_at))
        words = self.tr("Added {added}, last used {used}")
        return words.format(added=moment(device.added_at), used=moment(device.used_at))

    def _switch(self, on: bool) -> None:
        self.ask("POST", "/phones", self.show_phones, {"on": on}, answer=Phones)

    def _add(self) -> None:
        AddPhoneDialog(self.services, self.state, self, self.window()).open()

    def _remove(self, device: Phone) -> None:
        RemovePhoneDialog(self.services, device, self, self.window()).open()

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.address.text())
        self.told.emit(self.tr("Address copied."), "info")


def _in_groups(fingerprint: str) -> str:
    """Return a fingerprint in eight groups of four bytes, so that it can wrap."""
    parts = fingerprint.split(":")
    return " ".join(":".join(parts[at : at + 4]) for at in range(0, len(parts), 4))
