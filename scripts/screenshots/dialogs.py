"""Screenshots of all dialogs and the most informative menus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from PySide6.QtWidgets import QApplication, QDialog, QMenu, QWidget

from app.gui.app import navigation
from app.gui.chat.chat_page import ChatPage
from app.gui.diagnostics.dialogs import open_doctor, open_save_dialog
from app.gui.diagnostics.doctor_dialog import DoctorDialog
from app.gui.models.folder_dialog import FolderSheet
from app.gui.pool.pool_page import PoolPage
from app.gui.settings.privacy import EraseDialog
from scripts.screenshots.camera import PAINT_MS, SETTLE_MS, Camera, wait

CHECKS_MS = 12_000  # maximum duration of a doctor check, which calls every machine


def dialogs(camera: Camera) -> None:
    """Take a screenshot of each dialog. It is opened with the same controls that a user would click."""
    for name, opens in _pool(camera):
        _shoot(camera, name, opens)
    for name, opens in _other_dialogs(camera):
        _shoot(camera, name, opens)
    chat = camera.page(navigation.CHAT)
    assert isinstance(chat, ChatPage)
    _shoot(camera, "chat-settings", chat.open_settings)
    for view in chat.conversation.views[-1:]:
        _shoot_menu(camera, "message-menu", view._menu())
    if chat.chat_head.machine_lines:
        _shoot_menu(camera, "chat-machines", chat.chat_head.menu())


def _pool(camera: Camera) -> Iterator[tuple[str, Callable[[], object]]]:
    page = camera.page(navigation.POOL)
    assert isinstance(page, PoolPage)
    other = page.machines[-1]
    yield "add", page.add_machine
    yield "join", page.join
    yield "leave", page.leave
    actions = page.machine_actions
    yield "rename", partial(actions.rename, other)
    yield "roles", partial(actions.choose_roles, other)
    yield "remove", partial(actions.remove, other)
    yield "prefer", partial(actions.prefer, other)


def _other_dialogs(camera: Camera) -> Iterator[tuple[str, Callable[[], object]]]:
    services, window = camera.services, camera.window
    yield "doctor", lambda: open_doctor(services, window)
    yield "diagnostics", lambda: open_save_dialog(services, window)
    yield "erase", EraseDialog(services, window).open
    yield "folder", FolderSheet(services, str(services.folder), window).open


def _shoot(camera: Camera, name: str, opens: Callable[[], object]) -> None:
    opens()
    wait(SETTLE_MS)
    dialog = QApplication.activeModalWidget()
    if not isinstance(dialog, QDialog):
        return
    if isinstance(dialog, DoctorDialog):
        left = CHECKS_MS
        while not dialog.checks and left > 0:
            wait(PAINT_MS)
            left -= PAINT_MS
        dialog.fold.open()
        wait(PAINT_MS)
    camera.shoot(f"dialog-{name}", dialog)
    dialog.reject()
    wait(PAINT_MS)


def _shoot_menu(camera: Camera, name: str, menu: QMenu) -> None:
    shown: QWidget = menu
    menu.popup(camera.window.mapToGlobal(camera.window.rect().center()))
    wait(PAINT_MS)
    camera.shoot(name, shown)
    menu.close()
