"""The web chat as a person uses it: a real browser, a real household of two nodes, and the Guide."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from app.machine.interfaces import interfaces
from tests.formula_examples import FORMULAS
from tests.gateway.conftest import free_port
from tests.gateway.phones.phone_door import Door, opened
from tests.node.pool import paired
from tests.web.phone_browser import LONG_ANSWERS, PhoneBrowser

pytestmark = pytest.mark.phone
QUESTION = "How do I add a computer?"
PICTURES = os.environ.get("POOLHOUSE_PHONE_PICTURES")  # a folder for pictures of the page in both palettes
MOST_REVOKED_SECONDS = 2.0


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """A host with a phone's door and a lender: the Guide's layers are split over both processes."""
    folder = tmp_path_factory.mktemp("phone_pool")
    (lo,) = [interface.name for interface in interfaces() if "127.0.0.1" in interface.addresses]
    (folder / "den").mkdir()
    settings = {"name": "den", "interfaces": [lo], "api": {"port": free_port()}}
    (folder / "den" / "settings.json").write_text(json.dumps(settings), "utf-8")
    with paired(folder, "den", "attic") as nodes:
        nodes[0].work("/load", {"model": "guide", "split": [2, 4, 2]})
        yield opened(nodes[0])


@pytest.fixture
def page(door: Door, browser: PhoneBrowser) -> Iterator[PhoneBrowser]:
    """The page on a device that has just joined."""
    browser.open(f"{door.base}/chat/")
    browser.forget_everything()
    browser.join(f"{door.base}/chat/", door.code(), "Anna's phone")
    browser.complaints()
    yield browser
    assert browser.complaints() == []  # such as a policy that was broken


def picture(browser: PhoneBrowser, name: str) -> None:
    """Take pictures in both palettes, where somebody wants them."""
    if PICTURES:
        for palette in ("light", "dark"):
            browser.use_palette(palette)
            browser.picture(Path(PICTURES) / f"{name}-{palette}.png")
        browser.use_palette("light")


def test_from_the_picture_to_an_answer_and_the_chat_stays(door: Door, browser: PhoneBrowser) -> None:
    browser.open(f"{door.base}/chat/")
    browser.forget_everything()
    code = door.code()
    began = time.monotonic()
    browser.open(f"{door.base}/chat/#{code}")
    browser.until(browser.part("join").is_displayed)
    assert browser.part("code").get_attribute("value") == f"{code[:4]} {code[4:]}"
    assert browser.js("return location.hash") == ""  # the code stays in no history
    picture(browser, "join")
    browser.part("device").send_keys(" of Anna")
    browser.press("join-button")
    browser.until(lambda: len(browser.part("model").text.strip()) > 1)
    assert browser.part("model").text.strip() == "guide · on den"
    picture(browser, "empty")
    browser.write(QUESTION)
    browser.until(lambda: browser.answers and browser.answers[0])
    print(f"from the picture to the first words of an answer: {time.monotonic() - began:.2f} s")
    browser.until(lambda: not browser.is_writing())
    answer = browser.answers[0]
    assert len(answer) > 20
    assert browser.js("return document.querySelector('.answer .body').getAttribute('aria-busy')") == "false"
    picture(browser, "answer")

    browser.open(f"{door.base}/chat/")  # it stays connected, and the chat is there
    browser.until(lambda: browser.answers)
    assert (browser.questions, browser.answers) == ([QUESTION], [answer])
    browser.press("open-drawer")
    assert [row.text for row in browser.parts("#chat-list .title")] == [QUESTION]
    picture(browser, "chats")
    browser.press("close-drawer")
    assert not [text for text in browser.complaints() if "favicon" not in text]


def test_stop_ends_the_answer_here_and_there_and_it_can_be_asked_again(door: Door, page: PhoneBrowser) -> None:
    page.js(LONG_ANSWERS)
    page.write(QUESTION)
    page.until(lambda: page.answers and len(page.answers[0]) > 40)
    assert door.node.answers()["running"] == 1
    picture(page, "writing")
    page.press("stop")
    page.until(lambda: not page.is_writing())
    stopped = page.answers[0]
    page.until(lambda: door.node.answers()["running"] == 0, "the computers have stopped, too")
    time.sleep(0.3)
    assert page.answers[0] == stopped
    assert page.parts(".answer .note")[0].text == "Stopped."
    (again,) = page.parts(".regenerate")
    again.click()
    page.until(lambda: page.is_writing() and len(page.answers) == 1 and page.answers[0] not in ("", stopped))
    page.part("question").send_keys(Keys.ESCAPE)
    page.until(lambda: not page.is_writing())
    assert len(page.questions) == 1


KEPT = """
const [done] = arguments;
import("/chat/chats.js").then(async ({ allChats }) => done((await allChats()).length));
"""


def begin_long(page: PhoneBrowser) -> None:
    """Ask for an answer that does not end, and wait for its first words."""
    page.js(LONG_ANSWERS)
    page.write(QUESTION)
    page.until(lambda: page.is_writing() and len(page.answers[-1]) > 40)


def test_an_answer_that_the_page_was_closed_in_is_kept_as_stopped(door: Door, page: PhoneBrowser) -> None:
    begin_long(page)
    page.until(lambda: page.driver.execute_async_script(ANSWER_KEPT), "it is saved while it grows")
    page.open(f"{door.base}/chat/")
    page.until(lambda: page.answers and page.answers[0])
    assert [note.text for note in page.parts(".answer .note")] == ["Stopped."]
    assert [again.is_displayed() for again in page.parts(".regenerate")] == [True]


ANSWER_KEPT = """
const [done] = arguments;
import("/chat/chats.js").then(async ({ allChats }) => done((await allChats())[0]?.messages[1]?.content ?? ""));
"""


def test_what_is_deleted_while_it_is_being_answered_stays_deleted(door: Door, page: PhoneBrowser) -> None:
    page.ask(QUESTION)
    for name in ("#chat-list button.icon", "#forget"):
        begin_long(page)
        page.press("open-drawer")
        page.parts(name)[0].click()
        page.driver.switch_to.alert.accept()
        page.until(lambda: door.node.answers()["running"] == 0)
        time.sleep(0.3)
        assert page.driver.execute_async_script(KEPT) == 0, name
        if name != "#forget":
            page.press("close-drawer")


def test_a_removed_device_that_scans_a_new_code_needs_no_other(door: Door, page: PhoneBrowser) -> None:
    for device in door.control("GET", "/phones")["devices"]:
        door.control("DELETE", f"/phones/devices/{device['id']}")
    page.open(f"{door.base}/chat/#{door.code()}")
    page.until(page.part("join-button").is_displayed)
    page.complaints()  # the browser names the answer 401
    assert not page.part("join-error").is_displayed()
    assert page.js("return location.hash") == ""
    page.press("join-button")
    page.until(lambda: page.part("model").text.strip() == "guide · on den")


def test_a_chat_that_went_on_in_another_tab_goes_on_here(door: Door, page: PhoneBrowser) -> None:
    page.ask("What is a host?")
    first = page.driver.current_window_handle
    page.driver.switch_to.new_window("tab")
    page.open(f"{door.base}/chat/")
    page.until(lambda: page.questions == ["What is a host?"])
    page.ask("What is a lender?")
    page.driver.close()
    page.driver.switch_to.window(first)
    page.js("document.dispatchEvent(new Event('visibilitychange'))")
    page.until(lambda: page.questions == ["What is a host?", "What is a lender?"])


def test_that_phones_were_turned_off_is_said(door: Door, page: PhoneBrowser) -> None:
    door.control("POST", "/api", {"on": True, "lan": True})  # the server stays, for programs
    try:
        door.control("POST", "/phones", {"on": False})
        page.write(QUESTION)
        page.until(lambda: "no longer lets phones chat" in page.part("problem-text").text)
        page.complaints()  # the browser names the answer 404
    finally:
        door.control("POST", "/phones", {"on": True})
        door.control("POST", "/api", {"on": False, "lan": False})


def test_enter_sends_and_shift_enter_breaks_the_line(page: PhoneBrowser) -> None:
    page.part("question").send_keys("one", Keys.SHIFT + Keys.ENTER)
    page.part("question").send_keys("two")
    assert page.part("question").get_attribute("value") == "one\ntwo"
    assert page.questions == []
    page.part("question").send_keys(Keys.ENTER)
    page.until(lambda: page.questions == ["one\ntwo"])
    page.until(lambda: not page.is_writing())


def test_chats_are_kept_apart_and_deleted(page: PhoneBrowser) -> None:
    page.ask("What is a host?")
    page.press("new-chat")
    assert page.answers == []
    page.ask("What is a lender?")
    page.press("open-drawer")
    rows = page.parts("#chat-list .title")
    assert [row.text for row in rows] == ["What is a lender?", "What is a host?"]
    rows[1].click()
    page.until(lambda: page.questions == ["What is a host?"])
    page.press("open-drawer")
    page.parts("#chat-list button.icon")[1].click()
    page.driver.switch_to.alert.accept()
    page.until(lambda: len(page.parts("#chat-list .title")) == 1)
    page.press("close-drawer")
    page.open(page.driver.current_url)
    page.until(lambda: page.questions == ["What is a lender?"])


def test_a_removed_device_is_told_so_within_two_seconds_and_comes_back_with_a_code(
    door: Door, page: PhoneBrowser
) -> None:
    page.js(LONG_ANSWERS)
    page.write(QUESTION)
    page.until(lambda: page.answers and len(page.answers[0]) > 40)
    began = time.monotonic()
    for device in door.control("GET", "/phones")["devices"]:
        door.control("DELETE", f"/phones/devices/{device['id']}")
    page.until(lambda: page.part("join").is_displayed(), "the field for the code is shown again")
    assert time.monotonic() - began < MOST_REVOKED_SECONDS
    assert "not connected any more" in page.part("join-error").text
    picture(page, "removed")
    page.complaints()  # the browser names the answer 401
    page.part("code").send_keys("1234 5678")
    page.press("join-button")
    page.until(lambda: "wrong" in page.part("join-error").text)
    page.complaints()
    page.join(f"{door.base}/chat/", door.code(), "Anna's phone")
    assert page.questions == [QUESTION]  # its chats were never taken away


def test_a_model_that_is_gone_and_a_computer_that_is_silent_are_said(door: Door, page: PhoneBrowser) -> None:
    door.control("POST", "/unload", {"model": "guide"})
    try:
        page.write(QUESTION)
        page.until(lambda: page.part("problem").is_displayed())
        assert "not loaded any more" in page.part("problem-text").text
        page.until(lambda: page.part("model").text.strip() == "No model is loaded")
        picture(page, "no-model")
        page.complaints()
    finally:
        door.node.work("/load", {"model": "guide", "split": [2, 4, 2]})
    page.js("document.dispatchEvent(new Event('visibilitychange'))")
    page.until(lambda: page.part("model").text.strip() == "guide · on den")
    page.press("again")
    page.until(lambda: page.answers and not page.is_writing())
    page.js("window.fetch = () => Promise.reject(new TypeError('no network'))")
    page.write(QUESTION)
    page.until(lambda: "does not answer" in page.part("problem-text").text)


def test_dark_and_light_follow_the_device(page: PhoneBrowser) -> None:
    shades = []
    for palette in ("light", "dark"):
        page.use_palette(palette)
        shades.append(page.js("return getComputedStyle(document.body).backgroundColor"))
    page.use_palette("light")
    assert shades == ["rgb(245, 247, 250)", "rgb(20, 23, 28)"]


def test_german_where_the_device_speaks_it(door: Door, page: PhoneBrowser) -> None:
    page.use_language("de-DE")
    try:
        page.open(f"{door.base}/chat/")
        page.until(lambda: page.js("return document.documentElement.lang") == "de")
        assert page.part("send").get_attribute("aria-label") == "Senden"
        assert page.part("question").get_attribute("placeholder") == "Frage stellen"
    finally:
        page.use_language("en")


def test_everything_has_a_name_and_is_large_enough_for_a_finger(page: PhoneBrowser) -> None:
    page.ask(QUESTION)
    names = page.js(
        """return [...document.querySelectorAll("button, input, select, textarea")]
        .filter((part) => part.offsetParent).map((part) => [
          part.getAttribute("aria-label") || part.labels?.[0]?.textContent || part.textContent.trim(),
          part.getBoundingClientRect().height, part.id])"""
    )
    assert len(names) >= 5
    assert not [entry for entry in names if not entry[0] or entry[1] < 44]
    assert page.js("return document.documentElement.scrollWidth <= innerWidth")


# What a model may write must not act: nothing is loaded, no script runs, HTML is text.
HOSTILE = [
    "<script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned = 1'>",
    "<svg><script>window.pwned = 1</script></svg>",
    "<math><mtext></table><img src=x onerror=window.pwned=1></math>",
    "![picture](https://evil.example/x.png)",
    "![x](x 'onerror=window.pwned=1')",
    "[press](javascript:window.pwned=1)",
    "[press](data:text/html,<script>window.pwned=1</script>)",
    "[press](&#106;avascript:window.pwned=1)",
    "<a href='javascript:window.pwned=1'>press</a>",
    "[press][r]\n\n[r]: javascript:window.pwned=1",
    '```"onmouseover=window.pwned=1 <script>\ncode</code></pre><img src=x onerror=window.pwned=1>\n```',
    "<style>body{display:none}</style>",
    "<iframe srcdoc='<script>parent.pwned=1</script>'></iframe>",
    "<form action=https://evil.example><input name=q><button>press</button></form>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<base href=https://evil.example>",
    "<div id=question name=cookie>clobbers</div>",
    "| a |\n|---|\n| <img src=x onerror=window.pwned=1> |",
    "- [ ] task <input type=image src=x onerror=window.pwned=1>",
    "<https://evil.example/a?b=1>",
    "&lt;img src=x onerror=window.pwned=1&gt;",
]
CHECK = """
const [texts, done] = arguments;
import("/chat/markdown.js").then(({ render }) => {
  const box = document.createElement("div");
  document.body.append(box);
  const told = [];
  for (const text of texts) {
    box.replaceChildren(render(text));
    for (const part of box.querySelectorAll("*")) {
      const tag = part.tagName.toLowerCase();
      if (/^(script|img|svg|math|iframe|style|link|meta|base|form|object|embed)$/.test(tag)) told.push([tag, text]);
      for (const { name, value } of part.attributes) {
        if (/^(on|src|style|srcset|formaction|id|name)/.test(name)) told.push([name, text]);
        if (name === "href" && !/^(https?|mailto):/.test(value)) told.push([value, text]);
      }
      const isApart = part.rel === "noopener noreferrer nofollow" && part.target === "_blank";
      if (tag === "a" && !isApart) told.push(["rel", text]);
    }
    for (const press of box.querySelectorAll("a, input")) press.dispatchEvent(new MouseEvent("mouseover"));
  }
  box.remove();
  setTimeout(() => done([told, window.pwned ?? null,
    performance.getEntriesByType("resource").map((entry) => entry.name)]), 300);
});
"""


def test_what_a_model_writes_cannot_act(door: Door, page: PhoneBrowser) -> None:
    harmful, pwned, loaded = page.driver.execute_async_script(CHECK, HOSTILE)
    assert harmful == []
    assert pwned is None
    assert not [name for name in loaded if not name.startswith(f"{door.base}/chat/")]


UNREADABLE = """
const [text, done] = arguments;
import("/chat/markdown.js").then(({ render }) => done(render(text).textContent));
"""


def test_what_no_markdown_library_can_read_is_shown_as_text(page: PhoneBrowser) -> None:
    text = ">" * 20_000 + " <b>deep</b>"  # more quotes in one another than the stack holds
    assert text in page.driver.execute_async_script(UNREADABLE, text)


SHAPES = """
const [text, done] = arguments;
import("/chat/markdown.js").then(({ render, Growing }) => {
  const whole = document.createElement("div"), grown = document.createElement("div");
  whole.append(render(text));
  const growing = new Growing(grown);
  for (const letter of text) { growing.add(letter); growing.paint(); }
  const before = grown.textContent;
  growing.finish();
  done([whole.innerHTML, grown.innerHTML, before, [...whole.querySelectorAll("*")].map((part) => part.tagName)]);
});
"""


def test_markdown_is_shown_and_growing_ends_as_the_whole(page: PhoneBrowser) -> None:
    text = (
        "# Title\n\nSome *text* with `code`.\n\n```python\nprint('a')\n\nprint('b')\n```\n\n1. one\n\n2. two\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n- [x] done\n\nend \u202e`a\u202eb`"
    )
    whole, grown, before, tags = page.driver.execute_async_script(SHAPES, text)
    assert grown == whole
    assert {"H1", "EM", "CODE", "PRE", "OL", "TABLE", "INPUT", "BUTTON"} <= set(tags)
    assert "print('b')" in before
    assert "[U+202E]" in whole  # a sign that reorders code is written out


FIND_FORMULAS = """
const [texts, done] = arguments;
import("/chat/markdown.js").then(({ render }) => done(texts.map((text) => {
  const box = document.createElement("div");
  const began = performance.now();
  box.append(render(text));
  const found = [...box.querySelectorAll("code.formula, .formula code")].map((code) => code.textContent);
  return [found, box.textContent.trim(), performance.now() - began];
})));
"""


def formulas(page: PhoneBrowser, *texts: str) -> list[tuple[list[str], str, float]]:
    """The formulas of each text, its whole text, and the milliseconds that it took."""
    answers = page.driver.execute_async_script(FIND_FORMULAS, list(texts))
    return [(list(shown), str(text), float(took)) for shown, text, took in answers]


def test_a_formula_is_shown_as_it_was_written(page: PhoneBrowser) -> None:
    lines = "$$\na_1 \\\\ b_2\n= c * d * e\n$$"
    kept = r"\, \; \{x\} \\ \% \( a"
    inline, block, bare, money = formulas(
        page, r"a $x_1$ b \(y\,\\\) c \[z\{\] d $$w$$ e", f"words:\n{lines}\nmore", kept,
        "costs $5 and $6, US$5/NZ$6, **$5**, $A and $B, `$x$`",
    )  # fmt: skip
    assert inline[0] == ["$x_1$", r"\(y\,\\\)", r"\[z\{\]", "$$w$$"]
    assert block[0] == [lines]
    assert bare[:2] == ([], kept)
    assert money[0] == []
    assert money[1] == "costs $5 and $6, US$5/NZ$6, $5, $A and $B, $x$"


def test_the_page_finds_the_formulas_that_the_window_finds(page: PhoneBrowser) -> None:
    texts = [text for text, _ in FORMULAS]
    sources = [shown for shown, _, _ in formulas(page, *texts)]
    assert list(zip(texts, sources, strict=True)) == list(FORMULAS)


def test_openings_without_an_end_do_not_hold_up_the_page(page: PhoneBrowser) -> None:
    texts = ["\\(" * 5_000, "$a " * 5_000, "$$a\n" * 3_000, "\\[\n" * 5_000, "$$" + "x " * 50_000]
    assert all(took < 2_000 for _, _, took in formulas(page, *texts))


PAINTED = """
const [text, done] = arguments;
import("/chat/markdown.js").then(async ({ Growing }) => {
  const body = document.createElement("div");
  document.getElementById("log").append(body);
  const growing = new Growing(body), times = [];
  for (const word of text.split(/(?<= )/)) {
    growing.add(word);
    const began = performance.now();
    growing.paint();
    body.getBoundingClientRect(); // the layout belongs to it
    times.push(performance.now() - began);
    if (times.length % 20 === 0) await new Promise((resolve) => setTimeout(resolve));
  }
  body.remove();
  done(times.sort((one, other) => one - other));
});
"""
MOST_PAINT_MS = 16.0  # a frame at 60 Hz


def test_a_long_answer_is_painted_as_fast_as_a_short_one(page: PhoneBrowser) -> None:
    block = (
        "Some *words* about `code` and more of them in one line.\n\n```python\n" + "x = x + 1\n" * 12 + "```\n\n- one\n"
    )
    times = page.driver.execute_async_script(PAINTED, block * 40)
    print(f"{len(times)} words: median {times[len(times) // 2]:.1f} ms, 99 % {times[len(times) * 99 // 100]:.1f} ms, "
          f"longest {times[-1]:.1f} ms")  # fmt: skip
    assert times[len(times) * 95 // 100] < MOST_PAINT_MS
