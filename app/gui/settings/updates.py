"""The Updates settings, with the changes in this version, the latest version, and how to get it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFrame, QWidget

from app import __version__
from app.api.computer import Computer, Settings
from app.api.computer import Updates as UpdateState
from app.core.errors import AppError
from app.gui.api.node_client import Calls
from app.gui.app.app_context import AppContext
from app.gui.look import sizes
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
            words = self.tr("Checks {place} for a new version. Nothing is downloaded.")
            self.words.setText(words.format(place=place))
            self.switch.setAccessibleDescription(self.words.text())
            self.switch.show_on(updates.daily)

    def _choose(self, on: bool) -> None:
        chosen = {"look_for_updates": on}
        self._calls.keep("choose", self._client.post("/settings", chosen, self._chosen, answer=Settings))

    def _chosen(self, settings: Settings) -> None:
        self.switch.show_on(settings.look_for_updates)


CHANGES = Path(__file__).resolve().parents[3] / "CHANGELOG.md"


class Updates(SettingsGroup):
    """The Updates settings. They never download an update, but can open its web page."""

    def __init__(self, services: AppContext) -> None:
        super().__init__(services, self.tr("Updates"))
        self.engine, self.others = ValueLabel(), ValueLabel()
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
        self.newest, self._page = ValueLabel(), ""
        self.check = button(self.tr("Check now"), self._check)
        self.open = button(self.tr("Open its page"), self._open)
        self._place = Setting(
            self.tr("Newest version"),
            "",
            Flow(self.newest, self.check, self.open),
            wide=True,
            words="check update release",
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
        self.add(
            self._nowhere,
            self._place,
            self._daily,
            Setting(
                self.tr("To update"),
                self.tr(
                    "Quit Poolhouse on this computer, replace it with the new version, and open it. Your household, "
                    "chats, models and settings are kept. Then do the same on your other machines, because machines "
                    "never update each other."
                ),
            ),
            title=self.tr("Newer versions"),
        )
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

    def _open(self) -> None:
        if self._page.startswith("https://"):
            QDesktopServices.openUrl(QUrl(self._page))

    def _tell(self, updates: UpdateState) -> None:
        """Show the state of updates. The button is hidden if this build cannot check for updates."""
        self._updates, place = updates, updates.place
        self._nowhere.is_removed = place is not None
        self._place.is_removed = self._daily.is_removed = place is None
        if place is not None:
            words = self.tr(
                "Checks {place} for a new version when you click the button. Nothing else is sent, and nothing is "
                "downloaded."
            )
            self._page = updates.page or ""
            self._place.set_about(words.format(place=place))
            self.newest.setText(self._newest_words(updates))
            self.daily.show_on(updates.daily)
            self.check.setEnabled(True)
        show_if(self.open, updates.newer)
        self.search_again()

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
        machines = [machine for machine in machines_of(self.services.pool.now) if not machine.this]
        odd = [f"{machine.name} {machine.other_version}" for machine in machines if machine.other_version]
        words = self.tr("%n running this version", "", sum(machine.online for machine in machines))
        self.others.setText(", ".join(odd) or (words if machines else self.tr("None yet")))

    def _show_changes(self) -> None:
        text = CHANGES.read_text("utf-8", "replace")
        TextDialog(self.services, self.tr("What's new"), text, self.window()).open()
