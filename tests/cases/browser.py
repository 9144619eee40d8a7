"""A real browser, driven through the DevTools protocol.

`browse(page, folder, visit)` opens one page in a browser of its own. For several tabs, and for
people who share nothing, the fixture `browser` (in conftest.py) is one browser for a whole module:

    def test_two_people(browser: Browser) -> None:
        async def visit(new_tab: NewTab) -> None:
            ann = await new_tab(url, "ann")
            ben = await new_tab(url, "ben")  # other cookies, other storage
            anns_phone = await new_tab(url, "ann")  # what the first tab of ann keeps
            await asyncio.gather(ann.press("1"), ben.press("2"))
        browser.run(visit)
"""

import asyncio
import base64
import json
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
needs_browser = pytest.mark.skipif(
    BROWSER is None, reason="needs chromium, which is not installed"
)  # fmt: skip
# Only axe.min.js is used: the package itself needs playwright, which is not installed.
AXE = find_spec("axe_playwright_python")
needs_axe = pytest.mark.skipif(
    BROWSER is None or AXE is None, reason="needs chromium and axe-playwright-python (make test)"
)
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--remote-debugging-port=0",
]  # fmt: skip
KEYS = {
    "Enter": ("Enter", 13), "Tab": ("Tab", 9), " ": ("Space", 32), "Escape": ("Escape", 27),
    "Backspace": ("Backspace", 8), "ArrowLeft": ("ArrowLeft", 37), "ArrowUp": ("ArrowUp", 38),
    "ArrowRight": ("ArrowRight", 39), "ArrowDown": ("ArrowDown", 40),
}  # fmt: skip
T = TypeVar("T")


