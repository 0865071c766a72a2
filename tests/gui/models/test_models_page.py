"""A model is chosen, set up, loaded, unloaded, imported and taken off again, over a real node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace as replace_fields
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication, QFileDialog, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.api import models, plans
from app.core.errors import BadInput
from app.decoding import convert
from app.gui.api.node_state import Link
from app.gui.app import navigation
from app.gui.look import sizes
from app.gui.models.details.model_actions import ModelAction
from app.gui.models.details.setup_form import ContextSlider
from app.gui.models.model_item import ModelItem, offer_item
from app.gui.models.models_page import ModelsPage
from testbed import tiny
from tests.gui.desk import Desk
from tests.gui.dragging import dragged, drop
from tests.gui.models.offers import file, offer

WITHIN_MS = 10_000


def until(qtbot: QtBot, met: Callable[[], Any], within_ms: int = WITHIN_MS) -> None:
    qtbot.waitUntil(lambda: bool(met()), timeout=within_ms)


def lines(page: ModelsPage) -> list[str]:
    return [page.list.rows.row(page.list.rows.index(n)).sentence
            for n in range(page.list.rows.rowCount())]  # fmt: skip


@pytest.fixture
def tiny_model(tmp_path: Path) -> Path:
    return tiny.llama(tmp_path / "my-finetune.gguf")


def model_of(item: ModelItem) -> models.ShelfModel:
    assert item.shelf is not None
    return item.shelf


def test_the_guide_is_shown_with_its_verdict_and_sum(page: ModelsPage) -> None:
    assert page.list.chosen_key == "shelf:guide"
    assert page.details.verdict.title.text() == "Fits"
    assert "is free for models now" in page.details.verdict.sum.text()
    assert page.details.about.better.isVisibleTo(page)
    assert page.details.about.name.whole() == "Guide"  # as in every sentence
    assert any(line.startswith("Guide, ") and "Fits" in line for line in lines(page))
    assert set(page.details.foot.bar.buttons) == {ModelAction.LOAD}


STARTER = {
    "id": "small-1b", "name": "Small 1B", "file": "m-Q4_K_M.gguf", "quantization": "Q4_K_M",
    "size_bytes": 700 << 20, "needs_bytes": 1 << 30, "lends_bytes": 4 << 30, "tok_s": None,
}  # fmt: skip


def recommend(page: ModelsPage, **changes: Any) -> None:
    """Return the answer of a node that recommends one of two models."""
    offers = [offer("large-70b", splits=False), offer("small-1b", name="Small 1B")]
    page.library._offers_loaded(convert({"models": offers}, models.Catalog))
    page.library._starter_loaded(convert({"starter": STARTER | changes}, models.StarterResponse))


def test_what_suits_the_household_stands_on_top_with_its_sum_and_a_button(
    qtbot: QtBot, page: ModelsPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not page.starter.isVisibleTo(page), "1 GiB holds none with room to spare"
    assert page.none_fits.isVisibleTo(page)
    page.library.stop_search()
    assert page.none_fits.isVisibleTo(page), "the end of a search says nothing about the recommendation"
    recommend(page)
    assert not page.none_fits.isVisibleTo(page)
    card = page.starter
    assert card.isVisibleTo(page)
    assert card.name.whole() == "Small 1B"
    needs = "Needs 1.0 GiB of the 4.0 GiB that is free for models."
    assert card.why.text() == f"{needs} Its speed is not known yet."
    page.library._starter_loaded(convert({"starter": STARTER | {"tok_s": 11.6}}, models.StarterResponse))
    assert card.why.text() == f"{needs} Forecast: 12 tok/s."
    assert card.start.text() == "Download and load (700 MiB)"
    requests: list[Any] = []
    monkeypatch.setattr(page.model_starter, "_begin", requests.append)
    card.start.click()
    qtbot.waitUntil(lambda: bool(requests))
    assert requests == [{"repository": "maker/large-70b", "file": "m-Q4_K_M.gguf", "revision": "main"}]
    assert page.list.chosen_key == "shelf:guide", "what is here stays chosen"
    card.details.click()
    assert page.list.chosen_key == "offer:small-1b"


def test_what_suits_is_the_first_of_the_catalog_once_a_model_is_here(page: ModelsPage) -> None:
    recommend(page)
    shown = lines(page)
    first = shown.index("Catalog: fits your household") + 1
    assert shown[first].startswith("Small 1B, ")
    assert shown[first].endswith("Recommended")
    assert len([line for line in shown if line.startswith("Small 1B, ")]) == 1
    guide = page.library.shelf[0]
    own = replace(guide, key="shelf:mine", name="mine", facts=replace_fields(model_of(guide), builtin=False))
    page.library.shelf = [own, guide]
    page.library.changed.emit()
    assert not page.starter.isVisibleTo(page)
    assert any(line.endswith("Recommended") for line in lines(page))
    page.library.shelf = [guide]
    here = [file("Q4_K_M", 39.7, on_shelf="small-1b")]
    page.library.offers = [offer_item(offer("small-1b", *here, name="Small 1B"))]
    page.library.changed.emit()
    assert not page.starter.isVisibleTo(page), "it is here"
    assert not any("Recommended" in line for line in lines(page))


def test_the_recommendation_is_asked_for_again_when_the_page_is_shown_again(
    page: ModelsPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory may have changed while it was hidden: what was recommended then may be too big now."""
    requests: list[None] = []
    monkeypatch.setattr(page.library, "ask_starter", lambda: requests.append(None))
    page.hide()
    page._ask_starter()
    assert not requests
    page.show()
    assert requests


