"""The browsers of this computer without a window, as large as a phone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from selenium.webdriver import Chrome, ChromeOptions, ChromeService

from tests.web.firefox import started
from tests.web.phone_browser import ChromePhone, FirefoxPhone, PhoneBrowser

CHROMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FIREFOXES = ("firefox-esr", "firefox")
WIDTH, HEIGHT = 390, 844


@pytest.fixture(scope="module", params=["chromium", "firefox"])
def browser(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PhoneBrowser]:
    """A browser with a profile of its own, which knows nobody's certificate and takes any, as a person once does."""
    if request.param == "firefox":
        program = next((path for name in FIREFOXES if (path := shutil.which(name))), None)
        if program is None:
            pytest.skip("Firefox is not installed here")
        with started(program, tmp_path_factory.mktemp("firefox")) as firefox:
            yield FirefoxPhone(firefox, WIDTH, HEIGHT)
    else:
        with _chrome() as chrome:
            yield ChromePhone(chrome)


@contextmanager
def _chrome() -> Iterator[Chrome]:
    program = next((path for name in CHROMES if (path := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("neither Chromium nor Chrome is installed here, or their driver is missing")
    options = ChromeOptions()
    options.binary_location = program
    options.accept_insecure_certs = True
    options.add_argument("--headless=new")
    options.add_argument("--no-sandbox")  # it shows only our page
    options.add_argument("--disable-dev-shm-usage")
    options.add_argument("--lang=en")
    metrics = {"width": WIDTH, "height": HEIGHT, "pixelRatio": 2.0}
    options.add_experimental_option("mobileEmulation", {"deviceMetrics": metrics})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = Chrome(options=options, service=ChromeService(driver))
    try:
        yield chrome
    finally:
        chrome.quit()
