"""The Privacy settings, for the app's connections, stored secrets, chat encryption, and deleting all data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QCoreApplication, Qt, QTimer
from PySide6.QtWidgets import QCheckBox, QWidget

from app.api.chat_api import ChatApi
from app.api.computer import Settings, Updates, Walls
from app.api.models import TokenState
from app.api.prompts import KeptPrompts
from app.core.errors import AppError, Reason
from app.gui.app.app_context import AppContext
from app.gui.app.node_dialog import Sheet
from app.gui.chat.history.chat_lock import ChatLock
from app.gui.look import formats, sizes
from app.gui.look.sentences import said
from app.gui.pool.machine_facts import MachineFacts, machines_of
from app.gui.pool.machine_words import moment
from app.gui.settings.household import storage_sentence
from app.gui.settings.settings_group import Choice, Setting, SettingsGroup
from app.gui.widgets.buttons import Switch, button
from app.gui.widgets.dialog import Dialog
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import ValueLabel, label, paragraph
from app.gui.widgets.layouts import column
from app.gui.widgets.progress import Progress

LATE_MS = 3000  # maximum time to wait for a node that does not answer
SOON_MS = 1000
PROMPT_GIB = (1, 2, 4, 8, 16, 32)


class EraseDialog(Sheet):
    """A dialog that deletes all Poolhouse data on this computer and quits.

    The data is deleted only after the window and its node have exited. `end` closes the window.
    """

    needs_node = False

    def __init__(
        self, services: AppContext, parent: QWidget, end: Callable[[], object] = QCoreApplication.exit
    ) -> None:
        sentence = self.tr(
            "This deletes all models, chats, settings, keys and pairings on this computer and quits Poolhouse. It "
            "can't be undone. Before you continue, export any chats you want to keep."
        )
        super().__init__(services, self.tr("Remove all data"), sentence, parent)
        self._end_window, self._has_ended = end, False
        models = services.pool.now.models_folder
        places = [str(services.launcher.home)]
        if not models.default:  # only Poolhouse's own models are deleted from a custom folder
            places.append(models.folder)
        self.folder = paragraph("\n".join(places), "caption")
        stays = self.tr(
            "Files that belong to other programs are kept, including the models that Poolhouse "
            "used from there. The other machines show this one as offline until one of them "
            "removes it."
        )
        self.sure = QCheckBox(self.tr("Yes, delete everything"))
        self.add(self.folder, paragraph(stays), self.sure)
        self.act = button(self.tr("Delete everything"), self.erase, "danger")
        self.act.setEnabled(False)
        self.sure.toggled.connect(self.act.setEnabled)
        self.offer(self.tr("Cancel"), self.act)
        self.keep(services.client.get("/settings", self._tell_size, answer=Settings))

    def erase(self) -> None:
        """Stop the node and the window, after which the launcher deletes the data."""
        services = self.services
        services.launcher.erase_at_end()
        services.client.endpoint = services.client.endpoint or services.launcher.find()
        services.client.post("/shutdown", None, lambda _: self._over(), lambda _: self._over())
        services.pool.stop()  # otherwise it would start a new node
        QTimer.singleShot(LATE_MS, self, self._over)
        self.act.setEnabled(False)

    def _over(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            self._end_window()

    def _tell_size(self, settings: Settings) -> None:
        n_bytes = sum(folder.bytes for folder in settings.folders)
        self.act.setText(self.tr("Delete everything, {size}").format(size=formats.size(n_bytes)))


class EncryptionDialog(Dialog):
    """A progress dialog for encrypting or decrypting the chats.

    The dialog is modal to prevent changes to chats, and it cannot be canceled. If the user closes the window, the
    conversion is either complete or has no effect.
    """

    def __init__(self, lock: ChatLock, parent: QWidget, *, on: bool) -> None:
        super().__init__(parent)
        self._lock, self._on = lock, on
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        title = self.tr("Encrypting your chats") if on else self.tr("Decrypting your chats")
        self.setWindowTitle(title)
        self.bar = Progress(title)
        self.words = paragraph(self.tr("Answers continue in the meantime and are saved afterward."), "muted")
        box = column(label(title, "section"), self.words, self.bar, gap=sizes.M)
        box.setContentsMargins(sizes.XL, sizes.XL, sizes.XL, sizes.L)
        self.setLayout(box)
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(SOON_MS)
        self._soon.timeout.connect(self.open)
        lock.encryption_changed.connect(self._over)
        lock.history.converter.progressed.connect(self._show)

    def begin(self) -> None:
        """Start the conversion. The dialog appears only if it takes longer than a second, and closes at the end."""
        self._soon.start()
        self._lock.set_encryption(self._on)

    def reject(self) -> None:
        """Ignore Escape, because the conversion cannot be canceled."""

    def _show(self, n: int, of: int) -> None:
        self.bar.tell(n / of if of else None)

    def _over(self, _: object) -> None:
        self._soon.stop()
        self.done(0)
        self.deleteLater()


class Privacy(SettingsGroup):
    """The Privacy settings. They list the app's connections and stored secrets, and can encrypt the chats."""

    can_reset = False

    def __init__(self, services: AppContext) -> None:
        super().__init__(services, self.tr("Privacy"))
        self.machines, self.nearby = ValueLabel(), ValueLabel()
        self.hub, self.upstreams, self.updates = ValueLabel(), ValueLabel(), ValueLabel()
        self.key, self.token = ValueLabel(), ValueLabel()
        self.chat_key, self.walls = ValueLabel(), ValueLabel()
        name = self.tr("Encrypt my chats")
        self.encrypt = Switch(services.theme, name, self._encrypt)
        self.encrypted = Setting(
            name, "", self.encrypt, default=self.tr("Default: off"), words="encryption key history"
        )
        self._where: Reason | None = None  # where keys are stored
        self._add_connections()
        self._walled = Setting(self.tr("Model sandbox"), "", self.walls, words="sandbox landlock worker")
        self.add(self._walled, title=self.tr("Protection from model files"))
        self._add_prompts()
        self._add_places()
        services.pool.changed.connect(self._tell_machines)
        services.lock.changed.connect(self._tell_lock)
        services.lock.encryption_changed.connect(self._turned)

    def _add_connections(self) -> None:
        self._machines = Setting(
            self.tr("Machines in your household"),
            self.tr("All connections are encrypted and limited to machines that were paired with a code."),
            self.machines,
        )
        self._asked = Setting(self.tr("Updates of Poolhouse"), "", self.updates, words="update check github")
        self.add(
            self._machines,
            Setting(
                self.tr("Your network"),
                self.tr("Announces this machine, without its name, so that others can find it."),
                self.nearby,
                words="multicast discovery",
            ),
            Setting(
                self.tr("huggingface.co"),
                self.tr("Poolhouse connects only when you search for or download a model there."),
                self.hub,
                words="hub download",
            ),
            Setting(
                self.tr("Other servers you added"),
                self.tr(
                    "Programs on this machine and on guest machines may use a server that is turned on "
                    "in Settings > Local API. Your chats in this window are never sent there."
                ),
                self.upstreams,
                words="upstream api",
            ),
            self._asked,
            title=self.tr("Connections this app makes"),
        )
        self._unasked = Setting(self.tr("No check for updates"), self.tr("Poolhouse never checks for newer versions."))
        self._asked.is_removed = True  # until the node reports where it would check
        self.add(
            Setting(
                self.tr("No telemetry"),
                self.tr("Poolhouse never reports what you do, how often you do it, or that you use this app."),
            ),
            self._unasked,
            title=self.tr("Connections this app never makes"),
        )

    def _add_prompts(self) -> None:
        name = self.tr("Keep long prompts on this computer")
        self.keep_prompts = Switch(self.services.theme, name, lambda on: self._change_prompts({"on": on}))
        self.kept = Setting(
            name, "", self.keep_prompts, default=self.tr("Default: on"), words="prompt document cache disk memory"
        )
        limits = [("", self.tr("5% of the free disk, at most 4 GiB"))]
        limits += [(str(n << 30), formats.size(n << 30)) for n in PROMPT_GIB]
        self.most_prompts = Choice(
            limits, lambda value: self._change_prompts({"most_bytes": int(value) if value else None})
        )
        self.delete_prompts = button(self.tr("Delete kept prompts"), self._delete_prompts)
        self.kept_size = ValueLabel()
        self.add(
            self.kept,
            Setting(
                self.tr("Disk space for kept prompts"),
                self.tr("When the space is used up, the least recently used prompts are deleted."),
                self.most_prompts,
                words="limit size quota",
            ),
            Setting(
                self.tr("Kept prompts"),
                self.tr("Prompts that have not been used for 14 days are deleted automatically."),
                Flow(self.kept_size, self.delete_prompts),
                words="delete size",
            ),
            title=self.tr("Kept prompts"),
        )

    def _change_prompts(self, changes: dict[str, Any]) -> None:
        self.ask("POST", "/prompts", self._tell_prompts, changes, answer=KeptPrompts)

    def _delete_prompts(self) -> None:
        self.ask("DELETE", "/prompts", self._deleted_prompts, answer=KeptPrompts)

    def _deleted_prompts(self, state: KeptPrompts) -> None:
        self._tell_prompts(state)
        self.told.emit(self.tr("The kept prompts were deleted."), "info")

    def _tell_prompts(self, state: KeptPrompts) -> None:
        self.keep_prompts.show_on(state.on)
        self.most_prompts.show_value("" if state.chosen_bytes is None else str(state.chosen_bytes))
        self.most_prompts.setEnabled(state.on)
        self.delete_prompts.setEnabled(state.used_bytes > 0)
        words = self.tr("{used} of at most {limit}")
        self.kept_size.setText(words.format(used=formats.size(state.used_bytes), limit=formats.size(state.limit_bytes)))
        about = self.tr(
            "What the model computed for a long prompt is stored here, encrypted. Chats about the "
            "same document then start at once, even after a restart. This also applies to layers "
            "that this computer computes for other machines in your household, but not to guests."
        )
        if state.is_locked:
            about = self.tr("No prompts are kept because their key can't be read.")
        self.kept.set_about(about)

    def _add_places(self) -> None:
        self.add(self.encrypted, title=self.tr("Your chats"))
        self.add(
            Setting(self.tr("Chats"), str(self.services.folder), ValueLabel(self.tr("On this computer"))),
            Setting(self.tr("Key of this machine"), "", self.key, words="keyring identity"),
            Setting(self.tr("Chat key"), "", self.chat_key, words="keyring encrypted"),
            Setting(self.tr("Access token for Hugging Face"), "", self.token, words="keyring"),
            title=self.tr("Where keys are stored"),
        )
        remove = button(self.tr("Remove all data…"), self._erase)
        self.add(
            Setting(
                self.tr("Remove all data"),
                self.tr("Deletes everything Poolhouse stores on this computer, then quits."),
                remove,
                words="delete uninstall erase",
            ),
            title=self.tr("Before you remove Poolhouse"),
        )

    def refresh(self) -> None:
        self._tell_machines()
        self._tell_lock()
        self.ask("GET", "/settings", self._tell, answer=Settings)
        self.ask("GET", "/token", self._tell_token, answer=TokenState)
        self.ask("GET", "/api", self._tell_upstreams, answer=ChatApi)
        self.ask("GET", "/walls", self._tell_walls, answer=Walls)
        self.ask("GET", "/updates", self._tell_updates, answer=Updates)
        self.ask("GET", "/prompts", self._tell_prompts, answer=KeptPrompts)

    def _tell_machines(self) -> None:
        machines = [machine for machine in machines_of(self.services.pool.now) if not machine.this]
        contacts = (f"{machine.name}: {self._contact(machine)}" for machine in machines)
        self.machines.setText("; ".join(contacts) or self.tr("None yet"))
        snapshot = self.services.pool.now
        self.nearby.setText(self.tr("On") if snapshot.discovery.on else self.tr("Off"))
        running = sum(
            download.state in ("running", "starting") and not download.machine
            for download in snapshot.downloads.values()
        )
        last = snapshot.hub.last_contact
        at_rest = self._last(last) if last else self._never()
        self.hub.setText(self.tr("%n download(s) in progress", "", running) if running else at_rest)

    def _contact(self, machine: MachineFacts) -> str:
        if machine.online:
            return self.tr("connected now")
        return self._last(machine.seen_at) if machine.seen_at else self.tr("not seen yet")

    def _never(self) -> str:
        return self.tr("Not used since the background service started")

    def _last(self, at: float) -> str:
        return self.tr("Last: {time}").format(time=moment(at))

    def _tell_upstreams(self, api: ChatApi) -> None:
        contacts = [
            f"{server.name}: {self._last(server.last_contact) if server.last_contact else self._never()}"
            for server in api.upstreams
            if server.on or server.last_contact
        ]
        self.upstreams.setText("; ".join(contacts) or self.tr("No server is turned on"))

    def _tell_updates(self, updates: Updates) -> None:
        place = updates.place
        self._asked.is_removed, self._unasked.is_removed = place is None, place is not None
        if place is not None:
            daily = self.tr("As you chose, Poolhouse checks {place} for a new version once a day.")
            wished = self.tr("Poolhouse checks {place} for a new version only when you click “Check now”.")
            self._asked.set_about((daily if updates.daily else wished).format(place=place))
            last = updates.last_contact
            self.updates.setText(self._last(last) if last else self.tr("Never"))
        self.search_again()

    def _tell_walls(self, walls: Walls) -> None:
        words = {"full": self.tr("Fully on"), "partial": self.tr("Partly on"), "none": self.tr("Not available")}
        self.walls.setText(words.get(walls.level, self.tr("Unknown")))
        self._walled.set_about(" ".join(said(reason) for reason in (walls.cause_facts, walls.cure_facts) if reason))

    def _tell(self, settings: Settings) -> None:
        self._where = settings.keys_facts
        self.key.setText(storage_sentence(self._where))
        self._tell_lock()

    def _tell_lock(self) -> None:
        lock = self.services.lock
        self.encrypt.show_on(lock.is_on)
        self.encrypt.setEnabled(not lock.is_busy and not lock.is_locked)
        words = self.tr(
            "Messages, titles, folders, drafts and system messages are encrypted on disk. The chat key is stored "
            "with this machine's key. If you lose the chat key, you lose your chats. Exported chats are not encrypted."
        )
        if self._where is not None and self._where.code == "kept_in_file":
            words += " " + self.tr(
                "No keyring was found, so the key is in a file next to your chats. Anyone who gets both can read them."
            )
        if lock.is_locked:
            words = self.tr("Your chats are locked. The Chat page shows why.")
        self.encrypted.set_about(words)
        none = self.tr("None: your chats are not encrypted")
        self.chat_key.setText(storage_sentence(self._where) if lock.is_on else none)

    def _erase(self) -> None:
        EraseDialog(self.services, self.window()).open()

    def _encrypt(self, on: bool) -> None:
        EncryptionDialog(self.services.lock, self, on=on).begin()

    def _turned(self, error: AppError | None) -> None:
        if self.isVisible():
            self.encrypt.setFocus()  # the disabled switch lost the keyboard focus
        if error is not None:
            self.fail(error)
            return
        if not self.services.lock.is_on:
            self.told.emit(self.tr("Your chats are no longer encrypted."), "info")
            return
        words = self.tr("Your chats are encrypted now.")
        if left := self.services.lock.readable_leftovers():
            more = self.tr(
                "These older files with your chats are not encrypted: {names}. If you don't need them, delete them "
                "from {folder}."
            )
            folder = str(self.services.folder)
            words += " " + more.format(names=", ".join(left), folder=folder)
        self.told.emit(words, "info")

    def _tell_token(self, token: TokenState) -> None:
        self.token.setText(storage_sentence(token.where_facts) if token.set else self.tr("None saved"))
