"""Settings, Local API: host names and web origins that are allowed beside this computer's own programs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QLineEdit, QPushButton

from app.core.api_access import OFFERED_HOST
from app.gui.api.node_client import Json
from app.gui.settings.setting_row import Setting
from app.gui.settings.settings_group import Card, Group
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Flow

FIELD_WIDTH = 220
MOST_CHARACTERS = 300
SEARCHED = "allow docker container open webui browser cors origin host name"
Change = Callable[[list[str], list[str]], None]  # what is added, and what is removed


class AllowedNames:
    """A field to allow one more, and a row with Remove for each that is allowed."""

    def __init__(self, group: Group, card: Card, title: str, about: str, change: Change) -> None:
        self._group, self._card, self._change = group, card, change
        self.edit = QLineEdit()
        self.edit.setMaxLength(MOST_CHARACTERS)
        self.edit.setFixedWidth(group.services.theme.px(FIELD_WIDTH))
        self.edit.setAccessibleName(title)
        self.allow = button(_tr("Allow"), self._allow_typed)
        self.allow.setAccessibleName(_tr("Allow: {what}").format(what=title))
        self.allow.setEnabled(False)
        self.edit.returnPressed.connect(self._allow_typed)
        self.edit.textChanged.connect(lambda text: self.allow.setEnabled(bool(text.strip())))
        row = Flow(self.edit, self.allow)
        card.put(Setting(title, about, row, default=_tr("Default: none"), words=SEARCHED))
        self.names: list[str] = []
        self.removals: dict[str, QPushButton] = {}
        self._rows: dict[str, Setting] = {}

    def tell(self, names: list[str]) -> None:
        """Those that are allowed now."""
        if set(names) - set(self.names):  # what was typed is in the list now
            self.edit.clear()
        self.names = list(names)
        for name in names:
            if name not in self._rows:
                self._rows[name] = self._row(name)
                self._card.put(self._rows[name])
        for name, setting in self._rows.items():
            setting.gone = name not in names

    def _allow_typed(self) -> None:
        if text := self.edit.text().strip():
            self._change([text], [])

    def _row(self, name: str) -> Setting:
        remove = self.removals[name] = button(_tr("Remove"), partial(self._change, [], [name]))
        remove.setAccessibleName(_tr("Remove {name}").format(name=name))
        return Setting(name, "", remove, words=SEARCHED)


class AccessLists:
    """Both lists. `save` sends a part of the node's request; its answer comes back by `tell`."""

    def __init__(self, group: Group, save: Callable[[Json], None]) -> None:
        self._group, self._save = group, save
        hosts = group.add(title=_tr("Host names"))
        self.hosts = AllowedNames(
            group, hosts, _tr("Also answer by these names"),
            _tr("Containers and proxies call this computer by other names. Allow only names that you know: a website "
                "that gives itself an allowed name can reach the API."),
            partial(self._change, "host_names"),
        )  # fmt: skip
        self.offer = button(_tr("Allow"), self._allow_offered)
        self.offer.setAccessibleName(_tr("Allow: {what}").format(what=OFFERED_HOST))
        about = _tr("Containers of Docker Desktop call this computer so.")
        self.offered = Setting(OFFERED_HOST, about, self.offer, words=SEARCHED)
        hosts.put(self.offered)
        origins = group.add(title=_tr("Web pages and apps"))
        self.origins = AllowedNames(
            group, origins, _tr("Let pages from these origins use the API"),
            _tr("Such as http://localhost:3000 or app://obsidian.md. Pages from there can ask with a key and read the "
                "answers; Ollama's part without a key too, if that is on."),
            partial(self._change, "origins"),
        )  # fmt: skip

    def tell(self, told: Json) -> None:
        self.hosts.tell(told["host_names"])
        self.origins.tell(told["origins"])
        self.offered.gone = OFFERED_HOST in told["host_names"]
        self._group.search_again()

    def removed(self) -> Json:
        """The part of a request that removes all of them."""
        return {"remove_host_names": self.hosts.names, "remove_origins": self.origins.names}

    def _allow_offered(self) -> None:
        self._change("host_names", [OFFERED_HOST], [])

    def _change(self, field: str, added: list[str], removed: list[str]) -> None:
        self._save({f"add_{field}": added, f"remove_{field}": removed})


def _tr(text: str) -> str:
    return QCoreApplication.translate("AccessLists", text)
