"""The browser that pages are tested in does what a person's does."""

from pathlib import Path

from aiohttp import web
from browser import Browser, NewTab, needs_axe

pytestmark = needs_axe
POLICY = "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'"
PAGE = """<!doctype html><html lang="en"><title>Form</title><main><h1>Form</h1>
<label>Name <input id="name"></label>
<button id="yes" onclick="this.textContent = 'pressed'">Yes</button>
<script>
  let keys = [];
  addEventListener('keydown', e => keys.push(`${e.key} ${e.code} ${e.keyCode}`));
</script></main></html>"""


async def served() -> tuple[web.AppRunner, str]:
    """A page with a form, and how often each cookie was seen."""
    app = web.Application()

    async def form(request: web.Request) -> web.Response:
        visits = int(request.cookies.get("visits", "0")) + 1
        reply = web.Response(text=PAGE, content_type="text/html")
        reply.headers["Content-Security-Policy"] = POLICY
        reply.set_cookie("visits", str(visits))
        return reply

    app.router.add_get("/", form)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    return runner, f"http://{host}:{port}/"


def test_what_axe_finds_is_named_under_the_pages_own_policy(
    browser: Browser, tmp_path: Path
) -> None:
    async def visit(new_tab: NewTab) -> list[list[str]]:
        runner, url = await served()
        tab = await new_tab(url)
        found = [await tab.axe()]
        await tab.value(
            "document.querySelector('label').replaceWith(document.querySelector('input'))"
        )
        found.append(await tab.axe())
        await tab.screenshot(tmp_path / "form.png")
        await tab.screen(375)
        await tab.screenshot(tmp_path / "phone.png", whole=True)
        assert tab.complaints() == []
        await runner.cleanup()
        return found

    clean, faulty = browser.run(visit)
    assert clean == []
    assert [line.split(":")[0] for line in faulty] == ["label (critical)"]
    for name in ("form.png", "phone.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
