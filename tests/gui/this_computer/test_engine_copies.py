"""Copies of engine packs on the page "This computer": between two real nodes, and what each state says."""

from __future__ import annotations

from pathlib import Path

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from app.api.engine_packs import EngineCopy, EngineOffer, EnginePacks
from app.core.errors import AppError, Reason
from app.gui.this_computer.engine_copies import (
    ConfirmCopyDialog,
    OffersDialog,
    copy_outcome,
    copy_progress,
    grouped,
    offer_details,
)
from app.gui.this_computer.engines_card import EnginesCard, RemovePackDialog
from tests.gui.desk import Desk, desk, follow
from tests.gui.this_computer.test_engines_card import BAD, PACK, WITHIN_MS, card, texts
from tests.machine.engine_packs.fake_pack import archive_pack, folder_pack, members, name_of
from tests.node.pool import paired

__all__ = ["card"]
SHA256 = "0123456789abcdef" * 4
OFFER = EngineOffer("a" * 64, "study", "vulkan-0.3.36-linux-x86_64", "vulkan", "Vulkan", "2026-11-30", 43 << 20, SHA256)
COPY = EngineCopy("study", OFFER.pack, "Vulkan", SHA256, "copying", 12 << 20, 43 << 20)


def texts_of(dialog: OffersDialog) -> str:
    return "\n".join(shown.text() for shown in dialog.findChildren(QLabel))


def test_each_state_of_a_copy_is_told() -> None:
    assert copy_progress(COPY) == "Copying Vulkan from study: 12 MiB of 43 MiB"
    assert copy_progress(msgspec.structs.replace(COPY, total_bytes=0)) == "Asking study for the pack…"
    assert copy_progress(msgspec.structs.replace(COPY, state="testing")) == "Testing the pack…"
    waits = msgspec.structs.replace(COPY, held_up_facts=Reason("copy_waits", {"name": "study"}))
    assert copy_progress(waits) == "study is sending files to another machine. This machine is next."
    assert copy_outcome(msgspec.structs.replace(COPY, state="done"))[0] == "Vulkan from study is in use."
    assert copy_outcome(msgspec.structs.replace(COPY, state="canceled"))[0] == "The copy was canceled."
    gone = msgspec.structs.replace(COPY, state="failed", problem_facts=Reason("pack_gone", {"name": "study"}))
    assert copy_outcome(gone) == (
        "study no longer has this engine pack. List the packs of your other machines again.", "error",
    )  # fmt: skip


def test_an_offer_tells_what_is_here_already() -> None:
    assert offer_details(OFFER).endswith(f": {OFFER.pack}")
    assert "1.0 MiB of it is already on this computer" in offer_details(
        msgspec.structs.replace(OFFER, here_bytes=1 << 20)
    )
    assert "already installed" in offer_details(msgspec.structs.replace(OFFER, installed=True))
    assert grouped(SHA256).split() == ["01234567", "89abcdef"] * 4


def test_the_consent_says_whose_program_will_run(qtbot: QtBot, card: EnginesCard, at_lone: Desk) -> None:
    agreed: list[EngineOffer] = []
    dialog = ConfirmCopyDialog(at_lone.services, OFFER, agreed.append, card)
    dialog.open()
    words = "\n".join(shown.text() for shown in dialog.findChildren(QLabel))
    assert "This one comes from study, and Poolhouse can't check what it does." in words
    assert grouped(SHA256) in words
    dialog.reject()
    assert agreed == []
    came = ConfirmCopyDialog(at_lone.services, msgspec.structs.replace(OFFER, copied_from="den"), agreed.append, card)
    assert "study copied it from den." in [shown.text() for shown in came.findChildren(QLabel)]
    again = ConfirmCopyDialog(at_lone.services, OFFER, agreed.append, card)
    again.open()
    QTest.keyClick(again.act, Qt.Key.Key_Space)
    assert agreed == [OFFER]


def test_a_pack_is_saved_to_a_file_that_installs_again(qtbot: QtBot, card: EnginesCard, tmp_path: Path) -> None:
    card.add(str(archive_pack(tmp_path / "pack.tar.gz", members())))
    qtbot.waitUntil(lambda: card._call is None, timeout=WITHIN_MS)
    assert card._shown is not None
    (pack,) = card._shown.packs
    card.export(pack, tmp_path / "stick.tar.gz")
    assert "Saving the pack" in texts(card)
    qtbot.waitUntil(lambda: card._call is None, timeout=WITHIN_MS)
    assert card.remark.text() == "The pack was saved as stick.tar.gz."
    card.add(str(tmp_path / "stick.tar.gz"))
    qtbot.waitUntil(lambda: card._call is None, timeout=WITHIN_MS)
    assert "could not be loaded" in card.remark.text()  # its library is none
    card.buttons[pack.name, "remove"].click()
    (dialog,) = card.findChildren(RemovePackDialog)
    dialog.act.click()
    qtbot.waitUntil(lambda: "No pack is installed" in texts(card), timeout=WITHIN_MS)


