"""A page in headless chromium, driven through the DevTools protocol, with the network off."""

import json
import os
import shutil
import subprocess
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), ""
)
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # the sandbox cannot be had as root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--remote-debugging-port=0",
)
OWN_SCHEMES = ("file:", "data:", "blob:", "about:")
START_S, ANSWER_S = 60.0, 60.0


class Page:
    """One tab. `errors`: what it said on the console and what was thrown; `requests`: what it wanted of the network."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket, self._number, self._session = socket, 0, ""
        self.errors: list[str] = []
        self.requests: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """A command and its answer; events that come in between are noted."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        self._socket.send(json.dumps(message | ({"sessionId": self._session} if self._session else {})))
        while True:
            said = json.loads(self._socket.recv(timeout=ANSWER_S))
            if said.get("id") == self._number:
                if "error" in said:
                    raise RuntimeError(f"{method}: {said['error']}")
                return said["result"]
            self._note(said.get("method", ""), said.get("params", {}))

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(str([part.get("value", part.get("description")) for part in params["args"]]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not params["request"]["url"].startswith(OWN_SCHEMES):
            self.requests.append(params["request"]["url"])

    def size(self, width: int, height: int) -> None:
        """The window, in CSS pixels."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def open(self, path: Path) -> None:
        """Load a file from disk."""
        self.send("Page.navigate", url=path.resolve().as_uri())

    def value(self, expression: str) -> Any:
        """What JavaScript makes of an expression; a promise is waited for."""
        found = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {found['exceptionDetails'].get('exception', {}).get('description')}")
        return found["result"].get("value")

    def until(self, expression: str, seconds: float = 20.0) -> Any:
        """The first value of an expression that is true; TimeoutError where none comes."""
        return patiently(lambda: self.value(expression), seconds, expression)

    def drag(self, path: list[tuple[float, float]]) -> None:
        """Press the mouse at the first point, move it through the others and let it go."""
        self._mouse("mousePressed", *path[0])
        for point in path[1:]:
            self._mouse("mouseMoved", *point)
        self._mouse("mouseReleased", *path[-1])

    def click(self, x: float, y: float) -> None:
        """Press and let go at a point of the window."""
        self.drag([(x, y)])

    def _mouse(self, kind: str, x: float, y: float) -> None:
        held = 0 if kind == "mouseReleased" else 1
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=held, clickCount=1)

    def key(self, key: str, code: int, text: str = "") -> None:
        """Press and let go of a key, such as ("Enter", 13, "\\r")."""
        pressed = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.send("Input.dispatchKeyEvent", type="keyDown", **pressed, **({"text": text} if text else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", **pressed)

    def screenshot(self, path: Path) -> None:
        """The window as PNG."""
        path.write_bytes(b64decode(self.send("Page.captureScreenshot", format="png")["data"]))

    def downloads_to(self, folder: Path) -> None:
        """Let downloads go to a folder, without a question."""
        self.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))


def patiently(question: Callable[[], Any], seconds: float, what: str) -> Any:
    """The first true answer; TimeoutError where none comes."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if answer := question():
            return answer
        time.sleep(0.02)
    raise TimeoutError(f"{what} was not true within {seconds} s")


@contextmanager
def browser(folder: Path) -> Iterator[Page]:
    """A fresh chromium that keeps its profile in `folder`, and its one page."""
    profile = folder / "profile"
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    env, quiet = {**os.environ, "HOME": str(folder)}, subprocess.DEVNULL
    process = subprocess.Popen(command, env=env, stdout=quiet, stderr=quiet)
    try:
        port = profile / "DevToolsActivePort"
        address = patiently(lambda: port.exists() and port.read_text().split(), START_S, "chromium's port")
        with connect(f"ws://127.0.0.1:{address[0]}{address[1]}", max_size=None, proxy=None) as socket:
            yield Page(socket)
    finally:
        process.terminate()
        process.wait(START_S)