def test_what_runs_whole_only_and_what_has_no_known_hash_say_so(page: ModelsPage) -> None:
    known = file("Q4_K_M", 39.7, recommended=True, sha256="a" * 64)
    unsized = file("Q4_K_M", 39.7, recommended=True, sha256="a" * 64, size_bytes=None)
    offers = [
        offer("whole", name="Whole", splits=False),
        offer("split", known, name="Split"),
        offer("unsized", unsized, name="Unsized"),
    ]
    page.library._offers_loaded(convert({"models": offers}, models.Catalog))
    said = {line.split(",")[0]: line for line in lines(page)}
    assert "can't be split" in said["Whole"]
    assert "can't be split" not in said["Split"]
    about = page.details.about
    assert page.list.select("offer:whole")
    assert about.notes.text() == (
        "The file's checksum is not known yet. Poolhouse records it during the first download."
    )
    assert "runs on one machine only" in about._facts.text()
    assert page.list.select("offer:split")
    assert not about.notes.isVisibleTo(page)
    assert "size not known" in said["Unsized"]
    assert page.list.select("offer:unsized")
    words = page.details.verdict.words
    assert words.isVisibleTo(page)
    assert words.text().startswith("The file size is not known yet")


def test_a_file_without_a_chat_template_completes_text_and_does_not_chat(page: ModelsPage) -> None:
    about, guide = page.details.about, page.library.shelf[0]
    assert not about.notes.isVisibleTo(page)
    plain = replace(guide, facts=replace_fields(model_of(guide), has_template=False))
    about.show_item(plain)
    assert about._about.text() == "This is a base model. It completes text and doesn't chat."
    judge = replace(plain, facts=replace_fields(model_of(plain), writes=False, ranks=True))
    about.show_item(judge)
    assert about.notes.text() == "This is a reranker. It scores texts for other programs and can't chat."
    vectors = replace(plain, facts=replace_fields(model_of(plain), writes=False, embeds=True))
    about.show_item(vectors)
    assert not about.notes.isVisibleTo(page)


def test_what_the_template_of_a_loaded_model_cannot_do_is_said(page: ModelsPage) -> None:
    about, guide = page.details.about, page.library.shelf[0]
    own = replace(guide, facts=replace_fields(model_of(guide), builtin=False))
    tools, thinking = (
        "The model's chat template does not support tool calls.",
        "The model's chat template has no thinking mode.",
    )
    for facts, said in (
        ({"tools": True, "thinks": True}, ""),
        ({"tools": False, "thinks": True}, tools),
        ({"tools": False, "thinks": False}, f"{tools} {thinking}"),
        ({"tools": None, "thinks": None}, ""),  # a node that has not read it yet
    ):
        about.show_notes(own, convert({"model": "mine", **facts}, plans.LoadedModel))
        assert about.notes.text() == said
        assert about.notes.isVisibleTo(page) == bool(said)


