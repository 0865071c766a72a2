"""Two machines: leaving one out changes the plan at once; a split is loaded with steps of each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.api.plans import Progress
from app.gui.models.details.model_actions import ModelAction
from app.gui.models.models_page import ModelsPage
from testbed import tiny
from tests.gui.desk import desk, follow
from tests.node.pool import TestNode, paired

WITHIN_MS = 30_000


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[TestNode]]:
    folder = tmp_path_factory.mktemp("pool")
    with paired(folder, "den", "attic", lend="256MiB") as nodes:
        tiny.llama(folder / "wide.gguf", layers=12, context=20480, kv_heads=4, width=256, ffn=512)
        done = nodes[0].run("import", str(folder / "wide.gguf"))
        assert done.returncode == 0, done.stderr
        yield nodes


@pytest.fixture
def page(qtbot: QtBot, qapp: QApplication, pool: list[TestNode]) -> Iterator[ModelsPage]:
    parts = desk(qapp, pool[0].root)
    follow(qtbot, parts.services)
    made = ModelsPage(parts.services)
    qtbot.addWidget(made)
    made.show()
    qtbot.waitUntil(lambda: made.list.select("shelf:wide"), timeout=WITHIN_MS)
    ticks = made.details.form.machines.boxes
    qtbot.waitUntil(lambda: sum(box.isEnabled() for box in ticks.values()) == 1, timeout=WITHIN_MS)
    yield made
    made.end()
    parts.services.pool.stop()


@pytest.mark.long
def test_a_split_is_set_up_loaded_and_shown_by_machine(qtbot: QtBot, page: ModelsPage) -> None:
    details = page.details
    details.fold.open()
    steps: list[Progress] = []
    page.model_loader.changed.connect(lambda: steps.extend(page.model_loader.steps))
    details.form.context.slider.setValue(details.form.context.slider.maximum())
    qtbot.waitUntil(lambda: len(details.verdict.bars._shown) > 1, timeout=WITHIN_MS)
    assert len(details.form.machines.boxes) == 1
    for box in details.form.machines.boxes.values():
        box.setChecked(False)
    qtbot.waitUntil(lambda: details.verdict.use.isVisibleTo(page), timeout=WITHIN_MS)
    assert details.verdict.title.text() == "Fits with a smaller context"
    for box in details.form.machines.boxes.values():
        box.setChecked(True)
    qtbot.waitUntil(lambda: bool(details.foot.bar.buttons[ModelAction.LOAD].isEnabled()), timeout=WITHIN_MS)
    shape = details.form.shape
    assert shape.isVisibleTo(page)
    assert shape.kind is None
    shape.combo.setCurrentIndex(shape.combo.findData("split"))
    details.foot.bar.buttons[ModelAction.LOAD].click()
    qtbot.waitUntil(lambda: ModelAction.CHAT in details.foot.bar.buttons, timeout=WITHIN_MS)
    loaded = details._services.pool.now.loaded
    assert loaded is not None
    assert (loaded.shape, loaded.shape_ordered) == ("split", "split")
    assert ModelAction.LOAD not in details.foot.bar.buttons
    shape.combo.setCurrentIndex(shape.combo.findData("one"))  # other than what is loaded
    qtbot.waitUntil(lambda: ModelAction.LOAD in details.foot.bar.buttons, timeout=WITHIN_MS)
    shape.combo.setCurrentIndex(shape.combo.findData("split"))
    named = {step.machine for step in steps if step.step == "loading"}
    assert len(named) > 1
    details.foot.bar.buttons[ModelAction.UNLOAD].click()
    qtbot.waitUntil(lambda: ModelAction.LOAD in details.foot.bar.buttons, timeout=WITHIN_MS)


@pytest.mark.long
def test_a_smaller_context_is_taken_by_its_button(qtbot: QtBot, page: ModelsPage) -> None:
    details = page.details
    details.form.people.setValue(16)
    details.form.context.slider.setValue(details.form.context.slider.maximum())
    qtbot.waitUntil(lambda: details.verdict.use.isVisibleTo(page), timeout=WITHIN_MS)
    details.verdict.use.click()
    qtbot.waitUntil(lambda: details.verdict.title.text() in ("Fits", "Tight"), timeout=WITHIN_MS)
    assert details.form.context.context < 20480
