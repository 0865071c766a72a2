"""Each view of the web chat without barriers, light and dark, as axe-core finds them."""

from __future__ import annotations

import pytest

from tests.gateway.phones.phone_door import Door
from tests.web.axe import axe_source, barriers
from tests.web.phone_browser import LONG_ANSWERS, PhoneBrowser
from tests.web.test_phone_chat import QUESTION, door, page

pytestmark = pytest.mark.phone

__all__ = ["door", "page"]  # fixtures
RICH = "# A\n\n`code` [link](https://a.example)\n\n```python\nx = 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
SHOW = """
const [text, done] = arguments;
import("/chat/markdown.js").then(({ render }) => {
  document.querySelector(".answer .body").replaceChildren(render(text));
  done();
});
"""


def test_joining(door: Door, browser: PhoneBrowser) -> None:
    axe_source()
    browser.open(f"{door.base}/chat/")
    browser.forget_everything()
    browser.open(f"{door.base}/chat/")
    browser.until(browser.part("join").is_displayed)
    assert barriers(browser) == []
    browser.part("code").send_keys("1234 5678")
    browser.press("join-button")
    browser.until(lambda: "wrong" in browser.part("join-error").text)
    assert barriers(browser) == []


def test_every_view_of_a_chat(page: PhoneBrowser) -> None:
    axe_source()
    assert barriers(page) == [], "an empty chat"
    page.ask(QUESTION)
    assert barriers(page) == [], "an answer"
    page.driver.execute_async_script(SHOW, RICH)
    assert barriers(page) == [], "an answer with all that Markdown has"
    page.press("open-drawer")
    assert barriers(page) == [], "the list of chats"
    page.press("close-drawer")
    page.js(LONG_ANSWERS)
    page.write(QUESTION)
    page.until(lambda: page.is_writing() and len(page.answers[-1]) > 40)
    assert barriers(page) == [], "while it writes"
    page.press("stop")
    page.until(lambda: not page.is_writing())
    assert barriers(page) == [], "an answer that was stopped"
    page.js("window.fetch = () => Promise.reject(new TypeError('no network'))")
    page.write(QUESTION)
    page.until(page.part("problem").is_displayed)
    assert barriers(page) == [], "an error"