def test_the_details_end_with_their_last_line(page: ModelsPage) -> None:
    """A paragraph counts as in a narrow column where only its least height is asked."""
    area = page.details._area
    inner = area.widget()
    assert inner is not None
    box = inner.layout()
    assert box is not None
    needed = box.heightForWidth(inner.width())
    assert inner.height() <= max(needed, area.viewport().height()) + sizes.L


def test_context_and_people_change_the_sum_at_once(qtbot: QtBot, page: ModelsPage) -> None:
    details = page.details
    before = details.verdict.sum.text()
    details.form.people.setValue(4)
    until(qtbot, lambda: details.verdict.sum.text() != before)
    more = details.verdict.sum.text()
    slider: ContextSlider = details.form.context
    slider.slider.setValue(0)
    until(qtbot, lambda: details.verdict.sum.text() != more)
    assert slider.context == 512
    page.list.refresh()
    assert page.list.chosen_key == "shelf:guide"


@pytest.mark.long
def test_it_is_loaded_and_unloaded(qtbot: QtBot, page: ModelsPage, at_lone: Desk) -> None:
    details = page.details
    assert "tok/s" not in details.forecast.rate.text  # the Guide is too small for a forecast
    details.foot.bar.buttons[ModelAction.LOAD].click()
    until(qtbot, lambda: details.steps.isVisibleTo(page) or ModelAction.CHAT in details.foot.bar.buttons)
    until(qtbot, lambda: ModelAction.CHAT in details.foot.bar.buttons, 30_000)
    assert any("Loaded" in line for line in lines(page))
    loaded = at_lone.services.pool.now.loaded
    assert loaded is not None
    assert (loaded.tools, loaded.thinks) == (False, False)
    assert not details.about.notes.isVisibleTo(page), "the Guide says enough of itself"
    details.form.people.setValue(2)
    assert ModelAction.LOAD in details.foot.bar.buttons
    details.foot.bar.buttons[ModelAction.CHAT].click()
    assert at_lone.went == [f"{navigation.CHAT}/guide"]
    details.foot.bar.buttons[ModelAction.UNLOAD].click()
    until(qtbot, lambda: at_lone.services.pool.now.loaded is None)
    until(qtbot, lambda: set(details.foot.bar.buttons) == {ModelAction.LOAD})


def test_a_load_can_be_cancelled(qtbot: QtBot, page: ModelsPage, at_lone: Desk) -> None:
    page.details.foot.bar.buttons[ModelAction.LOAD].click()
    assert page.details.steps.isVisibleTo(page)
    page.details.steps.cancel.click()
    until(qtbot, lambda: not page.model_loader.model and at_lone.services.pool.now.loaded is None)
    assert not page.notice.sentence
    assert page.details.foot.bar.isVisibleTo(page)


def test_a_file_is_imported_and_taken_off_with_undo(qtbot: QtBot, page: ModelsPage, tiny_model: Path) -> None:
    page.fail(BadInput("model_unknown", name="photo", there="guide"))
    page.import_files([str(tiny_model)])
    until(qtbot, lambda: page.list.chosen_key == "shelf:my-finetune")
    assert not page.notice.sentence  # what the file before it was refused for is past
    assert page.details.about.name.whole() == "my-finetune"
    until(qtbot, lambda: ModelAction.REMOVE in page.details.foot.bar.buttons)
    page.details.foot.bar.buttons[ModelAction.REMOVE].click()
    until(qtbot, lambda: "removed from the list" in page.notice.sentence)
    until(qtbot, lambda: page.library.item("shelf:my-finetune") is None)
    assert page.list.chosen_key == "shelf:guide"
    assert tiny_model.exists()
    undo = next(button for button in page.notice.findChildren(QPushButton) if button.text() == "Undo")
    undo.click()
    until(qtbot, lambda: page.list.chosen_key == "shelf:my-finetune")
    until(qtbot, lambda: ModelAction.REMOVE in page.details.foot.bar.buttons)
    page.details.foot.bar.buttons[ModelAction.REMOVE].click()
    until(qtbot, lambda: page.library.item("shelf:my-finetune") is None)


