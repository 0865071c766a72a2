"""The Advanced settings, for the background service, its log, and troubleshooting."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication, QTextCursor
from PySide6.QtWidgets import QPlainTextEdit, QPushButton

from app.core.log_redaction import readable_line
from app.gui.api.node_state import Link
from app.gui.app.app_context import AppContext, restart
from app.gui.app.pool_status import current_status
from app.gui.diagnostics.dialogs import open_doctor, open_save_dialog
from app.gui.look import sizes
from app.gui.settings.settings_group import Setting, SettingsGroup
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Flow
from app.gui.widgets.layouts import column

LOG_BYTES, LOG_HEIGHT = 64 << 10, 220


class Advanced(SettingsGroup):
    """The Advanced settings. They work even without a node, because they read the log from its file."""

    can_reset = False

    def __init__(self, services: AppContext) -> None:
        super().__init__(services, self.tr("Advanced"))
        why = button(self.tr("Find out…"), lambda: open_doctor(services, self.window()))
        save = button(self.tr("Save diagnostics…"), lambda: open_save_dialog(services, self.window()))
        self.add(
            Setting(
                self.tr("Why can't Poolhouse find my other computer?"),
                self.tr(
                    "Tests this computer and its network to find the most likely cause of a problem. You can also "
                    "press F1."
                ),
                why,
                words="doctor firewall help",
            ),
            Setting(
                self.tr("Diagnostics for support"),
                self.tr("Logs and settings in one file, without names, addresses or chats."),
                save,
                words="log zip",
            ),
            title=self.tr("Help"),
        )
        self.restart = button(self.tr("Restart"), self._restart)
        self._node = Setting(self.tr("Background service"), "", self.restart, words="node version")
        folder = button(self.tr("Open"), self._open)
        folder.setAccessibleName(self.tr("Open the data folder"))
        self.log = QPlainTextEdit()
        self.log.setReadOnly(True)
        self.log.setTabChangesFocus(True)
        self.log.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.log.setFont(services.theme.code_font())
        self.log.setFixedHeight(services.theme.px(LOG_HEIGHT))
        self.log.setAccessibleName(self.tr("Last lines of the log"))
        below = column(self.log, Flow(*self._log_buttons(), right_from=0), gap=sizes.S)
        self.add(
            self._node,
            Setting(self.tr("Data folder"), str(services.launcher.home), folder, words="home path"),
            Setting(
                self.tr("Last lines of the log"),
                self.tr("The log never contains text from your chats."),
                below,
                wide=True,
            ),
            title=self.tr("Background service"),
        )
        services.pool.link_changed.connect(self._tell)

    def refresh(self) -> None:
        self._tell()
        self.read_log()

    def read_log(self) -> None:
        """Show the end of the log file."""
        self.log.setPlainText(last_lines(self.services.launcher.home / "logs" / "node.log"))
        self.log.moveCursor(QTextCursor.MoveOperation.End)
        self.log.moveCursor(QTextCursor.MoveOperation.StartOfLine)

    def _log_buttons(self) -> list[QPushButton]:
        copy = button(self.tr("Copy"), lambda: QGuiApplication.clipboard().setText(self.log.toPlainText()))
        copy.setAccessibleName(self.tr("Copy the log"))
        return [copy, button(self.tr("Refresh"), self.read_log)]

    def _tell(self) -> None:
        pool = self.services.pool
        if pool.link is Link.THERE:
            endpoint = self.services.client.endpoint
            words = self.tr("Running version {version} (process {pid}).")
            version, pid = pool.now.node.version, endpoint.pid if endpoint else 0
            self._node.set_about(words.format(version=version, pid=pid))
        else:
            self._node.set_about(current_status(pool).sentence)
        self.restart.setText(self.tr("Restart") if pool.link is Link.THERE else self.tr("Start"))

    def _restart(self) -> None:
        restart(self.services)

    def _open(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self.services.launcher.home)))


def last_lines(path: Path) -> str:
    """Return the last lines of a log file in readable form, or "" if it cannot be read."""
    try:
        with path.open("rb") as file:
            begin = max(0, path.stat().st_size - LOG_BYTES)
            file.seek(begin)
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    lines = text.split("\n")[1 if begin else 0 :]
    return "\n".join(map(readable_line, lines))
