"""Badges and the card say what the facts of a model say, and nothing that only its name suggests."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.api.models import HubModel, ShelfModel
from app.catalog.model_catalog import load_catalog
from app.gui.models.badges import LICENSES, badges, license_words
from app.gui.models.details.about_view import AboutView
from app.gui.models.model_item import found_item, offer_item, shelf_item
from tests.gui.models.offers import offer
from tests.gui.speaking import speaking


def test_a_name_earns_no_badge() -> None:
    assert badges(shelf_item(ShelfModel(name="Vision-Tools-Thinking-Multilingual-MIT"))) == []
    assert badges(found_item(HubModel(repository="maker/Tools", name="Tools"))) == []


def test_the_file_earns_its_badges() -> None:
    model = ShelfModel(name="m", tools=True, thinks=True, languages=["en", "de"], license="apache-2.0")
    assert badges(shelf_item(model)) == ["Tools", "Thinking", "2 languages", "Apache-2.0"]
    assert badges(shelf_item(ShelfModel(name="m", vision=True, tools=True))) == ["Pictures", "Tools"]


def test_a_base_model_says_that_it_completes_text() -> None:
    base = ShelfModel(name="m", has_template=False, license="gemma")
    assert badges(shelf_item(base)) == ["Completes text", "Gemma Terms of Use"]
    assert badges(shelf_item(ShelfModel(name="m", has_template=False, writes=False, embeds=True))) == []


def test_the_catalog_earns_its_badges() -> None:
    made = offer(good_at=["chat", "tools", "languages"], n_languages=119, license="Apache-2.0")
    assert badges(offer_item(made)) == ["Tools", "119 languages", "Apache-2.0"]
    unsaid = offer(good_at=["languages"], license="x" * 40)
    assert badges(offer_item(unsaid)) == ["Many languages"]


def test_every_license_that_the_catalog_names_is_said_in_words() -> None:
    known = {model.license for model in load_catalog().models} | set(LICENSES.values())
    assert {name for name in known if not license_words(name)} == {"as its model page says"}


@pytest.fixture
def about(qtbot: QtBot) -> AboutView:
    view = AboutView()
    qtbot.addWidget(view)
    return view


def test_the_card_says_in_words_what_a_person_chooses_by(about: AboutView) -> None:
    made = offer(
        good_at=["chat", "tools"], n_languages=12, license="Apache-2.0", active_parameters=3_300_000_000
    )  # fmt: skip
    about.show_item(offer_item(made))
    assert about.card.text.splitlines() == [
        "Made by: Maker",
        "Good at: conversation, using tools",
        "Languages: 12 languages, according to its maker",
        "Size: 39.7 GiB, 70.0B parameters, of which 3.3B are used for each word",
        "Context: up to 131072 tokens, about 98000 English words",
        "License: Apache-2.0. Free for any use, including at work.",
    ]


def test_what_nobody_states_has_no_line(about: AboutView) -> None:
    about.show_item(shelf_item(ShelfModel(name="m", file_bytes=5 << 20)))
    assert about.card.text.splitlines() == ["Size: 5.0 MiB", "License: not stated"]


def test_languages_have_their_own_names(about: AboutView, qapp: QApplication) -> None:
    with speaking(qapp, "de"):
        about.show_item(shelf_item(ShelfModel(name="m", languages=["en", "de", "fr", "xq"])))
        assert "Sprachen: English, Deutsch, français, xq" in about.card.text


def test_a_base_model_says_so_on_its_card(about: AboutView) -> None:
    about.show_item(shelf_item(ShelfModel(name="m", has_template=False)))
    assert about._about.text() == "This is a base model. It completes text and doesn't chat."
