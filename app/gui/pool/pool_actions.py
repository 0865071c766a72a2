"""The actions of the Pool page: those on one machine and its link, and those on the loaded model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, QPoint, Signal
from PySide6.QtWidgets import QMenu

from app.core.errors import AppError
from app.gui.api.node_client import Call, segment
from app.gui.app.page import Page
from app.gui.diagnostics.dialogs import why_unseen
from app.gui.look.accessibility import announce
from app.gui.look.sentences import here, model_name
from app.gui.pool import machine_words
from app.gui.pool.load_forecast import Outlook
from app.gui.pool.machine_dialogs import InterfaceSheet, RemoveSheet, RenameSheet, RolesSheet, preference_result
from app.gui.pool.machine_facts import MachineFacts, may_change

Json = dict[str, Any]
HOUR_S = 3600


class MachineActions(QObject):
    """`changed`: a test of links began or ended. `details(machine)`: a person wants all of it."""

    changed = Signal()
    details = Signal(str)

    def __init__(self, page: Page, outlook: Outlook, machines: Callable[[], Sequence[MachineFacts]]) -> None:
        super().__init__(page)
        self._page, self._outlook, self._machines = page, outlook, machines
        self._test: Call | None = None
        self._calls: list[Call] = []

    @property
    def testing(self) -> bool:
        return self._test is not None

    def menu(self, machine: MachineFacts, where: QPoint) -> None:
        """The menu of a card or a row."""
        menu = QMenu(self._page)
        menu.setAccessibleName(machine.name)
        self.fill(menu, machine)
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(where)

    def fill(self, menu: QMenu, machine: MachineFacts) -> None:
        """Everything that can be done with it and its link."""
        menu.addAction(self.tr("Details"), lambda: self.details.emit(machine.id))
        menu.addSeparator()
        if machine.this:
            self.fill_pause(menu, machine)
            menu.addSeparator()
        else:
            if machine.doubted:
                menu.addAction(self.tr("Use again"), lambda: self.use_again(machine))
            elif machine.lends:
                text = self.tr("Take back in") if machine.left_out else self.tr("Leave out")
                menu.addAction(text, lambda: self.toggle(machine))
            if machine.can_test:
                act = menu.addAction(self.tr("Test link"), lambda: self.test(machine))
                act.setEnabled(not self.testing)
                menu.addAction(self.tr("Prefer interface…"), lambda: self.prefer(machine))
            if not machine.online:
                menu.addAction(self.tr("Find out why…"), self.why)
            menu.addSeparator()
        machines = self._machines()
        if not (machine.this or may_change(machines)):
            menu.addAction(machine_words.no_right(machines)).setEnabled(False)
            return
        menu.addAction(self.tr("Rename…"), lambda: self.rename(machine))
        if not machine.this:
            menu.addAction(self.tr("What it may do…"), lambda: self.roles(machine))
            menu.addAction(self.tr("Remove from household…"), lambda: self.remove(machine))

    def fill_pause(self, menu: QMenu, machine: MachineFacts) -> None:
        if machine.state == "paused":
            menu.addAction(self.tr("Lend again"), self.resume)
            return
        for text, hours in ((self.tr("Pause lending for 1 hour"), 1), (self.tr("Pause lending for 4 hours"), 4)):
            menu.addAction(text, partial(self.pause, hours * HOUR_S))
        menu.addAction(self.tr("Pause lending until I resume"), lambda: self.pause(None))

    def toggle(self, machine: MachineFacts) -> None:
        """Leave it out to see the forecast, or take it back in."""
        if machine.lends or machine.left_out:
            self._outlook.leave_out(machine.id, not machine.left_out)

    def use_again(self, machine: MachineFacts) -> None:
        """It gave wrong numbers, and somebody has looked after it."""
        self._send(f"/machines/{segment(machine.id)}/use-again", {})

    def why(self, _: MachineFacts | None = None) -> None:
        """Of a machine that is not reached: its link and all that may be in the way are tested."""
        why_unseen(self._page.services, self._page)

    def rename(self, machine: MachineFacts) -> None:
        RenameSheet(self._page.services, machine, self._say, self._page).open()

    def roles(self, machine: MachineFacts) -> None:
        RolesSheet(self._page.services, machine, self._say, self._page).open()

    def remove(self, machine: MachineFacts) -> None:
        RemoveSheet(self._page.services, machine, self._say, self._page).open()

    def pause(self, seconds: float | None) -> None:
        body = {"seconds": seconds, "at_once": False}
        self._send("/lending/pause", body)

    def resume(self) -> None:
        self._send("/lending/resume", {})

    def prefer(self, machine: MachineFacts) -> None:
        InterfaceSheet(self._page.services, machine, self._say, self._page).open()

    def use_interface(self, machine: MachineFacts) -> None:
        """Take the interface that the node found to be better."""
        if machine.link is None or not machine.link.better_interface or self._test is not None:
            return
        path = f"/machines/{segment(machine.link.to)}/interface"
        body = {"interface": machine.link.better_interface}
        client = self._page.services.client
        done = partial(self._preferred, self._name_of(machine.link.to))
        self._test = client.post(path, body, done, self._not_tested)
        self.changed.emit()

    def test(self, machine: MachineFacts | None = None) -> None:
        """Measure the link that is shown with a machine now, or every link."""
        if self._test is None:
            client = self._page.services.client
            far = machine.link.to if machine is not None and machine.link else ""
            path = f"/measure?machine={segment(far)}" if far else "/measure"
            self._test = client.post(path, {}, self._tested, self._not_tested)
            self.changed.emit()

    def stop(self) -> None:
        """Hear of nothing any more."""
        for call in (*self._calls, self._test):
            if call is not None:
                call.cancel()

    def _tested(self, answer: Json) -> None:
        self._test = None
        reasons = [here(str(one["reason"])) for one in answer.get("links") or () if one.get("reason")]
        if reasons:
            self._page.notice.say(" ".join(reasons), "warning")
        else:
            announce(self._page, self.tr("The links are measured."))
        self.changed.emit()

    def _preferred(self, name: str, answer: Json) -> None:
        self._test = None
        self._say(preference_result(name, answer))
        self.changed.emit()

    def _not_tested(self, error: AppError) -> None:
        self._test = None
        self._page.fail(error)
        self.changed.emit()

    def _send(self, path: str, body: Json) -> None:
        call = self._page.services.client.post(path, body, lambda _: None, self._page.fail)
        if call is not None:
            self._calls = [one for one in self._calls if one.running]
            self._calls.append(call)

    def _name_of(self, machine: str) -> str:
        return next((one.name for one in self._machines() if one.id == machine), "")

    def _say(self, sentence: str) -> None:
        self._page.notice.say(sentence)


class ModelActions(QObject):
    """What takes time and can be stopped."""

    changed = Signal()

    def __init__(self, page: Page, outlook: Outlook) -> None:
        super().__init__(page)
        self._page, self._outlook = page, outlook
        self._load: Call | None = None
        self._measure: Call | None = None
        self._short: Call | None = None

    @property
    def measuring(self) -> bool:
        return self._measure is not None

    @property
    def is_ours(self) -> bool:
        """Whether this page waits for what it began itself: that ends with it."""
        return self._load is not None or self.measuring

    def load_without(self) -> None:
        """The model of the forecast, without the machines that are left out."""
        self._begin({"model": self._outlook.model, "without": sorted(self._outlook.without)})

    def cancel(self) -> None:
        """End a load that is under way, whoever began it."""
        self._short = self._page.services.client.post("/unload", self._loaded_one(), lambda _: None, self._page.fail)

    def unload(self) -> None:
        self._short = self._page.services.client.post("/unload", self._loaded_one(), self._unloaded, self._page.fail)

    def again(self) -> None:
        """What was lost."""
        self._begin({"model": self._outlook.model})

    def measure(self) -> None:
        """How fast every machine is with the model: some seconds on each."""
        if self._measure is not None:
            return
        body = {"model": self._outlook.model, "measure": True}
        self._measure = self._page.services.client.post("/plan", body, self._measured, self._not_measured)
        self.changed.emit()

    def stop(self) -> None:
        """Hear of nothing any more."""
        for call in (self._load, self._measure, self._short):
            if call is not None:
                call.cancel()

    def _begin(self, body: Json) -> None:
        self._page.notice.clear()
        self._load = self._page.services.client.post("/load", body, self._loaded, self._not_loaded)

    def _loaded(self, _: Json) -> None:
        self._load = None
        self._outlook.take_all_back()

    def _not_loaded(self, error: AppError) -> None:
        self._load = None
        if error.reason.code != "load_stopped":
            self._page.fail(error)

    def _loaded_one(self) -> Json:
        """What this page shows as loaded; a model of vectors beside it stays."""
        model = (self._page.services.pool.loaded or {}).get("model")
        return {"model": model} if model else {}

    def _unloaded(self, answer: Json) -> None:
        name = str(answer.get("unloaded") or "")
        if name:
            text = self.tr("{model} is unloaded; its memory is free again.")
            text = text.format(model=model_name(name))
            again = (self.tr("Load it again"), lambda: self._begin({"model": name}))
            self._page.notice.say(text, "info", again)

    def _measured(self, _: Json) -> None:
        self._measure = None
        self._outlook.forget()
        self.changed.emit()

    def _not_measured(self, error: AppError) -> None:
        self._measure = None
        self._page.fail(error)
        self.changed.emit()
