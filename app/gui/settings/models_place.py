"""The folder of models in the settings: whether it is there, another one, and how the move stands."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

from app.core.errors import AppError
from app.gui.api.node_client import Json
from app.gui.app.app_context import Services
from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.look.sentences import here
from app.gui.models.folder_dialog import FolderSheet, choose_folder, choose_words
from app.gui.models.node_calls import Calls
from app.gui.widgets.buttons import wrapping
from app.gui.widgets.field_remark import Remark
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import paragraph
from app.gui.widgets.layouts import column
from app.gui.widgets.progress import Progress


class ModelsPlace(QWidget):
    """Shows what the node's snapshot says of it."""

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services, self._calls = services, Calls()
        self.words, self.problem = paragraph("", "caption"), Remark(services.theme, services.go)
        self.bar = Progress(_tr("Progress of the move"))
        self.choose = wrapping(choose_words(), lambda: choose_folder(services, self))
        self.own = wrapping(_tr("Use Poolhouse's own folder"), self._back)
        self.move_them = wrapping(_tr("Move them here"), self._move)
        self.stop = wrapping(_tr("Stop moving"), self._stop)
        buttons = Flow(self.choose, self.own, self.move_them, self.stop)
        self.setLayout(column(self.problem, self.words, self.bar, buttons, gap=sizes.S))
        services.pool.changed.connect(self.tell)
        self.destroyed.connect(self._calls.end_all)
        self.tell()

    def tell(self) -> None:
        """How it stands."""
        now: Json = self._services.pool.snapshot.get("models_folder") or {}
        move: Json | None = now.get("move")
        there = bool(now.get("there", True))
        elsewhere = [one for one in now.get("elsewhere") or [] if one["there"]]
        away = [one for one in now.get("elsewhere") or [] if not one["there"]]
        problems = [here(str(one["reason"])) for one in [*([] if there else [now]), *away]]
        if now.get("stopped"):
            problems.append(here(str(now["stopped"])))
        self.problem.say("\n".join(problems))
        self.problem.setVisible(bool(problems))
        lines = [_moving(move)] if move else [_lies(one) for one in elsewhere]
        self.words.setText("\n".join(lines))
        self.words.setVisible(bool(lines))
        total = int(move["total_bytes"]) if move else 0
        self.bar.tell(move["done_bytes"] / total if move and total else None)
        self.bar.setVisible(move is not None)
        self.choose.setVisible(move is None)
        self.own.setVisible(move is None and not now.get("default", True))
        self.move_them.setVisible(move is None and bool(elsewhere) and there)
        self.stop.setVisible(move is not None)

    def _back(self) -> None:
        FolderSheet(self._services, "", self).open()

    def _move(self) -> None:
        client = self._services.client
        self._calls.keep("move", client.post("/folder/move", None, _quiet, self._refused))

    def _stop(self) -> None:
        client = self._services.client
        self._calls.keep("move", client.delete("/folder/move", _quiet, self._refused))

    def _refused(self, error: AppError) -> None:
        self.problem.fail(error)
        self.problem.show()


def _moving(move: Json) -> str:
    if move.get("waits"):
        return here(str(move["waits"]))
    words = _tr("Moving {name}. In all {done} of {total}").format(
        name=move["name"], done=formats.size(move["done_bytes"]),
        total=formats.size(move["total_bytes"]),
    )  # fmt: skip
    if move.get("bytes_per_s"):
        words += f" · {formats.size(move['bytes_per_s'])}/s"
    if move.get("seconds_left") is not None:
        left = formats.whole_seconds(max(1.0, float(move["seconds_left"])))
        words += " · " + _tr("{time} left").format(time=left)
    return words


def _lies(one: Json) -> str:
    """What is still in another folder."""
    n_models = int(one["models"])
    words = QCoreApplication.translate("Models", "%n model(s) in {folder}, {size}", "", n_models)
    size = formats.size(one["bytes"])
    return words.replace("{size}", size).replace("{folder}", str(one["folder"]))


def _quiet(_: Json) -> None:
    """The snapshot shows what came of it."""


def _tr(text: str) -> str:
    return QCoreApplication.translate("Models", text)
