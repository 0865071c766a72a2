"""Settings, Local API: other servers that may answer; added, tested, turned on, removed."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QPushButton

from app.gui.api.node_client import Json, segment
from app.gui.look import formats
from app.gui.pool.machine_words import moment
from app.gui.settings.api.upstream_dialogs import AddServer, CountAnew, ForgetServer
from app.gui.settings.setting_row import Setting
from app.gui.settings.settings_group import Group
from app.gui.this_computer.switch import Switch
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import show_if


class Upstreams:
    """Rows of a group: one to add a server, and one for each that there is."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._rows: dict[str, tuple[Switch, Setting]] = {}
        self._caps: dict[str, int] = {}  # in tokens
        self._names: list[str] = []  # of those that there are
        self.tests: dict[str, QPushButton] = {}
        self.removals: dict[str, QPushButton] = {}
        self.counts: dict[str, QPushButton] = {}
        self.add = button(_tr("Add a server…"), self._add)
        self._card = group.add(
            Setting(
                _tr("Another server may answer"),
                _tr("When the pool is full or lacks the model: another Poolhouse, or a service that you pay for."),
                self.add,
                words="upstream openai cloud",
            ),
            title=_tr("Other servers"),
        )

    def tell(self, those: list[Json]) -> None:
        """A switch for each, and what it has cost; no key is among this."""
        self._names = [one["name"] for one in those]
        for name in self._names:
            if name not in self._rows:
                self._rows[name] = self._row(name)
                self._card.put(self._rows[name][1])
        for name, (_, setting) in self._rows.items():
            setting.gone = name not in self._names
        words = _tr("{spent} of {cap} tokens are spent. What is sent there leaves your household.")
        uncounted = _tr("What it has cost is no longer known, so it is sent nothing until you have it counted anew.")
        for one in those:
            switch, setting = self._rows[one["name"]]
            switch.show_on(one["on"])
            spent, cap = (formats.number(one[what]) for what in ("spent_tokens", "cap_tokens"))
            counted = one.get("is_counted", True)
            told = words.format(spent=spent, cap=cap) if counted else uncounted
            self._caps[one["name"]] = one["cap_tokens"]
            over = not counted or one["spent_tokens"] >= one["cap_tokens"]
            show_if(self.counts[one["name"]], over)
            setting.tell(f"{_reached(one)} {told}")
        self._group.search_again()

    def reset(self) -> None:
        """None may answer any more."""
        for name in self._names:
            if self._rows[name][0].isChecked():
                self._turn(name, on=False)

    def _row(self, name: str) -> tuple[Switch, Setting]:
        switch = Switch(self._group.services.theme, name, partial(self._turn, name))
        switch.setAccessibleName(name)
        test = self.tests[name] = button(_tr("Test"), partial(self.test, name))
        test.setAccessibleName(_tr("Test {name}").format(name=name))
        remove = self.removals[name] = button(_tr("Remove…"), partial(self._remove, name))
        remove.setAccessibleName(_tr("Remove {name}").format(name=name))
        count = self.counts[name] = button(_tr("Count anew…"), partial(self._count, name))
        count.setAccessibleName(_tr("Count {name} anew").format(name=name))
        count.hide()  # it has a cap to spend yet
        parts = Flow(count, test, remove, switch)
        return switch, Setting(name, "", parts, words="upstream openai count spent")

    def test(self, name: str) -> None:
        """Ask it which models it has; costs no tokens."""
        path = f"/api/upstreams/{segment(name)}/test"
        self._group.ask("POST", path, self._tested, {})

    def _tested(self, answer: Json) -> None:
        name, missing = str(answer["name"]), [str(one) for one in answer["missing"]]
        if missing:
            text = _tr("{name} answers, and does not have {models}.")
            self._group.told.emit(text.format(name=name, models=", ".join(missing)), "error")
        else:
            text = _tr("{name} answers, and has what it may be asked for.")
            self._group.told.emit(text.format(name=name), "info")

    def _turn(self, name: str, on: bool) -> None:
        path = f"/api/upstreams/{segment(name)}"
        self._group.ask("POST", path, lambda told: self.tell(told["upstreams"]), {"on": on})

    def _add(self) -> None:
        AddServer(self._group.services, self._names, self._added, self._group).open()

    def _added(self, answer: Json, name: str) -> None:
        self.tell(answer["upstreams"])
        self.test(name)

    def _count(self, name: str) -> None:
        services, cap = self._group.services, self._caps[name]
        CountAnew(services, name, cap, self._counted, self._group).open()

    def _counted(self, answer: Json, name: str) -> None:
        self.tell(answer["upstreams"])
        self._group.told.emit(_tr("{name} is counted anew.").format(name=name), "info")

    def _remove(self, name: str) -> None:
        ForgetServer(self._group.services, name, self._removed, self._group).open()

    def _removed(self, answer: Json, name: str) -> None:
        self.tell(answer["upstreams"])
        text = _tr("{name} is removed, and its key is deleted.")
        self._group.told.emit(text.format(name=name), "info")


def _reached(one: Json) -> str:
    at = one.get("last_contact")
    if at is None:
        return _tr("Not reached since the background service started.")
    return _tr("Last reached at {time}.").format(time=moment(float(at)))


def _tr(text: str) -> str:
    return QCoreApplication.translate("Upstreams", text)
