"""The page as a person uses it: what they press, and what they see."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

WAIT_SECONDS = 40.0
LONG_ANSWERS = """
const before = window.fetch;
window.fetch = (path, options) => {
  if (!options?.body?.includes('"stream"')) return before(path, options);
  const body = {...JSON.parse(options.body), logit_bias: {"2": -100}, max_tokens: 4000};
  return before(path, {...options, body: JSON.stringify(body)});
};
"""  # the token that ends an answer never comes


class PhoneBrowser:
    """A browser that shows the page."""

    def __init__(self, chrome: Chrome) -> None:
        self.chrome = chrome

    def open(self, address: str) -> None:
        self.chrome.get("about:blank")  # so that a new part behind # loads the page anew
        self.chrome.get(address)

    def forget_everything(self) -> None:
        """Be a device that was never here."""
        self.js("localStorage.clear()")
        self.chrome.execute_cdp_cmd(
            "Storage.clearDataForOrigin", {"origin": self.js("return location.origin"), "storageTypes": "indexeddb"}
        )

    def js(self, script: str, *values: object) -> Any:
        return self.chrome.execute_script(script, *values)

    def part(self, name: str) -> WebElement:
        return self.chrome.find_element(By.ID, name)

    def parts(self, selector: str) -> list[WebElement]:
        return self.chrome.find_elements(By.CSS_SELECTOR, selector)

    def until(self, is_so: Callable[[], object], what: str = "") -> None:
        """Wait until this is so, as a person does."""
        late = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                if is_so():
                    return
            except StaleElementReferenceException:  # it was painted anew
                pass
            assert time.monotonic() < late, what or self.part("talk").text
            time.sleep(0.01)

    def press(self, name: str) -> None:
        self.part(name).click()

    def write(self, text: str, *, send: bool = True) -> None:
        self.part("question").send_keys(text, *([Keys.ENTER] if send else []))

    def join(self, address: str, code: str, name: str) -> None:
        """Scan the picture, and connect."""
        self.open(f"{address}#{code}")
        self.until(self.part("join").is_displayed, "the field for the code is shown")
        device = self.part("device")
        device.clear()
        device.send_keys(name)
        self.press("join-button")
        self.until(self.part("chat").is_displayed, "the chat is shown")
        self.until(lambda: len(self.part("model").text.strip()) > 1, "models are listed")

    @property
    def answers(self) -> list[str]:
        return [body.text for body in self.parts(".answer .body")]

    @property
    def questions(self) -> list[str]:
        return [body.text for body in self.parts(".question .body")]

    def is_writing(self) -> bool:
        return self.part("stop").is_displayed()

    def ask(self, text: str) -> str:
        """Ask, and return the whole answer."""
        before = len(self.answers)
        self.write(text)
        self.until(lambda: len(self.answers) > before and not self.is_writing(), "an answer")
        return self.answers[-1]

    def use_palette(self, palette: str) -> None:
        """Prefer the light or the dark palette, as the phone's settings do."""
        features = [{"name": "prefers-color-scheme", "value": palette}]
        self.chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def picture(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self.chrome.save_screenshot(str(file))

    def complaints(self) -> list[str]:
        """Return what the browser has complained about since the last call, such as a broken policy."""
        entries = self.chrome.get_log("browser")  # type: ignore[no-untyped-call]
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]
