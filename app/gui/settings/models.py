"""Settings, Models: where they lie, how much they take, and the token for gated ones."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QLineEdit, QPushButton, QWidget

from app.core.errors import AppError
from app.gui.api.node_client import Json
from app.gui.app.app_context import AppContext
from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.look.sentences import here
from app.gui.models.folder_dialog import FolderSheet, choose_folder, choose_words
from app.gui.models.node_calls import Calls
from app.gui.settings.household import kept
from app.gui.settings.settings_group import Group, Setting
from app.gui.widgets.buttons import Switch, button, wrapping
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import Value, bound_width, paragraph
from app.gui.widgets.layouts import column
from app.gui.widgets.notice import Remark
from app.gui.widgets.progress import Progress

# The folder of models in the settings: whether it is there, another one, and how the move stands.


class ModelsPlace(QWidget):
    """Shows what the node's snapshot says of it."""

    def __init__(self, services: AppContext) -> None:
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
        name=move["name"], done=formats.size(move["done_bytes"]), total=formats.size(move["total_bytes"])
    )
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


FIELD_WIDTH = 260


class Models(Group):
    """The token itself never comes back from the node: only whether there is one, and where it is kept."""

    def __init__(self, services: AppContext) -> None:
        super().__init__(services, self.tr("Models"))
        self.models, self.stages = Value(), Value()
        self._folders = {"models": self.models, "stages": self.stages}
        self._paths: dict[str, str] = {}
        self._models = Setting(self.tr("Your models"), "", Flow(self.models, self._open("models")), words="folder disk")
        self._stages = Setting(
            self.tr("Layers for other machines"),
            "",
            Flow(self.stages, self._open("stages")),
            words="folder disk stages",
        )
        self.place = ModelsPlace(services)
        self.place_row = Setting("", "", self.place, wide=True, words="folder disk move choose")
        self.add(self._models, self.place_row, self._stages, title=self.tr("Folders"))
        self.token = QLineEdit()
        self.token.setEchoMode(QLineEdit.EchoMode.Password)
        self.token.setPlaceholderText("hf_…")
        bound_width(services.theme, self.token, FIELD_WIDTH)
        self.token.setAccessibleName(self.tr("Access token for Hugging Face"))
        self.token.returnPressed.connect(self._save)
        self.remove = button(self.tr("Remove"), self._remove)
        self.remove.setAccessibleName(self.tr("Remove the access token"))
        save = button(self.tr("Save"), self._save)
        save.setAccessibleName(self.tr("Save the access token"))
        self._token = Setting(
            self.tr("Access token for Hugging Face"),
            "",
            Flow(self.token, save, self.remove),
            wide=True,
            words="hub gated",
        )
        self.add(self._token, title=self.tr("Gated models"))
        name = self.tr("Let my other machines copy models from here")
        self.share = Switch(services.theme, name, self._share)
        self.add(
            Setting(
                name,
                self.tr(
                    "A model that was downloaded or imported here then goes over your own network to a machine of your "
                    "household that wants the very same one, and not over the internet once more."
                ),
                self.share,
                default=self.tr("Default: off"),
                words="share household lan",
            ),
            title=self.tr("Your household"),
        )
        self._shown_folder: object = None
        services.pool.changed.connect(self._look_again)

    def refresh(self) -> None:
        self.ask("GET", "/settings", self._tell_settings)
        self.ask("GET", "/token", self._tell_token)

    def reset(self) -> None:
        """Folders and the token are no defaults: they stay."""
        self._share(on=False)

    def reset_words(self) -> str:
        return self.tr("No machine copies models from here any more. Folders and token stay as they are.")

    def _look_again(self) -> None:
        """The folder is another now, or its disk came or went."""
        now = self.services.pool.snapshot.get("models_folder") or {}
        seen = (now.get("folder"), now.get("there"), now.get("move") is None)
        if seen != self._shown_folder and self.isVisible():
            self._shown_folder = seen
            self.ask("GET", "/settings", self._tell_folders)

    def _open(self, what: str) -> QPushButton:
        made = button(self.tr("Open"), lambda: self._show(what))
        made.setAccessibleName(self.tr("Open the folder"))
        return made

    def _show(self, what: str) -> None:
        if path := self._paths.get(what):
            QDesktopServices.openUrl(QUrl.fromLocalFile(path))

    def _share(self, on: bool) -> None:
        self.ask("POST", "/settings", self._tell_settings, {"share_models": on})

    def _tell_settings(self, told: Json) -> None:
        self.share.show_on(told["share_models"])
        self._tell_folders(told)

    def _tell_folders(self, told: Json) -> None:
        for folder in told["folders"]:
            if words := self._folders.get(folder["what"]):
                self._paths[folder["what"]] = folder["path"]
                words.setText(self._size(folder))
            if folder["what"] == "models":
                free = self.tr("{free} are free on this disk.")
                sizes_now = free.format(free=formats.size(folder["free_bytes"]))
                known = f"\n{sizes_now}" if folder["free_bytes"] else ""
                self._models.tell(f"{folder['path']}{known}")
            elif folder["what"] == "stages":
                self._stages.tell(folder["path"])

    def _size(self, folder: Json) -> str:
        """Of a folder whose disk is not there nobody knows."""
        models = self.services.pool.snapshot.get("models_folder") or {}
        if folder["what"] == "models" and not models.get("there", True):
            return self.tr("not available")
        return formats.size(folder["bytes"]) if folder["bytes"] else self.tr("Empty")

    def _tell_token(self, told: Json) -> None:
        there = bool(told["set"])
        self.remove.setVisible(there)
        self.token.clear()
        self.token.setPlaceholderText(self.tr("Saved") if there else "hf_…")
        self._token.tell(
            kept(told["where"]) + "."
            if there
            else self.tr("Only for models whose makers ask who downloads them. None is saved.")
        )

    def _save(self) -> None:
        if text := self.token.text().strip():
            self.ask("POST", "/token", self._tell_token, {"token": text})

    def _remove(self) -> None:
        self.ask("DELETE", "/token", self._tell_token)