def test_a_dropped_file_that_is_no_model_is_refused_in_a_sentence(
    qtbot: QtBot, page: ModelsPage, tmp_path: Path
) -> None:
    bad = tmp_path / "<b>photo.gguf"
    bad.write_bytes(b"JFIF" * 100)
    drop(page, dragged(bad))
    until(qtbot, lambda: page.notice.sentence)
    assert "is not a GGUF model" in page.notice.sentence
    assert not page.importing.path


def test_a_model_is_looked_for_where_the_last_one_was(page: ModelsPage, tmp_path: Path) -> None:
    for folder in (Path.home(), tmp_path):
        page.choose_file()
        dialog = page.findChildren(QFileDialog)[-1]
        assert Path(dialog.directory().absolutePath()) == folder
        dialog.filesSelected.disconnect(page.import_files)
        dialog.filesSelected.emit([str(tmp_path / "some.gguf")])
        dialog.reject()


def test_a_file_that_is_refused_while_nobody_looks_is_told_by_the_next_page(
    qtbot: QtBot, page: ModelsPage, at_lone: Desk, tmp_path: Path
) -> None:
    bad, refused = tmp_path / "photo.gguf", list[bool]()
    bad.write_bytes(b"JFIF" * 100)
    page.importing.failed.connect(lambda: refused.append(True))
    page.hide()
    page.import_files([str(bad)])
    until(qtbot, lambda: refused)
    assert not page.notice.sentence
    page.end()  # another language: the window is made anew
    later = ModelsPage(at_lone.services)
    qtbot.addWidget(later)
    later.show()
    assert "is not a GGUF model" in later.notice.sentence
    later.notice.clear()
    later.hide()
    later.show()
    assert not later.notice.sentence  # once is enough
    later.end()


def test_a_file_deleted_under_the_shelf_is_said(qtbot: QtBot, page: ModelsPage, tiny_model: Path) -> None:
    page.import_files([str(tiny_model)])
    until(qtbot, lambda: page.list.chosen_key == "shelf:my-finetune")
    tiny_model.unlink()
    page.library.refresh()
    until(qtbot, lambda: any("File missing" in line for line in lines(page)))
    assert not page.details.foot.bar.buttons[ModelAction.LOAD].isEnabled()
    gone = page.library.item("shelf:my-finetune")
    assert gone is not None
    page.library.shelf = [replace(gone, facts=replace_fields(model_of(gone), away=True))]
    page.list.refresh()  # it comes back with its disk
    assert any("Disk not connected" in line for line in lines(page))
    page.details.foot.bar.buttons[ModelAction.REMOVE].click()
    until(qtbot, lambda: page.library.item("shelf:my-finetune") is None)


def test_ten_thousand_models_and_odd_names(qtbot: QtBot, page: ModelsPage) -> None:
    odd = ["<b>bold</b>", "اسم طويل", "x" * 5000, "two\nlines"]
    names = [*odd, *(f"model {n}" for n in range(10_000))]
    page.library.offers = [offer_item(offer(str(n), name=name)) for n, name in enumerate(names)]
    page.list.refresh()
    assert page.list.rows.rowCount() > 10_000
    for n in range(len(odd)):
        assert page.list.select(f"offer:{n}")
        assert page.details.about.name.whole() == odd[n]
    assert page.width() == 1000
    page.list.search.setText("model 9999")
    assert len([line for line in lines(page) if line.startswith("model")]) == 1


def test_without_a_node_it_says_what_it_waits_for(qtbot: QtBot, away: Desk) -> None:
    made = ModelsPage(away.services)
    qtbot.addWidget(made)
    made.show()
    assert made.list._empty.isVisibleTo(made)
    assert "background service" in made.list._empty.sentence.text()
    made.import_files(["model.gguf"])
    assert "background service" in made.notice.sentence
    made.end()


