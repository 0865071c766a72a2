"""The first steps recommend the model that the node names for this household, the same as the page Models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.api.models import CatalogModel, Starter
from app.decoding import convert
from app.gui.look import formats
from app.gui.models.details.about_view import about_of
from app.gui.models.starter_card import why
from app.gui.welcome.steps import Recommendation
from tests.gui.desk import desk, follow
from tests.node.pool import TestNode, node

WITHIN_MS = 10_000


@pytest.fixture(scope="module", params=["2GiB", "64MiB"])
def den(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestNode, str]]:
    with node(tmp_path_factory.mktemp("starter") / "den", "den", lend=request.param) as made:
        yield made, request.param


def test_it_recommends_what_the_node_names_and_nothing_where_nothing_fits(
    qtbot: QtBot, qapp: QApplication, den: tuple[TestNode, str], tmp_path: Path
) -> None:
    at, lent = den
    starter = at.control("GET", "/starter")["starter"]
    parts = desk(qapp, at.root)
    follow(qtbot, parts.services)
    made = Recommendation(parts.services)
    qtbot.addWidget(made)
    made.refresh()
    qtbot.waitUntil(lambda: made._call is None, timeout=WITHIN_MS)
    assert (starter is None) == (lent == "64MiB")
    assert made.isVisible() == (starter is not None)
    if starter is not None:
        models = at.control("GET", "/catalog")["models"]
        facts = next(model for model in models if model["id"] == starter["id"])
        assert made.title.text() == f"Recommended: {starter['name']}"
        assert made.about.text() == f"{about_of(convert(facts, CatalogModel))} {why(convert(starter, Starter))}"
        size = formats.size(starter["size_bytes"])
        assert made.fetch.text() == f"{size} download from huggingface.co."
    parts.services.pool.stop()
    parts.services.lock.close()