class Tab:
    """One tab and everything that happened in it."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.events: list[dict[str, Any]] = []
        self.number = 0

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        self.number += 1
        await self.socket.send_json({"id": self.number, "method": method, "params": params})
        while True:
            message = await self.socket.receive_json(timeout=60)
            if message.get("id") == self.number:
                assert "error" not in message, message
                return dict(message["result"])
            self.events.append(message)

    async def open(self, url: str) -> None:
        """Go to a page, the same one again too, and wait until it is loaded."""
        for domain in ("Page", "Network", "Runtime", "Log"):
            await self.call(f"{domain}.enable")
        before = len(self.events)
        await self.call("Page.navigate", url=url)
        await self.until("Page.loadEventFired", before)

    async def reload(self, expression: str, value: str) -> None:
        """Reload until the expression has that value, 100 times at most: a busy browser hands what
        a page keeps to the next one a moment later."""
        for _ in range(100):
            before = len(self.events)
            await self.call("Page.reload")
            await self.until("Page.loadEventFired", before)
            if await self.value(expression) == value:
                return
            await asyncio.sleep(0.2)

    async def until(self, method: str, since: int = 0) -> None:
        """Wait for an event, counted from the place `since` in the events."""
        while not any(e["method"] == method for e in self.events[since:]):
            self.events.append(await self.socket.receive_json(timeout=60))

    async def value(self, expression: str) -> Any:
        """What the expression, or the promise that it is, has as its value."""
        done = await self._evaluated(expression)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    async def _evaluated(self, expression: str) -> dict[str, Any]:
        asked = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        return await self.call("Runtime.evaluate", **asked)

    async def sees(self, expression: str, value: Any = True, seconds: float = 15) -> None:
        """Wait until the expression has that value; while a page loads, it may throw."""
        end = asyncio.get_running_loop().time() + seconds
        while (found := (await self._evaluated(expression))["result"].get("value")) != value:
            assert asyncio.get_running_loop().time() < end, (expression, found)
            await asyncio.sleep(0.02)

    async def enter(self, control: str, value: str) -> None:
        """Give a field or a list a value, as a person does who then leaves it."""
        await self.value(
            f"(() => {{ const e = document.getElementById({json.dumps(control)});"
            f" e.value = {json.dumps(value)}; e.dispatchEvent(new Event('input'));"
            " e.dispatchEvent(new Event('change')); })()"
        )

    async def press(self, key: str) -> None:
        """Press and release a key, or `Shift+Tab`, as a person does: Tab moves the focus, Enter and
        the space bar press buttons."""
        shift = key.startswith("Shift+")
        key = key.removeprefix("Shift+")
        letter = f"Digit{key}" if key.isdigit() else f"Key{key.upper()}"
        code, number = KEYS.get(key) or (letter, ord(key.upper()))
        text = "\r" if key == "Enter" else key if len(key) == 1 else None
        event = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": shift * 8}
        down = {**event, "text": text} if text else event
        await self.call("Input.dispatchKeyEvent", type="keyDown", **down)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    async def focused(self) -> str:
        """The id, name or tag of the element that has the focus."""
        return str(await self.value("(e => e.id || e.name || e.tagName)(document.activeElement)"))

    async def offline(self, lost: bool) -> None:
        """Lose the connection, or have it again."""
        limits = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        await self.call("Network.emulateNetworkConditions", offline=lost, **limits)

    async def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Write what the window shows, or the `whole` page, as PNG."""
        area: dict[str, Any] = {}
        if whole:
            size = (await self.call("Page.getLayoutMetrics"))["cssContentSize"]
            area = {"clip": {**size, "scale": 1}, "captureBeyondViewport": True}
        taken = await self.call("Page.captureScreenshot", **area)
        path.write_bytes(base64.b64decode(taken["data"]))

    async def axe(self) -> list[str]:
        """What an accessibility check (axe-core's rules for WCAG 2.2 A and AA and good practice)
        finds wrong, a line per rule and element. The page's policy stays as strict as it is."""
        assert AXE is not None
        script = Path(str(AXE.origin)).with_name("axe.min.js").read_text("utf-8")
        await self.value(f"{script}; 0")
        found = await self.value(
            "axe.run(document, {rules: {'target-size': {enabled: true}}}).then(r =>"
            " r.violations.flatMap(v => v.nodes.map(n =>"
            " `${v.id} (${n.impact}): ${v.help}: ${n.target}: ${n.html}`)))"
        )
        return list(found)

    async def screen(self, width: int) -> None:
        """Look at the page through a window of that width, under 500 on a telephone."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        await self.call("Emulation.setDeviceMetricsOverride", **size)

    async def scheme(self, name: str, media: str = "") -> None:
        """`light` or `dark`, on a screen or in `print`."""
        chosen = {"name": "prefers-color-scheme", "value": name}
        await self.call("Emulation.setEmulatedMedia", media=media, features=[chosen])

    def requests(self) -> list[str]:
        sent = [e for e in self.events if e["method"] == "Network.requestWillBeSent"]
        return [e["params"]["request"]["url"] for e in sent]

    def complaints(self) -> list[dict[str, Any]]:
        kinds = ("Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening")
        return [e for e in self.events if e["method"] in kinds]


# A new tab at an address; tabs of one profile share cookies and storage, "" is the browser's own.
NewTab = Callable[..., Awaitable[Tab]]


@dataclass(frozen=True)
class Browser:
    """A running browser, by the port at which it listens for the DevTools protocol."""

    port: int

    def run(self, visit: Callable[[NewTab], Awaitable[T]]) -> T:
        """What `visit` returns; its tabs and their profiles are closed afterwards."""

        async def visited() -> T:
            async with self.tabs() as new_tab:
                return await visit(new_tab)

        return asyncio.run(visited())

    @asynccontextmanager
    async def tabs(self) -> AsyncIterator[NewTab]:
        """Open tabs with `await new_tab(url, profile)`; all are closed at the end."""
        async with aiohttp.ClientSession(f"http://127.0.0.1:{self.port}") as session:
            async with session.get("/json/version") as reply:
                address = (await reply.json())["webSocketDebuggerUrl"]
            async with session.ws_connect(address, max_msg_size=0) as connection:
                whole = Tab(connection)
                profiles: dict[str, dict[str, str]] = {"": {}}
                opened: list[str] = []

                async def new_tab(url: str = "", profile: str = "") -> Tab:
                    if profile not in profiles:
                        profiles[profile] = await whole.call(
                            "Target.createBrowserContext", disposeOnDetach=True
                        )
                    made = await whole.call(
                        "Target.createTarget", url="about:blank", **profiles[profile]
                    )
                    opened.append(made["targetId"])
                    tab = Tab(
                        await session.ws_connect(f"/devtools/page/{opened[-1]}", max_msg_size=0)
                    )
                    if url:
                        await tab.open(url)
                    return tab

                try:
                    yield new_tab
                finally:
                    for target in opened:
                        await whole.call("Target.closeTarget", targetId=target)


@contextmanager
def started(folder: Path) -> Iterator[Browser]:
    """A fresh browser, whose own profile lies in `folder`."""
    profile = folder / "profile"
    command = [str(BROWSER), *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **silent) as browser:  # type: ignore[call-overload]
        try:
            yield Browser(_port(profile / "DevToolsActivePort"))
        finally:
            browser.terminate()


def browse(page: Path | str, folder: Path, visit: Callable[[Tab], Awaitable[T]]) -> T:
    """What `visit` finds on a page, in a fresh browser whose profile lies in `folder`."""
    url = page if isinstance(page, str) else page.as_uri()

    async def opened(new_tab: NewTab) -> T:
        return await visit(await new_tab(url))

    with started(folder) as browser:
        return browser.run(opened)


def _port(file: Path) -> int:
    for _ in range(3000):
        if file.is_file() and (lines := file.read_text().split()):
            return int(lines[0])
        time.sleep(0.02)
    raise TimeoutError("the browser did not start")


async def save(tab: Tab, folder: Path, name: str = "*.csv") -> Path:
    """Press the button and wait for the file."""
    await tab.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    await tab.value("document.getElementById('save').click()")
    for _ in range(600):
        if found := list(folder.glob(name)):
            return found[0]
        await asyncio.sleep(0.1)
    raise TimeoutError("nothing was saved")
