"""A browser for the pages: headless Chromium, with a profile of its own that is thrown away."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SWITCHES = (
    "--headless",
    "--no-sandbox",  # the tests may run as root, and open only pages of our own
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1100,1400",
)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A selenium driver. Without a browser the test is skipped, but on CI it fails."""
    driver_path = shutil.which("chromedriver")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not driver_path or not program:
        missing = "chromedriver" if program else "Chromium"
        if os.environ.get("CI"):
            pytest.fail(f"{missing} is missing: apt install chromium chromium-driver")
        pytest.skip(f"{missing} is missing; on Debian: apt install chromium chromium-driver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = program
    for switch in (*SWITCHES, f"--user-data-dir={tmp_path_factory.mktemp('browser')}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(driver_path))
    driver.set_page_load_timeout(60)
    yield driver
    driver.quit()


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Any:
    """Opens HTML in the browser; returns the driver, with the console's lines so far thrown away."""

    def show(html: str) -> Any:
        path = tmp_path / "page.html"
        path.write_text(html, encoding="utf-8")
        browser.get_log("browser")
        browser.get(path.as_uri())
        return browser

    return show
