"""The page as a person uses it: what they press, and what they see."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import Chrome, Remote
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from tests.web.firefox import Firefox

WAIT_SECONDS = 40.0
LONG_ANSWERS = """
const before = window.fetch;
window.fetch = (path, options) => {
  if (!options?.body?.includes('"stream"')) return before(path, options);
  const body = {...JSON.parse(options.body), logit_bias: {"2": -100}, max_tokens: 4000};
  return before(path, {...options, body: JSON.stringify(body)});
};
"""  # the token that ends an answer never comes


class PhoneBrowser(ABC):
    """A browser that shows the page."""

    def __init__(self, driver: Remote) -> None:
        self.driver = driver

    @abstractmethod
    def forget_everything(self) -> None:
        """Be a device that was never here."""

    @abstractmethod
    def use_palette(self, palette: str) -> None:
        """Prefer the light or the dark palette, as the phone's settings do."""

    @abstractmethod
    def use_language(self, language: str) -> None:
        """Prefer a language, as the phone's settings do."""

    @abstractmethod
    def complaints(self) -> list[str]:
        """Return what the browser has complained about since the last call, such as a broken policy."""

    def open(self, address: str) -> None:
        self.driver.get("about:blank")  # so that a new part behind # loads the page anew
        self.driver.get(address)

    def js(self, script: str, *values: object) -> Any:
        return self.driver.execute_script(script, *values)

    def part(self, name: str) -> WebElement:
        return self.driver.find_element(By.ID, name)

    def parts(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

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

    def picture(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(file))


class ChromePhone(PhoneBrowser):
    """Chromium or Chrome."""

    def __init__(self, chrome: Chrome) -> None:
        super().__init__(chrome)
        self._chrome = chrome

    def forget_everything(self) -> None:
        self.js("localStorage.clear()")
        origin = self.js("return location.origin")
        self._cdp("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "indexeddb"})

    def use_palette(self, palette: str) -> None:
        self._cdp("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": palette}]})

    def use_language(self, language: str) -> None:
        self._cdp("Emulation.setUserAgentOverride", {"userAgent": "Mozilla/5.0", "acceptLanguage": language})

    def complaints(self) -> list[str]:
        entries = self._chrome.get_log("browser")  # type: ignore[no-untyped-call]
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    def _cdp(self, command: str, parameters: dict[str, object]) -> None:
        self._chrome.execute_cdp_cmd(command, parameters)


NARROW = """
const [width, height, done] = arguments;
const { style } = Services.wm.getMostRecentWindow("navigator:browser").gBrowser.selectedBrowser;
Object.assign(style, { maxWidth: `${width}px`, maxHeight: `${height}px` });
done();
"""  # no window of Firefox is as narrow as a phone
SET = """
const [name, value, done] = arguments;
if (typeof value === "number") Services.prefs.setIntPref(name, value);
else Services.prefs.setCharPref(name, value);
done();
"""
FORGET = """
const [done] = arguments;
const { CLEAR_DOM_STORAGES } = Ci.nsIClearDataService;
Services.clearData.deleteData(CLEAR_DOM_STORAGES, () => done());
"""
COMPLAINTS = """
const [done] = arguments;
const found = Services.console.getMessageArray().filter((entry) =>
  entry instanceof Ci.nsIScriptError && /^https/.test(entry.sourceName));
Services.console.reset();
done(found.map((entry) => entry.errorMessage));
"""
PALETTES = {"dark": 0, "light": 1}


class FirefoxPhone(PhoneBrowser):
    """Firefox, with a page as large as that of a phone."""

    def __init__(self, firefox: Firefox, width: int, height: int) -> None:
        super().__init__(firefox)
        self._firefox = firefox
        firefox.in_browser(NARROW, width, height)

    def forget_everything(self) -> None:
        self.driver.get("about:blank")
        self._firefox.in_browser(FORGET)

    def use_palette(self, palette: str) -> None:
        self._firefox.in_browser(SET, "layout.css.prefers-color-scheme.content-override", PALETTES[palette])
        self.until(lambda: self.js(f"return matchMedia('(prefers-color-scheme: {palette})').matches"), palette)

    def use_language(self, language: str) -> None:
        self._firefox.in_browser(SET, "intl.accept_languages", language)

    def complaints(self) -> list[str]:
        return list(self._firefox.in_browser(COMPLAINTS))
