"""Which words the window shows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QCoreApplication, QLocale
from PySide6.QtWidgets import QApplication

from app.gui.language import translate
from app.gui.settings.household import kept
from tests.gui.speaking import unchanged


@pytest.fixture
def as_it_was(qapp: QApplication) -> Iterator[QApplication]:
    """Nothing of it stays for other tests."""
    with unchanged(qapp):
        yield qapp


def shown(context: str, words: str, n: int = -1) -> str:
    return QCoreApplication.translate(context, words, "", n)


@pytest.mark.parametrize("language", ["en", "C", "fr"])
def test_english_has_plurals_where_there_is_no_other_language(
    as_it_was: QApplication, language: str
) -> None:
    translate(as_it_was, language)
    assert shown("Sidebar", "Pool") == "Pool"
    words = {shown("Answer", "%n token(s)", n) for n in (1, 2)}
    assert words == {"1 token", "2 tokens"}


def test_german(as_it_was: QApplication) -> None:
    translate(as_it_was, "de")
    assert kept("in the system keyring") == "Im Schlüsselbund des Systems"
    assert kept("in a file only you can read") == "In einer Datei, die nur Sie lesen können"
    assert shown("Sidebar", "Settings") == "Einstellungen"
    assert QLocale().language() is QLocale.Language.German


# Everything between two calls is native, so that the interpreter is held as it is in the few moments that matter.
WORDS_OF_QTS_THREAD = """
import ctypes, operator, socket
from functools import partial
from PySide6.QtCore import QCoreApplication, QUrl
from PySide6.QtNetwork import QNetworkAccessManager, QNetworkRequest
from app.gui.language import translators

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
