"""The list of chats: what it shows, by mouse and keyboard, and that deleting can be undone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtWidgets import QApplication, QLineEdit, QMenu, QPushButton, QStyle, QWidget
from pytestqt.qtbot import QtBot

from app.core.chat import Chat
from app.gui.chat.history.history import History
from app.gui.chat.list.chat_list import ChatList
from app.gui.chat.list.chat_list_model import ChatRow, FolderRow
from app.gui.look.motion import ALWAYS, NEVER
from app.gui.look.theme import HOVER_MS
from tests.gui.chat.talk import history, talked
from tests.gui.desk import Desk


@pytest.fixture
def kept(qtbot: QtBot, away: Desk) -> Iterator[History]:
    made = history(away.services.folder)
    yield made
    made.close()


@pytest.fixture
def chats(kept: History) -> dict[str, Chat]:
    """Trip and Tax in Work, Cake by itself, the newest last."""
    made = {
        title: talked(kept, f"About {title}", f"{title} indeed", title=title, folder=folder)
        for title, folder in (("Trip", "Work"), ("Tax", "Work"), ("Cake", ""))
    }
    return made


@pytest.fixture
def shown(qtbot: QtBot, away: Desk, kept: History, chats: dict[str, Chat]) -> ChatList:
    made = ChatList(away.services, kept)
    qtbot.addWidget(made)
    made.resize(264, 600)
    made.show()
    return made


def lines(shown: ChatList) -> list[str]:
    """The rows as words; what is in a folder is indented."""
    names: list[str] = []
    for row in shown.view.rows:
        if isinstance(row, ChatRow):
            names.append(row.heading.title)
        elif isinstance(row, FolderRow):
            names.append(row.name or "archive:")
            names += [f"  {line.heading.title}" for line in row.chats]
    return names


def key(qtbot: QtBot, widget: QWidget, pressed: Qt.Key) -> None:
    qtbot.keyClick(widget, pressed)  # type: ignore[no-untyped-call]


def test_folders_first_then_the_latest(shown: ChatList) -> None:
    assert lines(shown) == ["Work", "  Tax", "  Trip", "Cake"]


def test_it_follows_the_history(qtbot: QtBot, shown: ChatList, kept: History, chats: dict[str, Chat]) -> None:
    kept.pin([chats["Cake"].id], True)
    kept.archive([chats["Tax"].id], True)
    new = talked(kept, "Fresh question")
    expected = ["Cake", "Work", "  Trip", "Fresh question", "archive:", "  Tax"]
    qtbot.waitUntil(lambda: lines(shown) == expected)
    kept.rename(new.id, "Named")
    qtbot.waitUntil(lambda: "Named" in lines(shown))


def test_a_click_and_enter_open(qtbot: QtBot, shown: ChatList, chats: dict[str, Chat]) -> None:
    opened: list[str] = []
    shown.opened.connect(opened.append)
    shown.select(chats["Cake"].id)
    assert not opened
    here = shown.view.visualRect(shown.view.currentIndex()).center()
    left = Qt.MouseButton.LeftButton
    qtbot.mouseClick(shown.view.viewport(), left, pos=here)  # type: ignore[no-untyped-call]
    assert opened == [chats["Cake"].id]
    shown.select(chats["Trip"].id)
    key(qtbot, shown.view, Qt.Key.Key_Return)
    assert opened == [chats["Cake"].id, chats["Trip"].id]


def test_a_new_chat_is_opened_and_leaves_nothing_behind(shown: ChatList, kept: History) -> None:
    opened: list[str] = []
    shown.opened.connect(opened.append)
    shown.new_chat("Work")
    begun = kept.chat(opened[0])  # type: ignore[arg-type]
    assert begun is not None
    assert begun.folder == "Work"
    assert len(kept.headings()) == 3


def test_renaming_in_place(qtbot: QtBot, shown: ChatList, kept: History, chats: dict[str, Chat]) -> None:
    shown.select(chats["Cake"].id)
    shown.view.setFocus()
    key(qtbot, shown.view, Qt.Key.Key_F2)
    editor = shown.view.viewport().findChild(QLineEdit)
    assert editor is not None
    kept.pin([chats["Trip"].id], True)  # news meanwhile does not take the name away
    QApplication.processEvents()
    assert shown.view.busy
    editor.setText("Pie")
    key(qtbot, editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: "Pie" in lines(shown))
    heading = kept.heading(chats["Cake"].id)
    assert heading is not None
    assert heading.title == "Pie"


def test_it_is_renamed_while_the_keys_belong_to_the_message(
    qtbot: QtBot, shown: ChatList, chats: dict[str, Chat]
) -> None:
    """This happens after a click on it: the menu names the key, and a new name must not become a message."""
    message = QLineEdit(shown)
    message.show()
    shown.select(chats["Cake"].id)
    message.setFocus()
    key(qtbot, message, Qt.Key.Key_F2)
    assert shown.view.viewport().findChild(QLineEdit) is not None


def test_delete_and_undo(qtbot: QtBot, shown: ChatList, kept: History, chats: dict[str, Chat]) -> None:
    shown.select(chats["Cake"].id)
    shown.view.setFocus()
    key(qtbot, shown.view, Qt.Key.Key_Delete)
    qtbot.waitUntil(lambda: "Cake" not in lines(shown))
    assert shown.notice.sentence == "Deleted “Cake”."
    opened: list[str] = []
    shown.opened.connect(opened.append)
    undo = next(button for button in shown.notice.findChildren(QPushButton) if button.text() == "Undo")
    undo.click()
    qtbot.waitUntil(lambda: "Cake" in lines(shown))
    assert opened == [chats["Cake"].id]  # as it was before
    assert kept.chat(chats["Cake"].id) == chats["Cake"]
    assert shown.notice.isHidden()


def test_the_next_deletion_ends_the_first_undo(
    qtbot: QtBot, shown: ChatList, kept: History, chats: dict[str, Chat]
) -> None:
    for title in ("Cake", "Trip"):
        shown.select(chats[title].id)
        shown.delete()
        qtbot.waitUntil(lambda title=title: title not in str(lines(shown)))  # type: ignore[misc]
    kept.restore([chats["Cake"].id, chats["Trip"].id])
    qtbot.waitUntil(lambda: lines(shown) == ["Work", "  Tax", "  Trip"])


def test_a_folder_goes_and_its_chats_stay(qtbot: QtBot, shown: ChatList, kept: History) -> None:
    shown.view.setCurrentIndex(shown.view.model().index(0, 0))
    assert shown.view.folder() == "Work"
    shown.delete()
    qtbot.waitUntil(lambda: lines(shown) == ["Cake", "Tax", "Trip"])
    assert kept.folders() == []
    next(b for b in shown.notice.findChildren(QPushButton) if b.text() == "Undo").click()
    qtbot.waitUntil(lambda: lines(shown) == ["Work", "  Tax", "  Trip", "Cake"])


def test_several_at_once(qtbot: QtBot, shown: ChatList, kept: History) -> None:
    shown.view.selectAll()
    assert {heading.title for heading in shown.view.chosen()} == {"Trip", "Tax", "Cake"}
    shown.archive(True)
    qtbot.waitUntil(lambda: lines(shown)[:2] == ["Work", "archive:"])
    assert len(kept.headings(archived=True)) == 3


def test_dragging_into_a_folder_and_out(qtbot: QtBot, shown: ChatList, kept: History, chats: dict[str, Chat]) -> None:
    model, move = shown.view.model(), Qt.DropAction.MoveAction
    data = model.mimeData([model.index(1, 0)])
    assert not model.dropMimeData(data, move, -1, -1, model.index(0, 0))
    qtbot.waitUntil(lambda: lines(shown) == ["Work", "  Cake", "  Tax", "  Trip"])
    data = model.mimeData([model.index(1, 0, model.index(0, 0))])
    model.dropMimeData(data, move, -1, -1, QModelIndex())
    qtbot.waitUntil(lambda: lines(shown) == ["Work", "  Cake", "  Trip", "Tax"])


def test_folded_folders_stay_folded(qtbot: QtBot, away: Desk, shown: ChatList, kept: History) -> None:
    shown.view.collapse(shown.view.model().index(0, 0))
    talked(kept, "More")
    qtbot.waitUntil(lambda: "More" in lines(shown))
    assert not shown.view.isExpanded(shown.view.model().index(0, 0))
    again = ChatList(away.services, kept)
    qtbot.addWidget(again)
    assert not again.view.isExpanded(again.view.model().index(0, 0))


def test_folders_open_in_steps_where_a_person_opens_them(
    qtbot: QtBot, away: Desk, shown: ChatList, kept: History
) -> None:
    view, motion = shown.view, away.services.motion
    duration = QStyle.StyleHint.SH_Widget_Animation_Duration
    motion.choose(NEVER)
    key(qtbot, view, Qt.Key.Key_Left)
    assert view.isAnimated()
    assert view.style().styleHint(duration, None, view) == HOVER_MS
    talked(kept, "More")
    qtbot.waitUntil(lambda: "More" in lines(shown))
    assert not view.isAnimated(), "nobody opened a folder"
    motion.choose(ALWAYS)
    key(qtbot, view, Qt.Key.Key_Left)
    assert not view.isAnimated()
    motion.choose(NEVER)


def test_searching(qtbot: QtBot, shown: ChatList, chats: dict[str, Chat]) -> None:
    results: list[tuple[str, str, str]] = []
    shown.found.connect(lambda *args: results.append(args))
    shown.search.setText("trip indeed")
    qtbot.waitUntil(lambda: lines(shown) == ["Trip"])
    shown.view.setCurrentIndex(shown.view.model().index(0, 0))
    key(qtbot, shown.view, Qt.Key.Key_Return)
    assert results == [(chats["Trip"].id, chats["Trip"].leaf, "trip indeed")]
    shown.search.setText("unheard of")
    qtbot.waitUntil(lambda: not shown.view.isVisible())
    assert "Nothing found" in words(shown)
    key(qtbot, shown.search, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: len(lines(shown)) == 4)


def test_nothing_yet(qtbot: QtBot, away: Desk, kept: History) -> None:
    made = ChatList(away.services, kept)
    qtbot.addWidget(made)
    made.show()
    assert "No chats yet" in words(made)


def words(shown: ChatList) -> str:
    """All that is visible in labels."""
    from PySide6.QtWidgets import QLabel

    return "\n".join(label.text() for label in shown.findChildren(QLabel) if label.isVisible())


@pytest.mark.parametrize("many", [False, True])
def test_the_menu_offers_what_fits(qtbot: QtBot, shown: ChatList, chats: dict[str, Chat], many: bool) -> None:
    if many:
        shown.view.selectAll()
    else:
        shown.select(chats["Trip"].id)
    shown._show_menu(shown.rect().center())
    menu = shown.findChild(QMenu)
    assert menu is not None
    offered = [action.text() for action in menu.actions() if action.text()]
    alone = [] if many else ["Rename", "Duplicate"]
    rest = ["Pin to the top", "Move to folder", "Archive", "Export", "Delete"]
    assert offered == alone + rest
    menu.close()


def test_titles_are_plain_text(qtbot: QtBot, shown: ChatList, kept: History) -> None:
    talked(kept, "<b>x</b> & <img src=http://example.com/a.png>")
    qtbot.waitUntil(lambda: any("<b>" in line for line in lines(shown)))
    place = next(n for n, row in enumerate(shown.view.rows) if isinstance(row, ChatRow))
    tip = shown.view.model().index(place, 0).data(Qt.ItemDataRole.ToolTipRole)
    assert "<img" not in tip
    assert "&lt;b&gt;" in tip


def test_a_chosen_line_stands_on_one_ground_from_edge_to_edge(shown: ChatList, chats: dict[str, Chat]) -> None:
    """The part before a line in a folder too; only the corners are round."""
    shown.view.mark(chats["Tax"].id)
    place = shown.view.visualRect(shown.view.currentIndex())
    seen = shown.view.viewport().grab().toImage()
    middle = round(place.center().y() * seen.devicePixelRatio())
    ground = shown.view._theme.color("selected")
    assert place.left() > 10, "it is in a folder"
    assert [seen.pixelColor(x, middle) == ground for x in (2, place.left() - 2)] == [True, True]
    assert seen.pixelColor(0, place.top()) != ground
