"""A browser of this computer without a window, as large as a phone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome, ChromeOptions, ChromeService

from tests.web.phone_browser import PhoneBrowser

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SIZE = {"width": 390, "height": 844, "pixelRatio": 2.0}


@pytest.fixture(scope="module")
def browser() -> Iterator[PhoneBrowser]:
    """Chromium with a profile of its own, which knows nobody's certificate and takes any, as a person once does."""
    program = next((path for name in BROWSERS if (path := shutil.which(name))), None)
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
    options.add_experimental_option("mobileEmulation", {"deviceMetrics": SIZE})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = Chrome(options=options, service=ChromeService(driver))
    try:
        yield PhoneBrowser(chrome)
    finally:
        chrome.quit()
