"""Headless Chromium for tests of pages, driven through its debugging pipe."""

import json
import os
import select
import shutil
import subprocess
from pathlib import Path

CHROMIUM = shutil.which("chromium")
"""None where it is not installed."""
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
TIMEOUT = 30
"""Seconds that Chromium may be silent before a test gives up."""


def script(name):
    """The expression of a file of this folder."""
    return Path(__file__).with_name(f"{name}.js").read_text("utf-8")


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
            ready, _, _ = select.select([self._read], [], [], TIMEOUT)
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
        """The value of an expression, or of what it promises."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
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
