"""The card for the installed engine packs, which run models on graphics cards."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QCoreApplication, QDate, QLocale, Qt, QTimer
from PySide6.QtWidgets import QFileDialog, QFrame, QPushButton, QVBoxLayout, QWidget

from app.api.computer import Device
from app.api.engine_packs import EngineCopy, EngineOffer, EnginePack, EnginePacks
from app.core.errors import AppError
from app.gui.api.node_client import Call, segment
from app.gui.app.app_context import AppContext
from app.gui.app.node_dialog import Sheet
from app.gui.look import formats, sizes
from app.gui.look.accessibility import announce
from app.gui.look.sentences import said
from app.gui.look.theme import set_role
from app.gui.this_computer.engine_copies import ConfirmCopyDialog, CopyRow, OffersDialog, checksum_line, copy_outcome
from app.gui.widgets.buttons import button
from app.gui.widgets.files import LastFolder, save_file
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label, paragraph, show_if
from app.gui.widgets.layouts import clear_layout, column, layout_widget, line
from app.gui.widgets.notice import Remark

COPY_MS = 500  # between looks at the progress of a copy
SUFFIX = ".tar.gz"


class EnginesCard(QFrame):
    """The engine packs of this machine, with buttons to install, test, select and remove them."""

    def __init__(self, services: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_role(self, "card")
        self._services, self._client, self._pool = services, services.client, services.pool
        self._call: Call | None = None  # a change or a test
        self._look: Call | None = None
        self._end: Call | None = None  # of a copy
        self._shown: EnginePacks | None = None
        self.buttons: dict[tuple[str, str], QPushButton] = {}  # by the name of the pack and the action
        self._rows: QVBoxLayout = column(gap=sizes.M)
        self.install = button(_tr("Install from file…"), self._choose)
        self.copy = button(_tr("Copy from another machine…"), self._look_around)
        self.progress = CopyRow(self._cancel)
        self._copying: EngineCopy | None = None
        self._tick = QTimer(self)
        self._tick.setInterval(COPY_MS)
        self._tick.timeout.connect(self.refresh)
        self.remark = Remark(services.theme, services.go)
        self.remark.hide()
        about = paragraph(_tr("An engine pack lets models run on the graphics card."), "caption")
        head = column(label(_tr("Graphics engines"), "section"), about, gap=sizes.XS)
        actions = layout_widget(Flow(self.install, self.copy))
        box = column(head, self._rows, self.progress, self.remark, actions, gap=sizes.M)
        box.setContentsMargins(sizes.L, sizes.L, sizes.L, sizes.L)
        self.setLayout(box)
        services.pool.link_changed.connect(self._link_changed)
        self._link_changed()

    @property
    def is_changing(self) -> bool:
        """Return whether the user is waiting for a change, a test or a copy."""
        return self._call is not None or self._copying is not None

    def refresh(self) -> None:
        """Request the installed packs."""
        if self._look is None and self._pool.is_there:
            self._look = self._client.get("/engines", self._show, self._not_seen, answer=EnginePacks)

    def add(self, path: str) -> None:
        """Install a pack from a file and test it."""
        self._ask(_tr("Installing and testing the pack…"), "/engines", {"path": path})

    def copy_pack(self, offer: EngineOffer) -> None:
        """Copy a pack from another machine with the user's consent, and test it."""
        seen = ("machine", "sha256", "pack", "built", "size_bytes")  # all that the consent has shown
        order = {name: getattr(offer, name) for name in seen}
        self._ask(_tr("Asking {machine} for the pack…").format(machine=offer.name), "/engines/copy", order, self._begun)

    def _begun(self, packs: EnginePacks) -> None:
        """Show a copy that has started, or its result if it has already ended."""
        self._call = None
        self.remark.hide()
        self._show(packs)
        if packs.copy is not None and packs.copy.is_over:
            self._tell(*copy_outcome(packs.copy))

    def _look_around(self) -> None:
        dialog = OffersDialog(self._services, self)
        dialog.chosen.connect(lambda offer: ConfirmCopyDialog(self._services, offer, self.copy_pack, self).open())
        dialog.open()

    def _cancel(self) -> None:
        if self._end is None:
            path = "/engines/copy/cancel"
            self._end = self._client.post(path, {}, self._ended, self._not_seen, answer=EnginePacks)
            self._set_enabled()

    def _ended(self, packs: EnginePacks) -> None:
        self._end = None
        self._show(packs)

    def _save(self, pack: EnginePack) -> None:
        kinds = {_tr("Engine packs (*.tar.gz)"): SUFFIX}
        last = LastFolder(self._services.preferences, "engines")
        file = save_file(self, _tr("Save an engine pack"), Path(f"{pack.name}{SUFFIX}"), kinds, last)
        if file is not None:
            self.export(pack, file)

    def export(self, pack: EnginePack, file: Path) -> None:
        """Write a pack to a file from which another computer can install it."""
        words = _tr("The pack was saved as {file}.").format(file=file.name)
        path, order = f"/engines/{segment(pack.name)}/export", {"path": str(file), "replace": True}
        self._ask(_tr("Saving the pack…"), path, order, lambda packs: self._saved(packs, words))

    def _saved(self, packs: EnginePacks, words: str) -> None:
        self._call = None
        self._show(packs)
        self._tell(words)

    def _choose(self) -> None:
        last = LastFolder(self._services.preferences, "engines")
        dialog = QFileDialog(self, _tr("Install an engine pack"), last.folder())
        dialog.setNameFilter(_tr("Engine packs (*.tar.gz)"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda path: last.keep(Path(path)))
        dialog.fileSelected.connect(self.add)
        dialog.open()

    def _test(self, pack: EnginePack) -> None:
        self._ask(_tr("Testing the pack…"), "/engines/test", {"backend": pack.backend})

    def _use(self, pack: EnginePack) -> None:
        self._ask(_tr("Testing the pack…"), f"/engines/{segment(pack.name)}/use", {})

    def _roll_back(self, pack: EnginePack) -> None:
        self._ask(_tr("Switching to another pack…"), "/engines/rollback", {"backend": pack.backend})

    def _remove(self, pack: EnginePack) -> None:
        RemovePackDialog(self._services, pack, self._removed, self).open()

    def _removed(self, packs: EnginePacks) -> None:
        self._show(packs)
        self._tell(_tr("The pack was removed."))

    def _ask(
        self, progress: str, path: str, body: dict[str, Any], done: Callable[[EnginePacks], None] | None = None
    ) -> None:
        self._tell(progress)
        self._call = self._client.post(path, body, done or self._answered, self._fail, answer=EnginePacks)
        self._set_enabled()

    def _answered(self, packs: EnginePacks) -> None:
        """Show the packs after a change, and report the result of the change."""
        self._call = None
        self._show(packs)
        for pack in packs.packs:
            if pack.name in packs.changed:
                self._tell(outcome(pack), "error" if pack.problem_facts else "muted")
                return

    def _show(self, packs: EnginePacks) -> None:
        """Show the current packs. The result of a change remains visible until the next change starts."""
        if self._look is not None:
            self._look.cancel()  # an older answer must not replace this one
            self._look = None
        self._follow(packs.copy)
        if packs.packs != (self._shown.packs if self._shown else None):
            focused = next((key for key, shown in self.buttons.items() if shown.hasFocus()), None)
            self._shown = packs
            self._lay_out(packs.packs)
            if focused is not None:
                self.buttons.get(focused, self.install).setFocus()
        self._set_enabled()

    def _follow(self, copy: EngineCopy | None) -> None:
        """Show the progress of a copy, and its result once when it ends."""
        before, self._copying = self._copying, None if copy is None or copy.is_over else copy
        self.progress.show_copy(copy)
        if self._copying is not None:
            self._tick.start()
            return
        self._tick.stop()
        if before is None:
            return
        if copy is None:  # the node was started again
            self._tell(
                _tr("The copy was interrupted. Copy the pack again to continue. The part that has arrived is kept."),
                "error",
            )
        else:
            self._tell(*copy_outcome(copy))

    def _lay_out(self, packs: list[EnginePack]) -> None:
        clear_layout(self._rows)
        self.buttons.clear()
        if not packs:
            self._rows.addWidget(paragraph(_tr("No pack is installed, so models run on the processor."), "muted"))
        for number, pack in enumerate(packs):
            if number:
                self._rows.addWidget(line())
            self._rows.addWidget(self._row(pack, packs))

    def _row(self, pack: EnginePack, packs: list[EnginePack]) -> QWidget:
        title = paragraph(pack_title(pack))
        details = [paragraph(words, role) for words, role in pack_details(pack)]
        actions = Flow()
        for name, text, spoken, act, offered in (
            ("use", _tr("Use"), _tr("Use {pack}"), self._use, not pack.current),
            (
                "back",
                _tr("Use previous"),
                _tr("Use the previous pack instead of {pack}"),
                self._roll_back,
                has_previous(pack, packs),
            ),
            ("test", _tr("Test"), _tr("Test {pack}"), self._test, True),
            ("save", _tr("Save to file…"), _tr("Save {pack} to a file"), self._save, bool(pack.engine_version)),
            ("remove", _tr("Remove…"), _tr("Remove {pack}"), self._remove, True),
        ):
            if offered:
                made = self.buttons[pack.name, name] = button(text, partial(act, pack))
                made.setAccessibleName(spoken.format(pack=pack.name))
                actions.addWidget(made)
        row = QWidget()
        row.setLayout(column(title, *details, layout_widget(actions), gap=sizes.XS))
        row.setAccessibleName(pack.name)
        return row

    def _tell(self, words: str, role: str = "muted") -> None:
        self.remark.say(words, role)
        self.remark.show()
        announce(self, words)

    def _not_seen(self, error: AppError) -> None:
        self._look = self._end = None
        self.remark.show()
        self.remark.fail(error)

    def _fail(self, error: AppError) -> None:
        self._call = None
        self.remark.show()
        self.remark.fail(error)
        self._set_enabled()

    def _link_changed(self) -> None:
        show_if(self, self._pool.is_there or self._shown is not None)
        self._set_enabled()
        if self.isVisible() and self._shown is None:
            self.refresh()

    def _set_enabled(self) -> None:
        enabled = self._pool.is_there and self._call is None
        for shown in (self.install, *self.buttons.values()):
            shown.setEnabled(enabled)
        self.copy.setEnabled(enabled and self._copying is None)
        self.progress.cancel.setEnabled(self._end is None)


class RemovePackDialog(Sheet):
    """A confirmation dialog for deleting an engine pack."""

    def __init__(
        self, services: AppContext, pack: EnginePack, done: Callable[[EnginePacks], object], parent: QWidget
    ) -> None:
        title = _tr("Remove the pack {name}").format(name=pack.label)
        sentence = _tr("The pack's files will be deleted.")
        if pack.removal_facts is not None:
            sentence = f"{sentence} {said(pack.removal_facts)}"
        super().__init__(services, title, sentence, parent)
        self._pack, self._done = pack, done
        self.add(paragraph(pack.name, "muted"))
        self.act = button(_tr("Remove"), self.remove, "danger")
        self.offer(_tr("Cancel"), self.act)

    def remove(self) -> None:
        self.act.setEnabled(False)
        path = f"/engines/{segment(self._pack.name)}"
        self.keep(self.services.client.delete(path, self._removed, self._refused, answer=EnginePacks))

    def _removed(self, packs: EnginePacks) -> None:
        self.accept()
        self._done(packs)

    def _refused(self, error: AppError) -> None:
        self.act.setEnabled(True)
        self.fail(error)


def has_previous(pack: EnginePack, packs: list[EnginePack]) -> bool:
    """Return whether a pack is in use and a previous pack exists to return to."""
    return pack.current and any(other.previous and other.backend == pack.backend for other in packs)


def outcome(pack: EnginePack) -> str:
    """Return a sentence about the result of installing, testing or selecting a pack."""
    if pack.problem_facts is not None:
        return said(pack.problem_facts)
    if pack.current and pack.idle_facts is not None:
        return _tr("{name} is selected but not in use now.").format(name=pack.label)
    if pack.current:
        return _tr("{name} is in use.").format(name=pack.label)
    return _tr("{name} passed its test.").format(name=pack.label)


def pack_title(pack: EnginePack) -> str:
    """Return the name, version and size of a pack."""
    if not pack.engine_version:  # its manifest cannot be read
        return pack.name
    text = _tr("{name} for llama.cpp {version}, {size}, {state}")
    return text.format(
        name=pack.label, version=pack.engine_version, size=formats.size(pack.size_bytes), state=_state(pack)
    )


def pack_details(pack: EnginePack) -> list[tuple[str, str]]:
    """Return the text and role of each line below the title of a pack."""
    lines: list[tuple[str, str]] = []
    if pack.problem_facts is not None:
        lines.append((said(pack.problem_facts), "error"))
    if pack.idle_facts is not None:
        lines.append((said(pack.idle_facts), "muted"))
    lines += [(_device(device), "") for device in pack.devices]
    if pack.built:
        day = QDate.fromString(pack.built, Qt.DateFormat.ISODate)
        built = QLocale().toString(day, QLocale.FormatType.ShortFormat)
        lines.append((_tr("Built on {date}: {name}").format(date=built, name=pack.name), "caption"))
    if pack.copied_from:
        lines.append((_tr("Copied from {machine}.").format(machine=pack.copied_from), "caption"))
    if pack.sha256:
        lines.append((checksum_line(pack.sha256), "caption"))
    return lines


def _state(pack: EnginePack) -> str:
    if pack.problem_facts is not None:
        return _tr("not used")
    if pack.current:
        return _tr("in use") if pack.idle_facts is None else _tr("selected, but not in use now")
    return _tr("previously used") if pack.previous else _tr("installed")


def _device(device: Device) -> str:
    name, amount = device.description or device.name, formats.size(device.total_bytes)
    if device.kind == "igpu":
        return _tr("{name}, {size} shared with the processor").format(name=name, size=amount)
    return _tr("{name}, {size}").format(name=name, size=amount)


def _tr(text: str) -> str:
    return QCoreApplication.translate("Engines", text)
