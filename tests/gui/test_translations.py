"""Translations: everything the window says can be translated, is translated, and has room."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from PySide6.QtCore import QCoreApplication, QTranslator
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.gui.app import sidebar
from scripts import translations
from scripts.translations import Said, Unclear, english, everything, longer, said_in
from tests.gui import walk
from tests.gui.desk import Desk, window_over

SETTLE_MS = 300


def test_everything_can_be_collected() -> None:
    contexts = {item.context for item in everything()}
    assert {"Sidebar", "Standing", "Window", "ActivityPage"} <= contexts


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("class A:\n def f(self): self.tr('x')", [Said("A", "x")]),
        ("class A:\n def f(self): self.tr('a' 'b')", [Said("A", "ab")]),
        ("class A:\n def f(self): self.tr('%n x(s)', '', 2)", [Said("A", "%n x(s)", "", True)]),
        ("class A:\n def f(self): self.tr('x', 'why')", [Said("A", "x", "why")]),
        ("class A:\n def f(self): self.tr('x' if a else 'y')", [Said("A", "x"), Said("A", "y")]),
        ("def f(page: Page): page.tr('x')", [Said("Page", "x")]),
        ("QCoreApplication.translate('C', 'x')", [Said("C", "x")]),
        ("tr = QCoreApplication.translate\ntr('C', 'x')", [Said("C", "x")]),
        ("painter.translate(1, 2)", []),
        ("Entry(QT_TRANSLATE_NOOP('C', 'x'))", [Said("C", "x")]),
        ("QCoreApplication.translate('C', str(self.words))", []),
        (
            "def g(t): return QCoreApplication.translate('C', t)\nprint(g('x'), g('y'))",
            [Said("C", "x"), Said("C", "y")],
        ),
        ("def f():\n t = 'x' if a else 'y'\n QCoreApplication.translate('C', t)", [Said("C", "x"), Said("C", "y")]),
    ],
)
def test_texts_are_found(source: str, expected: list[Said]) -> None:
    assert list(said_in(source, "f.py")) == expected


@pytest.mark.parametrize(
    "source",
    ["class A:\n def f(self): self.tr(name)", "page.tr('x')", "class A:\n def f(self): self.tr(f'{x}')"],
)  # fmt: skip
def test_what_cannot_be_collected_is_said(source: str) -> None:
    with pytest.raises(Unclear):
        list(said_in(source, "f.py"))


def test_english_plurals() -> None:
    words = ("machine(s)", "try(s)", "way(s)", "box(s)", "match(s)")
    assert [english(word, False) for word in words] == ["machine", "try", "way", "box", "match"]
    assert [english(word, True) for word in words] == [
        "machines", "tries", "ways", "boxes", "matches",
    ]  # fmt: skip


def test_the_long_language_keeps_what_is_filled_in() -> None:
    made = longer("%n answer(s) of {model} in *.html")
    assert "%n" in made
    assert "{model}" in made
    assert "*.html" in made
    assert len(made) >= 1.4 * len("%n answer(s) of {model} in *.html")


@pytest.fixture(scope="module")
def long_language(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("pseudo") / "pseudo.qm"
    translations.pseudo(made)
    return made


@pytest.fixture
def speaks_long(qapp: QApplication, long_language: Path) -> Iterator[None]:
    translator = QTranslator()
    assert translator.load(str(long_language))
    qapp.installTranslator(translator)
    yield
    qapp.removeTranslator(translator)


@pytest.mark.long
def test_a_translation_reaches_the_window(speaks_long: None) -> None:
    assert QCoreApplication.translate("Sidebar", "Settings") == longer("Settings")
    assert sidebar.ENTRIES[0].title == longer("Pool")


@pytest.mark.parametrize("name", [entry.name for entry in sidebar.ENTRIES])
def test_nothing_is_cut_in_a_language_that_is_longer(qtbot: QtBot, speaks_long: None, at_lone: Desk, name: str) -> None:
    window = window_over(qtbot, at_lone.services, name)
    qtbot.wait(SETTLE_MS)
    result = []
    for tab in walk.tabs(window.page(name)):
        qtbot.wait(20)
        result += [f"{name} {tab}: {label}" for label in walk.cut(window)]
    assert not result, "\n".join(result)


def messages(file: Path) -> Iterator[tuple[str, list[str]]]:
    """Each text of a language, and what it became: two forms where it counts something."""
    for message in ET.parse(file).iter("message"):  # noqa: S314  our own file
        element = message.find("translation")
        assert element is not None
        forms = [item.text or "" for item in element.findall("numerusform")]
        yield str(message.findtext("source")), forms or [element.text or ""]


PLACES = re.compile(r"\{\w*\}|%L?n|%[0-9]")


@pytest.mark.parametrize("file", sorted(translations.FOLDER.glob("poolhouse_*.ts")), ids=lambda file: file.stem)
def test_each_translation_fills_in_what_its_text_does(file: Path) -> None:
    odd = [
        f"{source} => {form}"
        for source, forms in messages(file)
        for form in forms
        if sorted(PLACES.findall(form)) != sorted(PLACES.findall(source.replace("%n", "%Ln")))
        or "(s)" in form
        or (source[-1] in ".?!…:" and form[-1] != source[-1])
    ]
    assert not odd, "\n".join(odd)


def test_what_counts_has_a_form_of_its_own_for_one() -> None:
    """Most words have one in German. These do not, or only the number changes."""
    same = {"%n token(s)", "Thinking… %n token(s)", "All checks (%n)", "%n running this version", "%n match(es)"}
    german = translations.FOLDER / "poolhouse_de.ts"
    counted = {source: forms for source, forms in messages(german) if len(forms) == 2}
    assert {source for source, (name, more) in counted.items() if name == more} == same


def test_the_shipped_languages_are_up_to_date_and_complete(tmp_path: Path) -> None:
    for file in translations.FOLDER.glob("poolhouse_*.ts"):
        shutil.copy(file, tmp_path)
    missing = translations.update(tmp_path)
    assert not missing, "run `make translations`, then translate:\n" + "\n".join(missing)
    for file in sorted(tmp_path.iterdir()):
        kept = translations.FOLDER / file.name
        assert kept.read_bytes() == file.read_bytes(), f"{file.name}: run `make translations`"


PAGES = ("README.md", "CHANGELOG.md", *(f"docs/{name}.md" for name in ("api", "catalog", "commands", "safety")))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_quotes_only_labels_that_the_window_has(page: str) -> None:
    labels = {item.text.rstrip("…") for item in everything()}
    patterns = [re.compile(re.sub(r"\\{\w+\\}", r"[a-z0-9.-]+", re.escape(label))) for label in labels]
    text = re.sub(
        r"```.*?```|`[^`\n]*`", "", (Path(translations.__file__).parents[1] / page).read_text("utf-8"), flags=re.DOTALL
    )
    quoted = {
        " ".join(words.split()).rstrip("…") for words in re.findall(r"(?<![*\w])\*([A-Z][^*]{2,60})\*(?![*\w])", text)
    }
    assert not [words for words in sorted(quoted) if not any(pattern.fullmatch(words) for pattern in patterns)]


def test_an_ellipsis_follows_its_word_in_every_language() -> None:
    """Buttons that open a dialog and work in progress end in one, as in English."""
    files = sorted(translations.FOLDER.glob("poolhouse_*.ts"))
    roots = [ET.parse(file).getroot() for file in files]  # noqa: S314  our own files
    texts = [part.text or "" for root in roots for name in ("translation", "numerusform") for part in root.iter(name)]
    assert len(texts) > 2_000
    assert [text for text in texts if " …" in text] == []
