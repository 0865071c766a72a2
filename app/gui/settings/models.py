"""The Models settings, for the models folder, sharing with other machines, and the access token for gated models."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QLineEdit, QPushButton, QWidget

from app.api.computer import FolderUse, Settings
from app.api.downloads import FolderMove, FormerFolder
from app.api.models import TokenState
from app.core.errors import AppError
from app.gui.api.node_client import Calls
from app.gui.app.app_context import AppContext
from app.gui.look import formats, sizes
from app.gui.look.sentences import said
from app.gui.models.folder_dialog import FolderSheet, choose_folder, choose_folder_text
from app.gui.settings.household import storage_sentence
from app.gui.settings.settings_group import Setting, SettingsGroup
from app.gui.widgets.buttons import Switch, button, wrapping
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import ValueLabel, bound_width, paragraph
from app.gui.widgets.layouts import column
from app.gui.widgets.notice import Remark
from app.gui.widgets.progress import Progress


class ModelsFolder(QWidget):
    """The models folder, with any problem, buttons to choose another one, and the progress of moving models."""

    def __init__(self, services: AppContext) -> None:
        super().__init__()
        self._services, self._calls = services, Calls()
        self.words, self.problem = paragraph("", "caption"), Remark(services.theme, services.go)
        self.bar = Progress(_tr("Progress of the move"))
        self.choose = wrapping(choose_folder_text(), lambda: choose_folder(services, self))
        self.own = wrapping(_tr("Use Poolhouse's own folder"), self._back)
        self.move_them = wrapping(_tr("Move them here"), self._move)
        self.stop = wrapping(_tr("Stop moving"), self._stop)
        buttons = Flow(self.choose, self.own, self.move_them, self.stop)
        self.setLayout(column(self.problem, self.words, self.bar, buttons, gap=sizes.S))
        services.pool.changed.connect(self.show_state)
        self.destroyed.connect(self._calls.end_all)
        self.show_state()

    def show_state(self) -> None:
        """Show the state of the folder and of a move in progress."""
        now = self._services.pool.now.models_folder
        move = now.move
        elsewhere = [folder for folder in now.elsewhere if folder.there]
        reasons = [None if now.there else now.reason_facts]
        reasons += [folder.reason_facts for folder in now.elsewhere if not folder.there]
        problems = [said(reason) for reason in (*reasons, now.stopped_facts) if reason]
        self.problem.say("\n".join(problems))
        self.problem.setVisible(bool(problems))
        lines = [_moving(move)] if move else [_lies(folder) for folder in elsewhere]
        self.words.setText("\n".join(lines))
        self.words.setVisible(bool(lines))
        self.bar.tell(move.done_bytes / move.total_bytes if move and move.total_bytes else None)
        self.bar.setVisible(move is not None)
        self.choose.setVisible(move is None)
        self.own.setVisible(move is None and not now.default)
        self.move_them.setVisible(move is None and bool(elsewhere) and now.there)
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


def _moving(move: FolderMove) -> str:
    if move.waits_facts is not None:
        return said(move.waits_facts)
    words = _tr("Moving {name}. Total: {done} of {total}").format(
        name=move.name, done=formats.size(move.done_bytes), total=formats.size(move.total_bytes)
    )
    if move.bytes_per_s:
        words += f" · {formats.size(move.bytes_per_s)}/s"
    if move.seconds_left is not None:
        left = formats.whole_seconds(max(1.0, move.seconds_left))
        words += " · " + _tr("{time} left").format(time=left)
    return words


def _lies(folder: FormerFolder) -> str:
    """Return a sentence about models that are still stored in a former folder."""
    words = QCoreApplication.translate("Models", "%n model(s) in {folder}, {size}", "", folder.models)
    return words.replace("{size}", formats.size(folder.bytes)).replace("{folder}", folder.folder)


def _quiet(_: object) -> None:
    """Do nothing, because the next snapshot shows the result."""


def _tr(text: str) -> str:
    return QCoreApplication.translate("Models", text)


FIELD_WIDTH = 260


class Models(SettingsGroup):
    """The Models settings. The node reports whether and where an access token is stored, but never the token itself."""

    def __init__(self, services: AppContext) -> None:
        super().__init__(services, self.tr("Models"))
        self.models, self.stages = ValueLabel(), ValueLabel()
        self._folders = {"models": self.models, "stages": self.stages}
        self._paths: dict[str, str] = {}
        self._models = Setting(self.tr("Your models"), "", Flow(self.models, self._open("models")), words="folder disk")
        self._stages = Setting(
            self.tr("Layers for other machines"),
            "",
            Flow(self.stages, self._open("stages")),
            words="folder disk stages",
        )
        self.place = ModelsFolder(services)
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
        self.share = Switch(services.theme, name, lambda on: self._choose("share_models", on))
        self.add(
            Setting(
                name,
                self.tr(
                    "Other machines in your household can copy a model or an engine pack from here over your network "
                    "instead of downloading it again."
                ),
                self.share,
                default=self.tr("Default: off"),
                words="share household lan",
            ),
            title=self.tr("Your household"),
        )
        answers, asks = (
            self.tr("Others may chat with models loaded here"),
            self.tr("Use models that others have loaded"),
        )
        self.answers = Switch(services.theme, answers, lambda on: self._choose("answer_household", on))
        self.asks = Switch(services.theme, asks, lambda on: self._choose("ask_household", on))
        self.add(
            Setting(
                answers,
                self.tr(
                    "Other computers in your household see the models loaded here and take turns "
                    "chatting with them. You can see which computer is asking, but not what it asks. "
                    "Each chat is kept only on the computer where it was written."
                ),
                self.answers,
                default=self.tr("Default: on"),
                words="share household family answer host",
            ),
            Setting(
                asks,
                self.tr(
                    "Chats on this computer can use models that another computer has loaded. Your "
                    "messages are encrypted and sent there. Chats are kept only on this computer."
                ),
                self.asks,
                default=self.tr("Default: on"),
                words="share household family ask host",
            ),
        )
        same = self.tr("Same results on all computers")
        self.exact = Switch(services.theme, same, lambda on: self._choose("exact", on))
        self.add(
            Setting(
                same,
                self.tr(
                    "All computers use the same processor instructions, so an answer continues with the same words if "
                    "a computer is lost. In this mode, computers with AVX-512 read prompts about half as fast. Models "
                    "that are loaded now stay as they are."
                ),
                self.exact,
                default=self.tr("Default: off"),
                words="exact processor instructions avx lost",
            ),
            title=self.tr("Loading"),
        )
        self._shown_folder: object = None
        services.pool.changed.connect(self._look_again)

    def refresh(self) -> None:
        self.ask("GET", "/settings", self._tell_settings, answer=Settings)
        self.ask("GET", "/token", self._tell_token, answer=TokenState)

    def reset(self) -> None:
        """Restore the switches. The folders and the token have no defaults and are not changed."""
        defaults = {"share_models": False, "exact": False, "answer_household": True, "ask_household": True}
        self.ask("POST", "/settings", self._tell_settings, defaults, answer=Settings)

    def reset_words(self) -> str:
        return self.tr(
            "Other machines can no longer copy models from this one. They can chat with models "
            "loaded here, and chats here can use theirs. Each machine uses its own processor "
            "instructions. Folders and the access token are unchanged."
        )

    def _look_again(self) -> None:
        """Request the sizes again if the folder has changed, or if its disk was connected or removed."""
        now = self.services.pool.now.models_folder
        seen = (now.folder, now.there, now.move is None)
        if seen != self._shown_folder and self.isVisible():
            self._shown_folder = seen
            self.ask("GET", "/settings", self._tell_folders, answer=Settings)

    def _open(self, folder: str) -> QPushButton:
        made = button(self.tr("Open"), lambda: self._show(folder))
        made.setAccessibleName(self.tr("Open the folder"))
        return made

    def _show(self, folder: str) -> None:
        if path := self._paths.get(folder):
            QDesktopServices.openUrl(QUrl.fromLocalFile(path))

    def _choose(self, field: str, on: bool) -> None:
        self.ask("POST", "/settings", self._tell_settings, {field: on}, answer=Settings)

    def _tell_settings(self, settings: Settings) -> None:
        self.share.show_on(settings.share_models)
        self.exact.show_on(settings.exact)
        self.answers.show_on(settings.answer_household)
        self.asks.show_on(settings.ask_household)
        self._tell_folders(settings)

    def _tell_folders(self, settings: Settings) -> None:
        for folder in settings.folders:
            if words := self._folders.get(folder.what):
                self._paths[folder.what] = folder.path
                words.setText(self._size(folder))
            if folder.what == "models":
                free = self.tr("{free} free on this disk.").format(free=formats.size(folder.free_bytes))
                self._models.set_about(f"{folder.path}\n{free}" if folder.free_bytes else folder.path)
            elif folder.what == "stages":
                self._stages.set_about(folder.path)

    def _size(self, folder: FolderUse) -> str:
        if folder.what == "models" and not self.services.pool.now.models_folder.there:
            return self.tr("not available")  # the disk is not connected
        return formats.size(folder.bytes) if folder.bytes else self.tr("Empty")

    def _tell_token(self, token: TokenState) -> None:
        self.remove.setVisible(token.set)
        self.token.clear()
        self.token.setPlaceholderText(self.tr("Saved") if token.set else "hf_…")
        self._token.set_about(
            storage_sentence(token.where_facts) + "."
            if token.set
            else self.tr("Only needed for models that require you to accept their terms. No token is saved.")
        )

    def _save(self) -> None:
        if text := self.token.text().strip():
            self.ask("POST", "/token", self._tell_token, {"token": text}, answer=TokenState)

    def _remove(self) -> None:
        self.ask("DELETE", "/token", self._tell_token, answer=TokenState)
