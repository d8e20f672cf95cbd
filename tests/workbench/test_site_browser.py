"""The static pages in headless Chromium: no errors, readable, and used from the keyboard."""

import json
import os
import select
import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = "/usr/bin/chromium"
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "ArrowRight": 39, " ": 32}
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)
PATIENCE = 30
"""Seconds that Chromium may be silent before a test gives up."""


class Browser:
    """Headless Chromium, driven through its debugging pipe."""

    def __init__(self, profile):
        command_read, command_write = os.pipe()
        reply_read, reply_write = os.pipe()
        self._process = subprocess.Popen(
            [
                "/bin/bash",
                "-c",
                f'exec "$@" 3<&{command_read} 4>&{reply_write}',
                "bash",
                CHROMIUM,
                *FLAGS,
                f"--user-data-dir={profile}",
                "about:blank",
            ],
            pass_fds=(command_read, reply_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(command_read)
        os.close(reply_write)
        self._write, self._read, self._buffer = command_write, reply_read, b""
        self._session, self._number, self.events = None, 0, []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _message(self):
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], PATIENCE)
            assert ready, "Chromium says nothing"
            part = os.read(self._read, 1 << 20)
            assert part, "Chromium has gone"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, **params):
        self._number += 1
        request = {"id": self._number, "method": method, "params": params}
        request |= {"sessionId": self._session} if self._session else {}
        os.write(self._write, json.dumps(request).encode() + b"\0")
        while (message := self._message()).get("id") != request["id"]:
            self.events.append(message)
        assert "error" not in message, message
        return message["result"]

    def open(self, path, width=1200, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        # about:blank between: a change of the fragment alone would load nothing.
        for url in ("about:blank", path.as_uri()):
            self.events.clear()
            self.call("Page.navigate", url=url)
            self.loaded()

    def loaded(self):
        """Wait for a page to be loaded, unless that has happened since the events were cleared."""
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._message())

    def js(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def press(self, key):
        event = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS.get(key, 0)}
        event |= {"text": "\r" if key == "Enter" else key} if len(key) == 1 or key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **event)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key)

    def faults(self):
        """Errors on the console, and requests for anything but files."""
        found = []
        for event in self.events:
            params = event.get("params", {})
            url = params.get("request", {}).get("url", "file://")
            if (
                event.get("method") == "Runtime.exceptionThrown"
                or params.get("type") in ("error", "assert")
                or params.get("entry", {}).get("level") == "error"
                or not url.startswith(("file://", "data:"))
            ):
                found.append(event)
        return found

    def close(self):
        self._session = None
        self.call("Browser.close")
        self._process.wait(30)
        os.close(self._write)
        os.close(self._read)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if not Path(CHROMIUM).exists():
        pytest.skip(f"{CHROMIUM} is missing: apt-get install chromium")
    profile = tmp_path_factory.mktemp("chromium")
    browser = Browser(profile)
    yield browser
    browser.close()
    shutil.rmtree(profile, ignore_errors=True)