def test_what_was_being_loaded_is_called_so_by_no_line_once_the_node_is_lost(page: ModelsPage, at_lone: Desk) -> None:
    pool = at_lone.services.pool
    pool.stop()
    pool.snapshot = pool.snapshot | {"loaded": {"model": "guide", "state": "loading"}}
    pool.changed.emit()
    assert any("Loading…" in line for line in lines(page))
    pool._say(Link.AWAY, "It keeps ending.")
    assert not any("Loading…" in line for line in lines(page))


def test_what_is_rebuilt_is_called_so_and_not_offered_again(page: ModelsPage, at_lone: Desk) -> None:
    pool = at_lone.services.pool
    pool.stop()
    pool.snapshot = pool.snapshot | {"loaded": {"model": "guide", "state": "recovering"}}
    pool.changed.emit()
    assert any("Rebuilding" in line for line in lines(page))
    assert set(page.details.foot.bar.buttons) == {ModelAction.CHAT, ModelAction.UNLOAD}


def test_a_load_that_is_being_stopped_is_no_load_any_more(page: ModelsPage, at_lone: Desk) -> None:
    pool = at_lone.services.pool
    pool.stop()
    loading = {"model": "guide", "state": "loading", "progress": {}}
    for loaded, expected in ((loading, "guide"), (loading | {"stopping": True}, "")):
        pool.snapshot = pool.snapshot | {"loaded": loaded}
        pool.changed.emit()
        assert page.model_loader.model == expected
        assert page.details.steps.isVisibleTo(page) == bool(expected)


def test_downloads_of_a_node_that_is_gone_do_not_run(page: ModelsPage, at_lone: Desk) -> None:
    pool = at_lone.services.pool
    pool.stop()
    item = {
        "id": "a", "name": "phi", "file": "phi.gguf", "state": "running", "done_bytes": 1 << 30,
        "total_bytes": 4 << 30, "bytes_per_s": 1_000_000, "seconds_left": 50, "source": "hub",
    }  # fmt: skip
    pool.snapshot = pool.snapshot | {"downloads": {"a": item}}
    pool.changed.emit()
    assert list(page.transfers.rows) == ["a"]
    pool._say(Link.AWAY, "It keeps ending.")
    assert not page.transfers.rows


def test_search_and_filter(qtbot: QtBot, page: ModelsPage) -> None:
    page.list.search.setText("no such model")
    assert page.list._empty.isVisibleTo(page)
    page.list.show_all()
    page.list.filter.setCurrentIndex(2)
    assert lines(page)[0] == "On this computer"
    page.list.filter.setCurrentIndex(0)
    page.list.view.setFocus()
    page.list.entered.emit()
    assert QApplication.focusWidget() in (None, *page.details.foot.bar.buttons.values())


def test_everything_that_takes_the_focus_has_a_name(page: ModelsPage) -> None:
    for widget in page.findChildren(QWidget):
        if widget.focusPolicy() == Qt.FocusPolicy.NoFocus or not widget.isVisibleTo(page):
            continue
        if widget.objectName().startswith("qt_") or widget.inherits("QLabel"):
            continue
        named = widget.accessibleName() or getattr(widget, "text", str)()
        assert named, widget


def test_news_do_not_end_a_measurement(qtbot: QtBot, page: ModelsPage) -> None:
    page.plan_loader.measure()
    page.watch.memory.emit()
    page.details.show_item(page.details.item)  # the library tells of the same model anew
    assert page.plan_loader.measuring
    page.plan_loader.stop_measuring()


def test_the_page_shows_between_its_halves(page: ModelsPage, at_lone: Desk) -> None:
    """Whatever palette Qt has for what holds them: a new one may come late."""
    other = page._split.palette()
    other.setColor(QPalette.ColorRole.Window, QColor("red"))
    page._split.setPalette(other)
    gap = page._split.handle(1)
    at = gap.mapTo(page, gap.rect().center())
    shown = page.grab().toImage().pixelColor(at).name()
    assert shown == at_lone.services.theme.colors.window
