"""Tests of the window's language."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QCoreApplication, QLocale
from PySide6.QtWidgets import QApplication

from app.core.errors import Reason
from app.gui.look import formats
from app.gui.look.language import translate
from app.gui.settings.household import storage_sentence
from tests.gui.speaking import unchanged


@pytest.fixture
def as_it_was(qapp: QApplication) -> Iterator[QApplication]:
    """Nothing of it stays for other tests."""
    with unchanged(qapp):
        yield qapp


def shown(context: str, words: str, n: int = -1) -> str:
    return QCoreApplication.translate(context, words, "", n)


@pytest.mark.parametrize("language", ["en", "C", "fr"])
def test_english_has_plurals_where_there_is_no_other_language(as_it_was: QApplication, language: str) -> None:
    translate(as_it_was, language)
    assert shown("Sidebar", "Pool") == "Pool"
    words = {shown("Answer", "%n token(s)", n) for n in (1, 2)}
    assert words == {"1 token", "2 tokens"}


def test_german(as_it_was: QApplication) -> None:
    translate(as_it_was, "de")
    assert storage_sentence(Reason("kept_in_keyring")) == "Im Schlüsselbund des Systems"
    assert storage_sentence(Reason("kept_in_file")) == "In einer Datei, die nur Sie lesen können"
    assert shown("Sidebar", "Settings") == "Einstellungen"
    assert QLocale().language() is QLocale.Language.German
    assert shown("Answer", "%n token(s)", 7202) == "7.202 Token", "as every other number"


@pytest.mark.parametrize(
    ("language", "day", "number"),
    [("fr-FR", "Monday", "1,5"), ("ar-EG", "Monday", "1.5"), ("C", "Monday", "1.5"),
     ("de-CH", "Montag", "1.5"), ("de-AT", "Montag", "1,5")],
)  # fmt: skip
def test_dates_are_in_the_language_of_the_words(as_it_was: QApplication, language: str, day: str, number: str) -> None:
    translate(as_it_was, language)
    assert (QLocale().dayName(1), QLocale().toString(1.5, "f", 1)) == (day, number)


def test_digits_are_grouped_also_where_the_system_names_no_language(as_it_was: QApplication) -> None:
    """Otherwise the window showed "1024" next to "1,024" in the node's sentences."""
    translate(as_it_was, "C")
    assert formats.number(1024) == "1,024"


def test_the_second_language_of_a_system_is_that_of_the_sentences_too() -> None:
    """French first and German after it: buttons were German, and what the node said English."""
    words = """
from PySide6.QtCore import QCoreApplication
from app.gui.look import formats
from app.gui.look.language import translate
from app.core.errors import Reason
from app.gui.look.sentences import said
app = QCoreApplication([])
translate(app, "")
print(QCoreApplication.translate("Sidebar", "Settings"))
print(said(Reason("pause_battery")))
"""
    said = subprocess.run(
        [sys.executable, "-c", words], capture_output=True, text=True, check=False, timeout=60,
        env=os.environ | {"LANG": "fr_FR.UTF-8", "LANGUAGE": "fr:de", "LC_ALL": "", "LC_MESSAGES": ""},
    )  # fmt: skip
    messages = ["Einstellungen", "Pausiert: Es läuft mit Akku. Geht weiter, sobald es am Netz ist."]
    assert said.stdout.splitlines() == messages, said.stderr


# Everything between two calls is native, so that the interpreter is held as it is in the few moments that matter.
WORDS_OF_QTS_THREAD = """
import ctypes, operator, socket
from functools import partial
from PySide6.QtCore import QCoreApplication, QUrl
from PySide6.QtNetwork import QNetworkAccessManager, QNetworkRequest
from app.gui.look import formats
from app.gui.look.language import translators

app = QCoreApplication([])
known = translators(app)
nobody = socket.socket()
nobody.bind(("127.0.0.1", 0))
client = QNetworkAccessManager()
refused = QNetworkRequest(QUrl("http://127.0.0.1:%d/" % nobody.getsockname()[1]))
steps = []
for change in (app.installTranslator, app.removeTranslator):
    first, *others = [partial(change, one) for one in known.values()]
    asks = [partial(client.get, refused)] * 20
    steps += [*asks, app.processEvents, first, partial(ctypes.PyDLL(None).usleep, 100_000), *others]
kept = list(map(operator.call, steps))
print("spoken")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="it holds the interpreter by a call of POSIX")
def test_another_language_does_not_wait_for_what_qt_has_to_say_meanwhile() -> None:
    """The window stood still for ever where a request failed just then."""
    said = subprocess.run(
        [sys.executable, "-c", WORDS_OF_QTS_THREAD],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert said.stdout == "spoken\n", said.stderr