@pytest.mark.parametrize("width", [1200, 400])
def test_no_page_has_an_error_or_is_wider_than_the_window(site, browser, width):
    for path in sorted((site[0] / "out").rglob("*.html")):
        browser.open(path, width)
        assert browser.js("innerWidth") == width
        assert browser.js("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), path
        assert not browser.faults(), path
    assert browser.js("document.title")


READABLE = """(() => {
  const parse = (color) => (color.match(/[\\d.]+/g) || []).map(Number);
  const linear = (c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const bad = [];
  let seen = 0;
  for (const element of document.querySelectorAll("main *, header *, footer")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const style = getComputedStyle(element);
    if (!own || element.closest("svg, .unseen, noscript, .skip, option") || !element.getClientRects().length) continue;
    seen += 1;
    let behind = element;
    while (behind && (parse(getComputedStyle(behind).backgroundColor)[3] ?? 1) === 0) behind = behind.parentElement;
    const pair = [parse(style.color), parse(behind ? getComputedStyle(behind).backgroundColor : "rgb(255, 255, 255)")];
    const [low, high] = pair.map(light).sort((x, y) => x - y);
    const ratio = (high + 0.05) / (low + 0.05);
    const size = parseFloat(style.fontSize);
    if (ratio < 4.5 || size < 10) bad.push([element.outerHTML.slice(0, 80), ratio, size]);
  }
  return seen > 50 ? bad.slice(0, 5) : ["too few texts", seen];
})()"""


@pytest.mark.parametrize("dark", [False, True])
def test_texts_are_large_and_have_contrast(site, browser, dark):
    out = site[0] / "out"
    for path in (out / "index.html", *sorted((out / "schemes").glob("4x4x4*.html"))):
        browser.open(path, 400, dark)
        assert browser.js(READABLE) == [], path


def test_the_list_is_used_from_the_keyboard_alone(site, browser):
    browser.open(site[0] / "out" / "index.html")
    shown = "document.querySelectorAll('#list tbody tr').length"
    focus = "document.activeElement.id || document.activeElement.textContent"
    assert browser.js(shown) == site[1].schemes
    browser.press("Tab")
    assert browser.js(focus) == "Skip to the content"
    browser.press("/")
    assert browser.js(focus) == "q"
    for key in "eca-st":
        browser.press(key)
    assert browser.js("document.getElementById('count').textContent") == f"2 of {site[1].schemes} schemes."
    assert "q=eca-st" in browser.js("location.hash")
    browser.press("ArrowDown")
    browser.press("ArrowDown")
    second = browser.js("document.querySelectorAll('#list tbody a')[1].textContent")
    assert browser.js(focus) == second
    assert browser.js("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.press("ArrowUp")
    browser.press("ArrowUp")
    assert browser.js(focus) == "q"
    browser.press("Escape")
    assert browser.js(shown) == site[1].schemes
    browser.press("Tab")
    browser.press("Tab")
    browser.press("Z")  # a select takes the first letter of an option
    rings = "[...new Set([...document.querySelectorAll('#list tbody tr')].map((row) => row.cells[2].textContent))]"
    assert browser.js("document.activeElement.id") == "ring"
    assert browser.js(rings) == ["Z"]
    browser.press("Tab")
    browser.press(" ")
    assert browser.js("document.getElementById('best').checked")
    assert 0 < browser.js(shown) < site[1].schemes
    browser.press("/")
    browser.press("ArrowDown")
    wanted = browser.js("document.activeElement.href")
    assert not browser.faults()
    browser.events.clear()
    browser.press("Enter")
    browser.loaded()
    assert browser.js("location.href") == wanted
    assert not browser.faults()


def test_sorting_and_rings_are_switched_from_the_keyboard(site, browser):
    browser.open(site[0] / "out" / "index.html")
    browser.js("document.querySelectorAll('#list thead button')[3].focus()")
    ranks = "[...document.querySelectorAll('#list tbody tr')].map((row) => Number(row.cells[3].textContent))"
    browser.press("Enter")
    assert browser.js(ranks) == sorted(browser.js(ranks))
    browser.press("Enter")
    assert browser.js(ranks) == sorted(browser.js(ranks), reverse=True)
    assert browser.js("document.querySelectorAll('#list th')[3].ariaSort") == "descending"
    browser.js("document.getElementById('ring-0').focus()")
    visible = "[...document.querySelectorAll('.slabs')].map((map) => getComputedStyle(map).display)"
    assert browser.js(visible) == ["flex", "none", "none"]
    browser.press("ArrowRight")
    assert browser.js(visible) == ["none", "flex", "none"]


def test_an_address_keeps_the_filter(site, browser):
    browser.open(site[0] / "out" / "index.html")
    browser.call("Page.navigate", url=(site[0] / "out" / "index.html").as_uri() + "#?q=strassen&ring=Z2")
    browser.js("new Promise((resolve) => setTimeout(resolve, 50))")
    assert browser.js("document.getElementById('count').textContent").startswith("0 of ")


def test_a_scheme_is_verified_in_the_page_from_the_keyboard(site, browser):
    browser.open(site[0] / "out" / "verify.html", 400)
    verdict = "document.getElementById('verdict').textContent"
    assert browser.js(verdict) == ""
    browser.js("document.getElementById('text').focus()")
    browser.press("Tab")
    assert browser.js("document.activeElement.type") == "submit"
    browser.press("Enter")
    assert browser.js(verdict).startswith(
        "OK 2x2x2 rank 7 over Z (exact, 64 equations) (equations, third factor by C, "
    )
    browser.js("document.getElementById('text').value = document.getElementById('text').value.replace('m3 + m5', 'm3')")
    browser.press("Enter")
    assert browser.js(verdict).startswith(
        "FAIL 2x2x2 rank 7 over Z: 2 of 64 equations fail; coefficient of A[1,1] B[2,2]"
    )
    browser.js("document.getElementById('text').value = 'nothing'")
    browser.press("Enter")
    assert browser.js(verdict).startswith("Not read: line 1")
    assert not browser.faults()
