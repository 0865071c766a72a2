"""The list of models by size: what it shows says which are of one."""

from __future__ import annotations

import pytest

from app.api import models
from app.decoding import convert
from app.gui.models.model_item import found_item, offer_item, other_item, shelf_item
from app.gui.models.model_list import CLASSES
from app.gui.models.models_page import ModelsPage
from tests.gui.models.offers import GIB, offer


def test_every_size_is_in_one_class() -> None:
    for gib in (0.1, 4, 4.1, 16, 40, 48, 400):
        item = shelf_item(convert({"name": "m", "file_bytes": int(gib * GIB)}, models.ShelfModel))
        assert sum(size_class.holds(item) for size_class in CLASSES) == 1, gib


def test_what_nobody_knows_the_size_of_is_in_none() -> None:
    item = found_item(convert({"repository": "maker/m", "name": "m"}, models.HubModel))
    assert not any(size_class.holds(item) for size_class in CLASSES)


def test_the_size_is_that_of_the_line() -> None:
    assert other_item(models.FoundFile(path="/m", name="m", size_bytes=GIB)).listed_bytes == GIB
    assert offer_item(offer()).listed_bytes == int(39.7 * GIB)  # of the recommended one
    result = {"repository": "maker/m", "name": "m", "parameters": 8_000_000_000}
    assert found_item(convert(result, models.HubModel)).listed_bytes == pytest.approx(4.5 * GIB, rel=0.02)


def test_the_list_shows_one_size_beside_the_other_filters(page: ModelsPage) -> None:
    def names() -> list[str]:
        rows = page.list.rows
        items = (rows.row(rows.index(n)).item for n in range(rows.rowCount()))
        return [item.name for item in items if item is not None]

    small = offer("small-1b", offer().files[1], name="Small 1B")
    page.library.offers = [offer_item(offer()), offer_item(small)]
    page.list.refresh()
    page.list.size_filter.setCurrentIndex(1)
    assert names() == ["guide", "Small 1B"]
    page.list.search.setText("small")
    assert names() == ["Small 1B"]
    page.list.size_filter.setCurrentIndex(2)
    assert page.list._empty.isVisibleTo(page)
    assert "this size" in page.list._empty.sentence.text()
    page.list.search.setText("nobody's")
    assert "has that name" in page.list._empty.sentence.text()
    page.list._all.click()
    assert names()[-2:] == ["Large 70B", "Small 1B"]
    assert page.list.size_filter.currentText() == "Any size"
