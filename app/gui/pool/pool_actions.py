"""The actions of the Pool page on machines, links and the loaded model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from PySide6.QtCore import QObject, QPoint, Signal
from PySide6.QtWidgets import QMenu

from app.api.models import UnloadResponse
from app.api.snapshot import LinkReport, LinkReports
from app.core.errors import AppError
from app.gui.api.node_client import Call, segment
from app.gui.app.page import Page
from app.gui.diagnostics.dialogs import open_doctor
from app.gui.look.accessibility import announce
from app.gui.look.sentences import model_name, said
from app.gui.pool import machine_words
from app.gui.pool.load_forecast import LoadForecast
from app.gui.pool.machine_dialogs import (
    InterfaceDialog,
    RemoveMachineDialog,
    RenameMachineDialog,
    RolesDialog,
    preference_result,
)
from app.gui.pool.machine_facts import MachineFacts, may_change_household

HOUR_S = 3600


class MachineActions(QObject):
    """The actions on a machine, shared by its card, table row, details panel and context menu."""

    changed = Signal()  # link measurements started or ended
    details = Signal(str)  # show the details of this machine

    def __init__(self, page: Page, load_forecast: LoadForecast, machines: Callable[[], Sequence[MachineFacts]]) -> None:
        super().__init__(page)
        self._page, self._load_forecast, self._machines = page, load_forecast, machines
        self._test: Call | None = None
        self._calls: list[Call] = []

    @property
    def testing(self) -> bool:
        """Return whether links are being measured."""
        return self._test is not None

    def menu(self, machine: MachineFacts, position: QPoint) -> None:
        """Open the context menu of a machine."""
        menu = QMenu(self._page)
        menu.setAccessibleName(machine.name)
        self.fill(menu, machine)
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(position)

    def fill(self, menu: QMenu, machine: MachineFacts) -> None:
        """Add all actions for a machine and its link to a menu."""
        menu.addAction(self.tr("Details"), lambda: self.details.emit(machine.id))
        menu.addSeparator()
        if machine.this:
            self.fill_pause(menu, machine)
            menu.addSeparator()
        else:
            if machine.doubted:
                menu.addAction(self.tr("Use again"), lambda: self.use_again(machine))
            elif machine.lends:
                text = self.tr("Include again") if machine.left_out else self.tr("Exclude")
                menu.addAction(text, lambda: self.toggle(machine))
            if machine.can_test:
                test = menu.addAction(self.tr("Test link"), lambda: self.test(machine))
                test.setEnabled(not self.testing)
                menu.addAction(self.tr("Choose interface…"), lambda: self.prefer(machine))
            if not machine.online:
                menu.addAction(self.tr("Find out why…"), self.find_out_why)
            menu.addSeparator()
        machines = self._machines()
        if not (machine.this or may_change_household(machines)):
            menu.addAction(machine_words.not_admin_note(machines)).setEnabled(False)
            return
        menu.addAction(self.tr("Rename…"), lambda: self.rename(machine))
        if not machine.this:
            menu.addAction(self.tr("Permissions…"), lambda: self.choose_roles(machine))
            menu.addAction(self.tr("Remove from household…"), lambda: self.remove(machine))

    def fill_pause(self, menu: QMenu, machine: MachineFacts) -> None:
        """Add the actions that pause or resume lending to a menu."""
        if machine.state == "paused":
            menu.addAction(self.tr("Lend again"), self.resume)
            return
        for text, hours in ((self.tr("Pause lending for 1 hour"), 1), (self.tr("Pause lending for 4 hours"), 4)):
            menu.addAction(text, partial(self.pause, hours * HOUR_S))
        menu.addAction(self.tr("Pause lending until I resume"), lambda: self.pause(None))

    def toggle(self, machine: MachineFacts) -> None:
        """Exclude a machine from the forecast, or include it again."""
        if machine.lends or machine.left_out:
            self._load_forecast.leave_out(machine.id, not machine.left_out)

    def use_again(self, machine: MachineFacts) -> None:
        """Release a machine that had returned wrong numbers from quarantine, after the user has checked it."""
        self._send(f"/machines/{segment(machine.id)}/use-again", {})

    def find_out_why(self, _: MachineFacts | None = None) -> None:
        """Open the dialog that diagnoses why machines cannot be reached."""
        open_doctor(self._page.services, self._page)

    def rename(self, machine: MachineFacts) -> None:
        RenameMachineDialog(self._page.services, machine, self._say, self._page).open()

    def choose_roles(self, machine: MachineFacts) -> None:
        RolesDialog(self._page.services, machine, self._say, self._page).open()

    def remove(self, machine: MachineFacts) -> None:
        RemoveMachineDialog(self._page.services, machine, self._say, self._page).open()

    def pause(self, seconds: float | None) -> None:
        self._send("/lending/pause", {"seconds": seconds, "at_once": False})

    def resume(self) -> None:
        self._send("/lending/resume", {})

    def prefer(self, machine: MachineFacts) -> None:
        """Let the user choose the interface used to reach a machine."""
        InterfaceDialog(self._page.services, machine, self._say, self._page).open()

    def use_interface(self, machine: MachineFacts) -> None:
        """Switch to the faster interface that the node has found."""
        link = machine.link
        if link is None or not link.better_interface or self._test is not None:
            return
        name = next((other.name for other in self._machines() if other.id == link.to), "")
        path, body = f"/machines/{segment(link.to)}/interface", {"interface": link.better_interface}
        preferred = partial(self._preferred, name)
        self._test = self._page.services.client.post(path, body, preferred, self._not_tested, answer=LinkReport)
        self.changed.emit()

    def test(self, machine: MachineFacts | None = None) -> None:
        """Measure the displayed link of a machine, or all links if `machine` is None."""
        if self._test is None:
            far = machine.link.to if machine is not None and machine.link else ""
            path = f"/measure?machine={segment(far)}" if far else "/measure"
            client = self._page.services.client
            self._test = client.post(path, {}, self._tested, self._not_tested, answer=LinkReports)
            self.changed.emit()

    def stop(self) -> None:
        """Cancel all requests in progress."""
        for call in (*self._calls, self._test):
            if call is not None:
                call.cancel()

    def _tested(self, answer: LinkReports) -> None:
        self._test = None
        reasons = [said(link.reason_facts) for link in answer.links if link.reason_facts]
        if reasons:
            self._page.notice.say(" ".join(reasons), "warning")
        else:
            announce(self._page, self.tr("Links measured."))
        self.changed.emit()

    def _preferred(self, name: str, link: LinkReport) -> None:
        self._test = None
        self._say(preference_result(name, link))
        self.changed.emit()

    def _not_tested(self, error: AppError) -> None:
        self._test = None
        self._page.fail(error)
        self.changed.emit()

    def _send(self, path: str, body: Mapping[str, object]) -> None:
        call = self._page.services.client.post(path, dict(body), lambda _: None, self._page.fail)
        if call is not None:
            self._calls = [kept for kept in self._calls if kept.running]
            self._calls.append(call)

    def _say(self, sentence: str) -> None:
        self._page.notice.say(sentence)


class ModelActions(QObject):
    """The actions that load, unload or measure a model. They take time and can be canceled."""

    changed = Signal()  # a measurement started or ended

    def __init__(self, page: Page, load_forecast: LoadForecast) -> None:
        super().__init__(page)
        self._page, self._load_forecast = page, load_forecast
        self._load: Call | None = None
        self._measure: Call | None = None
        self._unload: Call | None = None

    @property
    def measuring(self) -> bool:
        """Return whether the machines are being measured."""
        return self._measure is not None

    @property
    def is_ours(self) -> bool:
        """Return whether a load or measurement started by this page is in progress. Closing the page cancels it."""
        return self._load is not None or self.measuring

    def load_without(self) -> None:
        """Load the model of the forecast without the machines that the user has left out."""
        self._begin_load(self._load_forecast.model, sorted(self._load_forecast.without))

    def load_again(self) -> None:
        """Reload the lost model."""
        self._begin_load(self._load_forecast.model)

    def cancel(self) -> None:
        """Cancel loading, even if the load was not started here."""
        self._begin_unload(lambda _: None)

    def unload(self) -> None:
        self._begin_unload(self._unloaded)

    def undo_move(self, model: str) -> None:
        """Undo the last automatic move of a model's layers."""
        self._page.services.client.post("/undo-move", {"model": model}, lambda _: None, self._page.fail)

    def measure(self) -> None:
        """Measure the speed of each machine with this model, which takes a few seconds per machine."""
        if self._measure is not None:
            return
        body = {"model": self._load_forecast.model, "measure": True}
        self._measure = self._page.services.client.post("/plan", body, self._measured, self._not_measured)
        self.changed.emit()

    def stop(self) -> None:
        """Cancel all requests in progress."""
        for call in (self._load, self._measure, self._unload):
            if call is not None:
                call.cancel()

    def _begin_load(self, model: str, without: Sequence[str] = ()) -> None:
        self._page.notice.clear()
        body = {"model": model, "without": list(without)} if without else {"model": model}
        self._load = self._page.services.client.post("/load", body, self._loaded, self._not_loaded)

    def _loaded(self, _: object) -> None:
        self._load = None
        self._load_forecast.include_all()

    def _not_loaded(self, error: AppError) -> None:
        self._load = None
        if error.reason.code != "load_stopped":
            self._page.fail(error)

    def _begin_unload(self, done: Callable[[UnloadResponse], None]) -> None:
        """Unload the main model, or cancel loading it. An embedding model stays loaded."""
        loaded, client = self._page.services.pool.now.loaded, self._page.services.client
        body = {"model": loaded.model} if loaded else {}
        self._unload = client.post("/unload", body, done, self._page.fail, answer=UnloadResponse)

    def _unloaded(self, answer: UnloadResponse) -> None:
        if model := answer.unloaded:
            text = self.tr("{model} was unloaded. Its memory is free again.").format(model=model_name(model))
            again = (self.tr("Load it again"), lambda: self._begin_load(model))
            self._page.notice.say(text, "info", again)

    def _measured(self, _: object) -> None:
        self._measure = None
        self._load_forecast.forget()
        self.changed.emit()

    def _not_measured(self, error: AppError) -> None:
        self._measure = None
        self._page.fail(error)
        self.changed.emit()
