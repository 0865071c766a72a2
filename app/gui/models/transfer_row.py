"""One file on its way: what, how much, from where, how long; and what can be done about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

from app.gui.app.mending_places import INNER, log_words
from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.look.sentences import here
from app.gui.look.theme import Theme
from app.gui.models.folder_dialog import HELPED, choose_words
from app.gui.models.importing import Importing
from app.gui.widgets.buttons import IconButton, wrapping
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import Elided, paragraph
from app.gui.widgets.layouts import column, row
from app.gui.widgets.progress import Progress

Json = dict[str, Any]
translate = QCoreApplication.translate


@dataclass(frozen=True, slots=True)
class Transfer:
    """A download or an import, as it is shown."""

    id: str
    name: str
    words: str
    share: float | None  # of one; None: not known yet
    state: str  # as the node says it; "importing" for a file from this computer
    bad: bool = False
    held_up: str = ""  # why nothing comes, though it goes on
    code: str = ""  # of the reason why it failed

    @property
    def can_pause(self) -> bool:
        return self.state in ("waiting", "starting", "running")

    @property
    def can_resume(self) -> bool:
        return self.state in ("paused", "failed")

    @property
    def is_done(self) -> bool:
        return self.state == "done"


def of_download(one: Json) -> Transfer:
    """A download of the node."""
    done, total = float(one.get("done_bytes") or 0), float(one.get("total_bytes") or 0)
    state = str(one["state"])
    return Transfer(
        str(one["id"]),
        str(one["name"]),
        _words(one, state, done, total),
        min(1.0, done / total) if total else None,
        state,
        state == "failed",
        _held_up(one),
        str(one.get("code") or ""),
    )


def _held_up(one: Json) -> str:
    if not one.get("held_up"):
        return ""
    return f"{here(str(one['held_up']))} {translate('Models', 'Poolhouse goes on trying; Pause stops that.')}"


def _words(one: Json, state: str, done: float, total: float) -> str:
    if one.get("reason"):
        return here(str(one["reason"]))
    amounts, pace = _amounts(done, total), _pace(one.get("bytes_per_s"), one.get("seconds_left"))
    match state:
        case "waiting":
            return translate("Models", "Waits for its turn")
        case "starting":
            return translate("Models", "Asking {source}").format(source=one["source"])
        case "paused":
            return translate("Models", "Paused at {amounts}").format(amounts=amounts)
        case "checking":
            words = translate("Models", "Checking the file, {amounts}")
            if not one.get("sha256"):  # nobody told what it should be
                words = translate("Models", "Reading the file for its fingerprint, {amounts}")
            return " · ".join([words.format(amounts=amounts), *pace])
        case "done":
            if one.get("machine"):
                return translate("Models", "Copied and checked")
            return translate("Models", "Downloaded and checked")
    source = translate("Models", "from {source}").format(source=one["source"])
    return " · ".join([amounts, source, *pace])


def of_import(importing: Importing, ident: str) -> Transfer:
    """The file of this computer that is taken in now, or that broke off."""
    if importing.is_broken:
        words = translate("Models", "Broken off. It is read from its beginning, once it goes on.")
        return Transfer(ident, importing.name, words, None, "paused")
    done, total = importing.done_bytes, importing.total_bytes
    share = done / total if total else None
    return Transfer(ident, importing.name, checking_words(importing), share, "importing")


def checking_words(importing: Importing) -> str:
    """How far the file is read. There is nothing yet to check it against."""
    words = translate("Models", "Reading the file for its fingerprint")
    if not importing.total_bytes:
        return words
    pace = _pace(importing.bytes_per_s, importing.seconds_left)
    return " · ".join([words, _amounts(importing.done_bytes, importing.total_bytes), *pace])


def _amounts(done: float, total: float) -> str:
    if not total:
        return formats.size(done)
    return translate("Models", "{done} of {total}").format(done=formats.size(done), total=formats.size(total))


def _pace(bytes_per_s: float | None, seconds_left: float | None) -> list[str]:
    """How fast, and how long still, as far as it is known."""
    parts = [f"{formats.size(bytes_per_s)}/s"] if bytes_per_s else []
    if seconds_left is not None:
        left = formats.whole_seconds(max(1.0, float(seconds_left)))
        parts.append(translate("Models", "{time} left").format(time=left))
    return parts


class TransferRow(QWidget):
    """`act(id, what)`: pause, resume, cancel, choose another folder, or show the log."""

    def __init__(self, theme: Theme, act: Callable[[str, str], object], first: Transfer) -> None:
        super().__init__()
        self._act, self._shown = act, first
        self._name, self._words = Elided(), Elided("", "caption")
        self._problem = paragraph("", "error")
        self._bar = Progress()
        self.pause = IconButton(theme, "pause", self.tr("Pause"), lambda: self._do("pause"))
        self.resume = IconButton(theme, "play", self.tr("Resume"), lambda: self._do("resume"))
        self.cancel = IconButton(theme, "close", self.tr("Cancel"), lambda: self._do("cancel"))
        self.folder = wrapping(choose_words(), lambda: self._do("folder"))
        self.log = wrapping(log_words(), lambda: self._do("log"))
        head = row(self._name, self.pause, self.resume, self.cancel, gap=sizes.XS)
        head.setStretch(0, 1)
        self.setLayout(column(head, self._bar, self._words, self._problem, Flow(self.folder, self.log), gap=sizes.XS))
        self.tell(first)

    def tell(self, now: Transfer) -> None:
        """How it stands."""
        self._shown = now
        self._name.say(now.name)
        self._words.say(now.words)
        self._words.setVisible(not now.bad)
        self._problem.setText(now.words if now.bad else now.held_up)
        self._problem.setVisible(now.bad or bool(now.held_up))
        self.folder.setVisible(now.bad and now.code in HELPED)
        self.log.setVisible(now.bad and now.code in INNER)
        self._bar.tell(now.share)
        stands = now.state == "paused" and now.share is None
        self._bar.setVisible(not now.is_done and not now.bad and not stands)
        self._bar.setAccessibleName(self.tr("Progress of {name}").format(name=now.name))
        self.pause.setVisible(now.can_pause)
        self.resume.setVisible(now.can_resume)
        again = self.tr("Try {name} again") if now.bad else self.tr("Resume {name}")
        self.resume.rename(again.format(name=now.name))
        self.resume.show_picture("refresh" if now.bad else "play")
        self.pause.rename(self.tr("Pause {name}").format(name=now.name))
        close = self.tr("Clear this line") if now.is_done else self.tr("Cancel {name}")
        self.cancel.rename(close.format(name=now.name))

    def _do(self, what: str) -> None:
        self._act(self._shown.id, what)
