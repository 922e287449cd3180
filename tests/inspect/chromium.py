"""A headless Chromium, spoken to over the pipe of its debugging protocol."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time
from pathlib import Path

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--remote-debugging-pipe",
    "about:blank",
)


class BrowserError(Exception):
    """The browser died, did not answer, or a script in the page failed."""


class Browser:
    """One browser with one page."""

    def __init__(self, folder: Path) -> None:
        assert PROGRAM is not None
        read, self._write = os.pipe()
        self._read, write = os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (read, write)]
        null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
        pipes = [(os.POSIX_SPAWN_DUP2, end, fd) for end, fd in zip(ends, (3, 4), strict=True)]
        command = [PROGRAM, f"--user-data-dir={folder}", *_OPTIONS]
        self._process = os.posix_spawn(PROGRAM, command, os.environ, file_actions=[*null, *pipes])
        for end in (read, write, *ends):
            os.close(end)
        self._buffer = b""
        self._serial = 0
        self._session = ""
        self.events: list[dict] = []
        (target, *_) = [
            t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"
        ]
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        os.kill(self._process, signal.SIGTERM)
        os.waitpid(self._process, 0)
        os.close(self._read)
        os.close(self._write)

    def call(self, method: str, **params: object) -> dict:
        """One command and its answer; what comes in between is kept in `events`."""
        self._serial += 1
        serial = self._serial
        message = {"id": serial, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next(120)
            if answer.get("id") == serial:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def _next(self, seconds: float) -> dict:
        end = time.monotonic() + seconds
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], max(0, end - time.monotonic()))[0]:
                raise BrowserError("no answer")
            found = os.read(self._read, 1 << 20)
            if not found:
                raise BrowserError("the browser is gone")
            self._buffer += found
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    # --- the page -----------------------------------------------------------------------------

    def open(self, path: Path, width: int = 1440, height: int = 900, dark: bool = False) -> None:
        """Load a file, and wait until the graph is laid out."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 700,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        self.until("document.documentElement?.dataset.state === 'ready'")

    def do(self, script: str) -> object:
        """The value of an expression in the page."""
        found = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise BrowserError(json.dumps(found["exceptionDetails"])[:800])
        return found["result"].get("value")

    def until(self, script: str, seconds: float = 120) -> object:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not (found := self.do(script)):
            if time.monotonic() > end:
                raise BrowserError(f"never true: {script}; {self.complaints()[:3]}")
            time.sleep(0.02)
        return found

    def settled(self) -> None:
        """Wait for a layout that was asked for."""
        self.until("document.documentElement?.dataset.state === 'ready'")

    def key(self, key: str, text: str | None = None) -> None:
        for kind in ("keyDown", "keyUp"):
            shown = {"text": text or key} if kind == "keyDown" and (text or len(key) == 1) else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **shown)

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def mouse(self, kind: str, x: float, y: float, **more: object) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, selector: str, count: int = 1) -> None:
        """Click in the middle of an element."""
        x, y = self.middle(selector)
        for i in range(1, count + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.mouse(kind, x, y, button="left", clickCount=i)

    def middle(self, selector: str) -> tuple[float, float]:
        box = self.do(
            f"(() => {{ const r = document.querySelector({json.dumps(selector)})"
            ".getBoundingClientRect();"
            " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        return tuple(box)

    def picture(self, path: Path) -> None:
        """A screenshot."""
        found = self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(found["data"]))

    def complaints(self) -> list[str]:
        """Errors of scripts and of the policy since the page was opened."""
        found = []
        for event in self.events:
            params = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(params["exceptionDetails"])[:500])
            elif event["method"] == "Log.entryAdded" and params["entry"]["level"] == "error":
                found.append(params["entry"]["text"])
        return found

    def requests(self) -> list[str]:
        """What the page asked for, other than itself and what it made."""
        urls = [
            e["params"]["request"]["url"]
            for e in self.events
            if e["method"] == "Network.requestWillBeSent"
        ]
        return [u for u in urls if not u.startswith(("file:", "blob:", "data:"))]
