"""A real browser, driven through the DevTools protocol."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
needs_browser = pytest.mark.skipif(
    BROWSER is None, reason="needs chromium, which is not installed"
)  # fmt: skip
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--remote-debugging-port=0",
]  # fmt: skip
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
        """Reload until the expression has that value, 20 times at most: a busy browser hands what a
        page keeps to the next one a moment later."""
        for _ in range(20):
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
        done = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    async def enter(self, control: str, value: str) -> None:
        """Give a field or a list a value, as a person does who then leaves it."""
        await self.value(
            f"(() => {{ const e = document.getElementById({json.dumps(control)});"
            f" e.value = {json.dumps(value)}; e.dispatchEvent(new Event('input'));"
            " e.dispatchEvent(new Event('change')); })()"
        )

    async def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if len(key) == 1 and kind == "keyDown" else {}
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, **text)

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


def browse(page: Path, folder: Path, visit: Callable[[Tab], Awaitable[T]]) -> T:
    """What `visit` finds on a page, in a fresh browser whose profile lies in `folder`."""
    profile = folder / "profile"
    command = [str(BROWSER), *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **silent) as browser:  # type: ignore[call-overload]
        try:
            return asyncio.run(_visit(profile, page.as_uri(), visit))
        finally:
            browser.terminate()


async def _visit(profile: Path, url: str, visit: Callable[[Tab], Awaitable[T]]) -> T:
    port = await _port(profile / "DevToolsActivePort")
    async with aiohttp.ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{port}/json/list") as reply:
            targets = await reply.json()
        socket = next(t["webSocketDebuggerUrl"] for t in targets if t["type"] == "page")
        async with session.ws_connect(socket, max_msg_size=0) as connection:
            tab = Tab(connection)
            await tab.open(url)
            return await visit(tab)


async def _port(file: Path) -> int:
    for _ in range(600):
        if file.is_file() and (lines := file.read_text().split()):
            return int(lines[0])
        await asyncio.sleep(0.1)
    raise TimeoutError("the browser did not start")


async def save(tab: Tab, folder: Path) -> Path:
    """Press the button and wait for the file."""
    await tab.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    await tab.value("document.getElementById('save').click()")
    for _ in range(600):
        if found := list(folder.glob("*.csv")):
            return found[0]
        await asyncio.sleep(0.1)
    raise TimeoutError("nothing was saved")
