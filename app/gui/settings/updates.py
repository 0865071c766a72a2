"""Settings, Updates: which version this is, what it brought, how to get another. Nothing is asked of anybody."""

from __future__ import annotations

from pathlib import Path

from app import __version__
from app.gui.household.facts import machines_of
from app.gui.lending.hardware_words import ENGINES
from app.gui.node_client import Json
from app.gui.parts.buttons import button
from app.gui.parts.text import Value
from app.gui.services import Services
from app.gui.settings.about import TextDialog
from app.gui.settings.group import Group
from app.gui.settings.setting import Setting

CHANGES = Path(__file__).resolve().parents[3] / "CHANGELOG.md"


class Updates(Group):
    """There is no place to ask for newer versions yet, so nothing is checked, and the page says so."""

    can_reset = False

    def __init__(self, services: Services) -> None:
        super().__init__(services, self.tr("Updates"))
        self.engine, self.others = Value(), Value()
        new = button(self.tr("Show"), self._show_changes)
        new.setAccessibleName(self.tr("Show what is new"))
        new.setEnabled(CHANGES.is_file())
        self._others = Setting(
            self.tr("Your other machines"),
            self.tr("Machines of one household need the same version to share a model."),
            self.others, words="household version",
        )  # fmt: skip
        self.add(
            Setting("Poolhouse", "", Value(__version__), words=self.tr("Version")),
            Setting(
                self.tr("Engine"), self.tr("What computes the models. It comes with Poolhouse."),
                self.engine, words="llama.cpp llamacpp",
            ),
            self._others,
            Setting(self.tr("What is new"), self.tr("In this version and those before it."), new,
                    words="changelog"),
            title=self.tr("This version"),
        )  # fmt: skip
        self.add(
            Setting(
                self.tr("Poolhouse does not look for updates"),
                self.tr(
                    "No address is asked, neither now and then nor at the start. You hear of a new version "
                    "where you got this one."
                ),
            ),
            Setting(
                self.tr("To update"),
                self.tr(
                    "Quit Poolhouse on this computer, put the new version in the place of the old one, and "
                    "open it. Household, chats, models and settings stay as they are. Then do the same on "
                    "your other machines; they never update each other."
                ),
            ),
            title=self.tr("Newer versions"),
        )  # fmt: skip
        services.pool.changed.connect(self._tell_others)

    def refresh(self) -> None:
        self._tell_others()
        self.ask("GET", "/machine", self._tell_engine)

    def _tell_engine(self, told: Json) -> None:
        found = [
            f"{ENGINES.get(str(one['name']), one['name'])} {one.get('version') or ''}".strip()
            for one in told.get("engines") or ()
            if not one.get("missing")
        ]
        self.engine.setText(", ".join(found) or self.tr("Not found"))

    def _tell_others(self) -> None:
        others = [one for one in machines_of(self.services.pool.snapshot) if not one.this]
        odd = [f"{one.name} {one.other_version}" for one in others if one.other_version]
        words = self.tr("%n with this version", "", sum(one.online for one in others))
        self.others.setText(", ".join(odd) or (words if others else self.tr("None yet")))

    def _show_changes(self) -> None:
        text = CHANGES.read_text("utf-8", "replace")
        TextDialog(self.services, self.tr("What is new"), text, self.window()).open()