def test_a_running_copy_is_shown_and_its_end_is_told_once(qtbot: QtBot, card: EnginesCard) -> None:
    card._show(EnginePacks(packs=[PACK], copy=COPY))
    card._tick.stop()
    assert card.progress.isVisible()
    assert (card.progress.bar.is_known, card.is_changing, card.copy.isEnabled()) == (True, True, False)
    assert card.progress.cancel.isEnabled()
    card._show(EnginePacks(packs=[PACK], copy=msgspec.structs.replace(COPY, state="testing")))
    assert (card.progress.bar.is_known, card.progress.cancel.isEnabled()) == (False, True)
    done = EnginePacks(packs=[PACK], copy=msgspec.structs.replace(COPY, state="done"))
    card._show(done)
    assert not card.progress.isVisible()
    assert card.remark.text() == "Vulkan from study is in use."
    card.remark.say("Another text.")
    card._show(done)
    assert card.remark.text() == "Another text."
    copied = msgspec.structs.replace(PACK, copied_from="study", sha256=SHA256)
    card._show(EnginePacks(packs=[copied]))
    words = f"Copied from study.\nChecksum: {grouped(SHA256)}"
    qtbot.waitUntil(lambda: words in texts(card), timeout=WITHIN_MS)


def test_a_copy_that_ended_at_once_is_told(qtbot: QtBot, card: EnginesCard) -> None:
    why = Reason("pack_not_shared", {"name": "study"})
    card._begun(EnginePacks(copy=msgspec.structs.replace(COPY, state="failed", problem_facts=why)))
    assert card.remark.isVisible()
    assert "study does not give engine packs to other machines" in card.remark.text()


def test_a_copy_that_ended_with_the_node_is_told(qtbot: QtBot, card: EnginesCard) -> None:
    card._show(EnginePacks(copy=COPY))
    card._show(EnginePacks())
    assert "The copy was interrupted" in card.remark.text()
    assert not card.is_changing


def test_during_a_copy_other_outcomes_stay_and_its_cancel_leaves_other_calls_alone(
    qtbot: QtBot, card: EnginesCard, tmp_path: Path
) -> None:
    card._show(EnginePacks(copy=COPY))
    card._tick.stop()
    broken = tmp_path / "broken.tar.gz"
    broken.write_bytes(b"no archive")
    failures: list[AppError] = []
    card.remark.fail = failures.append  # type: ignore[assignment, method-assign]
    card.add(str(broken))
    call = card._call
    card.progress.cancel.click()
    assert card._call is call is not None
    qtbot.waitUntil(lambda: card._call is None and card._end is None, timeout=WITHIN_MS)
    assert [error.reason.code for error in failures] == ["pack_no_manifest"]


def test_an_outcome_stays_while_a_copy_is_watched(qtbot: QtBot, card: EnginesCard) -> None:
    card._show(EnginePacks(packs=[PACK], copy=COPY))
    card._tick.stop()
    card._answered(EnginePacks(packs=[BAD], changed=[BAD.name], copy=COPY))
    assert "No graphics card was found through Metal" in card.remark.text()
    card._show(EnginePacks(packs=[BAD], copy=COPY))
    assert card.remark.isVisible()
    assert "No graphics card was found through Metal" in card.remark.text()


def test_a_pack_is_copied_with_three_clicks(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> None:
    with paired(tmp_path, "study", "attic") as (study, attic):
        study.control("POST", "/engines", {"path": str(folder_pack(tmp_path))})
        study.control("POST", "/settings", {"share_models": True})
        made = desk(qapp, attic.root)
        follow(qtbot, made.services)
        card = EnginesCard(made.services)
        qtbot.addWidget(card)
        card.show()
        card.refresh()
        qtbot.waitUntil(lambda: card._look is None, timeout=WITHIN_MS)
        card.copy.click()
        (dialog,) = card.findChildren(OffersDialog)
        qtbot.waitUntil(lambda: len(dialog.copies) == 1, timeout=WITHIN_MS)
        assert dialog.copies[0].accessibleName() == f"Copy {OFFER.pack} from study"
        dialog.copies[0].click()
        (consent,) = card.findChildren(ConfirmCopyDialog)
        consent.act.click()
        qtbot.waitUntil(lambda: "could not be loaded" in card.remark.text(), timeout=WITHIN_MS)  # its library is none
        assert "Copied from study" in texts(card)
        assert card._shown is not None
        assert [pack.name for pack in card._shown.packs] == [name_of()]
        card.copy.click()
        (again,) = (shown for shown in card.findChildren(OffersDialog) if shown.isVisible())
        qtbot.waitUntil(lambda: "already installed" in texts_of(again), timeout=WITHIN_MS)
        assert again.copies == []
        again.reject()
        made.services.pool.stop()
        made.services.lock.close()
