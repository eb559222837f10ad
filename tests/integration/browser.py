"""Chromium as the tests drive it: Debian's browser and driver through selenium; nothing is downloaded."""

from __future__ import annotations

import base64
import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from scratch import HINT, TOOLS

AXE = TOOLS / "node/node_modules/axe-core/axe.min.js"
WIDE, NARROW = (1280, 900), (390, 844)


def _webdriver() -> Any:
    """selenium, from the tests' own environment or from that of the other tools."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    with suppress(ImportError):
        import selenium.webdriver

        return selenium.webdriver
    sys.path.append(str(TOOLS / "venv/lib" / version / "site-packages"))
    return pytest.importorskip("selenium.webdriver", reason=f"selenium is not installed; {HINT}")


def _program(*names: str) -> str:
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip(f"{names[0]} is not installed; {HINT}")
    return found


class Browser:
    """A Chromium without a window."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def cdp(self, command: str, **arguments: object) -> Any:
        return self.driver.execute_cdp_cmd(command, arguments)

    def js(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def look(self, size: tuple[int, int] = WIDE, scheme: str = "light", media: str = "", scale: float = 1) -> None:
        """Be a screen of this size, with this colour scheme, or paper."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.cdp("Emulation.setEmulatedMedia", media=media, features=features)
        self.cdp("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=scale,
                 mobile=size[0] < 600)  # fmt: skip

    def open(self, page: Path, fragment: str = "") -> None:
        self.driver.get("about:blank")
        self.driver.get(page.as_uri() + fragment)

    def keys(self, text: str) -> None:
        for key in text:
            for kind in ("keyDown", "keyUp"):
                self.cdp("Input.dispatchKeyEvent", type=kind, key=key, text=key if kind == "keyDown" else "")

    def requests(self) -> list[str]:
        """The address of every request since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]

    def complaints(self) -> list[str]:
        """What the console holds: errors of the script, and what the policy blocked."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def picture(self, path: Path, height: int | None = None) -> Path:
        """The page as PNG, from its top, down to its end or for this height."""
        size = self.cdp("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(height or 8_000, size["height"]), "scale": 1}
        data = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
        path.write_bytes(base64.b64decode(data))
        return path

    def axe(self) -> list[str]:
        """What axe-core finds wrong, by rule and element."""
        if not AXE.exists():
            pytest.skip(f"axe-core is not installed; {HINT}")
        self.js(AXE.read_text(encoding="utf-8"))
        found = self.driver.execute_async_script(
            "const done = arguments[0]; axe.run().then(r => done(r.violations), e => done([{id: String(e), nodes: []}]))"
        )
        return [
            f"{one['id']}: {node['html'][:200]}: {node.get('failureSummary', '')}"
            for one in found
            for node in one["nodes"] or [{"html": ""}]
        ]


@contextmanager
def started() -> Iterator[Browser]:
    """A browser, ended afterwards; the test is skipped where there is none."""
    chromium, driver = _program("chromium", "chromium-browser"), _program("chromedriver")
    webdriver = _webdriver()
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--disable-lcd-text",
    ):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield Browser(browser)
    finally:
        browser.quit()
