"""The Updates settings, with the changes in this version, the latest version, and its installation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QTimer
from PySide6.QtWidgets import QFileDialog, QFrame, QWidget

from app import __version__
from app.api.computer import AskedMachines, Computer, Settings
from app.api.computer import Updates as UpdateState
from app.core.errors import AppError, Reason
from app.gui.api.node_client import Calls
from app.gui.app.app_context import AppContext
from app.gui.app.node_dialog import Sheet
from app.gui.look import formats, sizes
from app.gui.look.sentences import said
from app.gui.look.theme import set_role
from app.gui.pool.machine_facts import machines_of
from app.gui.pool.machine_words import moment
from app.gui.settings.about import TextDialog
from app.gui.settings.settings_group import Setting, SettingsGroup
from app.gui.this_computer.hardware_card import ENGINES
from app.gui.widgets.buttons import Switch, button
from app.gui.widgets.flow import Beside, Flow
from app.gui.widgets.labels import ValueLabel, label, paragraph, show_if
from app.gui.widgets.layouts import column
from app.gui.widgets.progress import Progress


class DailyCheck(QFrame):
    """The switch for daily update checks, as shown in the first steps.

    It is hidden if this build cannot check for updates.
    """

    def __init__(self, services: AppContext) -> None:
        super().__init__()
        set_role(self, "card")
        self._client, self._pool, self._calls = services.client, services.pool, Calls()
        title = self.tr("Check for updates once a day")
        self.switch = Switch(services.theme, title, self._choose)
        self.words = paragraph("", "caption")
        heading, texts = label(title), QWidget()
        heading.setWordWrap(True)
        texts.setLayout(column(heading, self.words, gap=0))
        box = Beside(texts, self.switch, gap=sizes.L)
        box.setContentsMargins(sizes.L, sizes.L, sizes.L, sizes.L)
        self.setLayout(box)
        self.hide()

    def refresh(self) -> None:
        """Request the update settings if the node is available."""
        if self._pool.is_there:
            self._calls.keep("ask", self._client.get("/updates", self.show_state, answer=UpdateState))

    def end(self) -> None:
        """Cancel all requests in progress."""
        self._calls.end_all()

    def show_state(self, updates: UpdateState) -> None:
        """Show the address at which this build checks for updates, or hide the switch if it cannot check."""
        place = updates.place
        self.setVisible(place is not None)
        if place is not None:
            words = self.tr("Checks {place} for a new version. You decide whether to install it.")
            self.words.setText(words.format(place=place))
            self.switch.setAccessibleDescription(self.words.text())
            self.switch.show_on(updates.daily)

    def _choose(self, on: bool) -> None:
        chosen = {"look_for_updates": on}
        self._calls.keep("choose", self._client.post("/settings", chosen, self._chosen, answer=Settings))

    def _chosen(self, settings: Settings) -> None:
        self.switch.show_on(settings.look_for_updates)


class InstallAnywayDialog(Sheet):
    """A dialog that asks whether to install a version that other computers would not understand."""

    def __init__(self, services: AppContext, reason: Reason, agree: Callable[[], object], parent: QWidget) -> None:
        super().__init__(services, _tr("Install this update?"), said(reason), parent)
        self._agree = agree
        self.act = button(_tr("Install anyway"), self._agreed, "primary")
        self.offer(_tr("Cancel"), self.act)

    def _agreed(self) -> None:
        self.accept()
        self._agree()


def _tr(text: str) -> str:
    return QCoreApplication.translate("Updates", text)


POLL_MS = 400
CHANGES = Path(__file__).resolve().parents[3] / "CHANGELOG.md"


class Updates(SettingsGroup):
    """The Updates settings, which find, install and start newer versions, or return to the previous one."""

    def __init__(self, services: AppContext) -> None:
        super().__init__(services, self.tr("Updates"))
        self.engine, self.others = ValueLabel(), ValueLabel()
        self._last_error: Reason | None = None
        self._folder = ""  # the one that the user chose last
        new = button(self.tr("Show"), self._show_changes)
        new.setAccessibleName(self.tr("Show what's new"))
        new.setEnabled(CHANGES.is_file())
        changes = self.tr("Changes in this version and earlier ones.")
        if not CHANGES.is_file():
            changes = self.tr("This copy doesn't include the list of changes.")
        self._others = Setting(
            self.tr("Your other machines"),
            self.tr("Machines in a household need the same version to share a model."),
            self.others,
            words="household version",
        )
        self.add(
            Setting("Poolhouse", "", ValueLabel(__version__), words=self.tr("Version")),
            Setting(
                self.tr("Engine"),
                self.tr("The engine runs the models and comes with Poolhouse."),
                self.engine,
                words="llama.cpp llamacpp",
            ),
            self._others,
            Setting(self.tr("What's new"), changes, new, words="changelog"),
            title=self.tr("This version"),
        )
        self._add_newer()
        services.pool.changed.connect(self._tell_others)

    def _add_newer(self) -> None:
        self.newest = ValueLabel()
        self.check = button(self.tr("Check now"), self._check)
        self._place = Setting(
            self.tr("Newest version"), "", Flow(self.newest, self.check), wide=True, words="check update release"
        )
        name = self.tr("Check once a day")
        self.daily = Switch(self.services.theme, name, self._choose)
        self._daily = Setting(
            name,
            self.tr("If a newer version is available, the Activity page tells you."),
            self.daily,
            default=self.tr("Default: off"),
            words="automatic update",
        )
        self._nowhere = Setting(
            self.tr("Poolhouse can't check for updates"),
            self.tr("This copy doesn't know where new versions are published. Check the site you downloaded it from."),
        )
        self.install = button(self.tr("Install"), self._install, "primary")
        self.news = button(self.tr("What's new"), self._show_news)
        self._new = Setting(self.tr("A newer version is available"), "", Flow(self.install, self.news), wide=True)
        self.bar = Progress(self.tr("Installing an update"))
        self.stop = button(self.tr("Cancel"), self._stop_install)
        self._busy = Setting(self.tr("Installing an update"), "", column(self.bar, Flow(self.stop)), wide=True)
        self.restart = button(self.tr("Restart now"), self._restart, "primary")
        self._ready = Setting(self.tr("An update is installed"), "", self.restart)
        self._notice = Setting(self.tr("An update didn't start"))
        self.agree = button(self.tr("Update"), self._install, "primary")
        self.decline = button(self.tr("Not now"), self._decline)
        self._asked = Setting(
            self.tr("Another computer asks for an update"), "", Flow(self.agree, self.decline), wide=True
        )
        self.ask_all = button(self.tr("Ask"), self._ask_all)
        self._all = Setting(
            self.tr("Update all computers"),
            self.tr("Asks on the screen of each connected computer whether to install the newest version."),
            self.ask_all,
            words="household pool",
        )
        choose = button(self.tr("Choose…"), self._choose_folder)
        self._from = Setting(
            self.tr("Install from a folder"),
            self.tr("For computers without internet: choose a folder or a USB stick with an update of Poolhouse."),
            choose,
            words="usb stick offline file",
        )
        self.back = button(self.tr("Go back"), self._roll_back)
        self._back = Setting(self.tr("Earlier version"), "", self.back, words="rollback downgrade previous")
        self._cannot = Setting(self.tr("To update"))
        self.add(
            self._notice,
            self._asked,
            self._ready,
            self._busy,
            self._new,
            self._nowhere,
            self._place,
            self._daily,
            self._all,
            self._from,
            self._back,
            self._cannot,
            title=self.tr("Newer versions"),
        )
        self._poll = QTimer(self)
        self._poll.setSingleShot(True)
        self._poll.setInterval(POLL_MS)
        self._poll.timeout.connect(lambda: self.ask("GET", "/updates", self._tell, answer=UpdateState))
        self._tell(UpdateState())

    def refresh(self) -> None:
        self._tell_others()
        self.ask("GET", "/machine", self._tell_engine, answer=Computer)
        self.ask("GET", "/updates", self._tell, answer=UpdateState)

    def reset(self) -> None:
        self._choose(on=False)

    def _check(self) -> None:
        self.check.setEnabled(False)
        self.newest.setText(self.tr("Asking…"))
        self.ask("POST", "/updates", self._tell, answer=UpdateState)

    def fail(self, error: AppError) -> None:
        """Show an error, and restore the last known state."""
        super().fail(error)
        self._tell(self._updates)

    def _choose(self, on: bool) -> None:
        self.ask("POST", "/settings", self._chosen, {"look_for_updates": on}, answer=Settings)

    def _chosen(self, settings: Settings) -> None:
        self.daily.show_on(settings.look_for_updates)

    def _install(self) -> None:
        self.install.setEnabled(False)
        self.ask("POST", "/updates/install", self._tell, {}, answer=UpdateState)

    def _choose_folder(self) -> None:
        folder = QFileDialog.getExistingDirectory(self.window(), self.tr("Choose the folder with the update"))
        if folder:
            self._install_folder(folder)

    def _install_folder(self, folder: str, *, anyway: bool = False) -> None:
        self._folder = folder
        self.ask("POST", "/updates/install", self._tell, {"path": folder, "anyway": anyway}, answer=UpdateState)

    def _fail_install(self, reason: Reason) -> None:
        """Show why the last installation failed.

        If other computers won't understand the version, ask whether to continue.
        """
        folder, self._folder = self._folder, ""
        if folder and reason.code == "update_others_first":
            agree = partial(self._install_folder, folder, anyway=True)
            InstallAnywayDialog(self.services, reason, agree, self.window()).open()
            return
        self.failed.emit(AppError(reason.code, **reason.facts))

    def _stop_install(self) -> None:
        self.stop.setEnabled(False)
        self.ask("DELETE", "/updates/install", self._tell, answer=UpdateState)

    def _roll_back(self) -> None:
        self.ask("POST", "/updates/rollback", self._tell, {}, answer=UpdateState)

    def _restart(self) -> None:
        """Close the window and its node. The installed version starts afterwards."""
        if not self.services.launcher.started:  # a node without a window is restarted by itself
            self.ask("POST", "/updates/restart", lambda _: self._quit(), {}, answer=UpdateState)
            return
        self._quit()

    def _quit(self) -> None:
        self.services.launcher.restart_at_end()
        QCoreApplication.quit()

    def _decline(self) -> None:
        self.ask("DELETE", "/updates/asked", self._tell, answer=UpdateState)

    def _ask_all(self) -> None:
        self.ask_all.setEnabled(False)
        self.ask("POST", "/updates/ask", self._tell_asked, {}, answer=AskedMachines)

    def _tell_asked(self, answer: AskedMachines) -> None:
        """Show which computers' owners are asked, which need not be asked, and which must be updated by hand."""
        self.ask_all.setEnabled(True)
        sentences = {
            "asked": self.tr("Asked to install {version}: {machines}."),
            "settled": self.tr("Already updated to {version}, or declined by the owner: {machines}."),
            "": self.tr("These computers can't be asked, so update them by hand: {machines}."),
        }
        parts = []
        for kind, sentence in sentences.items():
            if names := ", ".join(machine.name for machine in answer.machines if machine.answer == kind):
                parts.append(sentence.format(version=answer.version, machines=names))
        self.told.emit(" ".join(parts) or self.tr("No other computer is connected."), "info")

    def _show_news(self) -> None:
        TextDialog(self.services, self.tr("What's new"), self._updates.changes, self.window()).open()

    def _tell(self, updates: UpdateState) -> None:
        """Show the state of updates. Actions that this build or this copy does not support are hidden."""
        self._updates, place = updates, updates.place
        is_busy = bool(updates.phase)
        self._nowhere.is_removed = place is not None
        self._place.is_removed = self._daily.is_removed = place is None
        offers = updates.newer and updates.can_install and updates.ready != updates.version
        self._new.is_removed = not offers or is_busy
        self._busy.is_removed = not is_busy
        self._ready.is_removed = updates.ready is None or is_busy
        self._notice.is_removed = updates.notice_facts is None
        self._asked.is_removed = not updates.asked_by or is_busy
        words = self.tr("{machine} asks you to install Poolhouse {version} here. Household, chats and models are kept.")
        self._asked.set_about(words.format(machine=updates.asked_by, version=updates.asked_version))
        self._from.is_removed = not updates.can_install or is_busy
        self._back.is_removed = updates.previous is None or is_busy
        self._cannot.is_removed = updates.can_install or updates.cannot_facts is None
        for setting, reason in ((self._notice, updates.notice_facts), (self._cannot, updates.cannot_facts)):
            setting.set_about(said(reason))
        if place is not None:
            words = self.tr("Checks {place} for a new version when you click the button. Nothing else is sent.")
            self._place.set_about(words.format(place=place))
            self.newest.setText(self._newest_words(updates))
            self.daily.show_on(updates.daily)
            self.check.setEnabled(True)
        self._tell_new(updates)
        self._tell_progress(updates)
        if updates.ready is not None:
            words = self.tr("Restart Poolhouse now to use version {version}, or use it from the next start.")
            self._ready.set_about(words.format(version=updates.ready))
        if updates.previous is not None:
            words = self.tr("Poolhouse {version} will be used again from the next start. Nothing is deleted.")
            self._back.set_about(words.format(version=updates.previous))
        if updates.error_facts is not None and updates.error_facts != self._last_error and not is_busy:
            self._fail_install(updates.error_facts)
        self._last_error = updates.error_facts
        if is_busy:
            self._poll.start()
        self.search_again()

    def _tell_new(self, updates: UpdateState) -> None:
        """Describe the newer version, with its download size and any computers that would not understand it."""
        words = self.tr("Poolhouse {version}. {size} to download; your household, chats and models are kept.")
        parts = [words.format(version=updates.version, size=formats.size(updates.download_bytes))]
        if updates.staged:
            parts.append(self.tr("This version is being released gradually. This computer gets it a little later."))
        parts.append(said(updates.warning_facts))
        self._new.set_about(" ".join(filter(None, parts)))
        self.install.setEnabled(True)
        show_if(self.news, bool(updates.changes))

    def _tell_progress(self, updates: UpdateState) -> None:
        total = updates.total_bytes
        self.bar.tell(updates.done_bytes / total if updates.phase == "downloading" and total else None)
        done = formats.size(updates.done_bytes)
        words = {
            "looking": self.tr("Looking for the newest version"),
            "downloading": self.tr("{done} of {size} downloaded").format(done=done, size=formats.size(total)),
            "installing": self.tr("Checking and unpacking"),
        }
        self._busy.set_about(words.get(updates.phase, ""))
        self.stop.setEnabled(bool(updates.phase))

    def _newest_words(self, updates: UpdateState) -> str:
        if not updates.last_contact:
            return self.tr("Not checked yet")
        when = moment(updates.last_contact)
        if updates.newer:
            return self.tr("{version} is available").format(version=updates.version)
        if updates.version:
            return self.tr("You have the newest version (checked {time})").format(time=when)
        return self.tr("No version has been published yet (checked {time})").format(time=when)

    def _tell_engine(self, computer: Computer) -> None:
        engines = [
            f"{ENGINES.get(engine.name, engine.name)} {engine.version}".strip()
            for engine in computer.engines
            if not engine.missing
        ]
        self.engine.setText(", ".join(engines) or self.tr("Not found"))

    def _tell_others(self) -> None:
        """Show the versions of the other machines and, if there are any, the button that asks them to update."""
        machines = [machine for machine in machines_of(self.services.pool.now) if not machine.this]
        odd = [f"{machine.name} {machine.other_version}" for machine in machines if machine.other_version]
        self._all.is_removed = not machines
        self.search_again()
        words = self.tr("%n running this version", "", sum(machine.online for machine in machines))
        self.others.setText(", ".join(odd) or (words if machines else self.tr("None yet")))

    def _show_changes(self) -> None:
        text = CHANGES.read_text("utf-8", "replace")
        TextDialog(self.services, self.tr("What's new"), text, self.window()).open()
