"""Markdown in answers and guidelines: what is rendered, what stays, and what never runs."""

import json
import time
from pathlib import Path

import pytest
from annotate_case import served
from browser import Browser, NewTab, Tab, needs_axe, needs_browser
from page_case import ARABIC, SAVED, TITLE, click, fits, labels, preference, press, signed_in, study

from judgebench.annotation.screens import Screen, Section
from judgebench.annotation.sheet import sheet
from judgebench.annotation.store import open_store
from judgebench.people.markdown import markdown_tree

ANSWER = f"""# What to do

Take **one** tablet, see [the leaflet](https://leaflet.example/a) and ![a pill](https://x.example/p.png).

| Drug | Dose | When | With | Not with | Until |
|---|--:|---|---|---|---|
| Ibuprofen | 400 mg | morning<br>evening | food | aspirin and other painkillers | Sunday |

1. Rest
   - in the dark
2. Drink

> {ARABIC}

```python
if 1 < 2: print("a line of code that is longer than a telephone is wide, which wraps")
```

{ARABIC}
---
[1]: https://note.example
"""
SHOWN = "document.getElementById('texts').innerText"
TAGS = "[...document.querySelectorAll('#texts .marked *')].map(e => e.localName)"

# After the usual lists: OWASP's evasion sheet, cure53's Markdown cases, markdown-it's own tests.
ATTACKS = (
    "<script>alert(1)</script>", "<img src=//evil.example/a onerror=alert(1)>",
    "<svg><script>alert(1)</script></svg>", "<svg/onload=alert(1)>", "<body onload=alert(1)>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<iframe src=\"javascript:alert(1)\"></iframe>", "<object data=data:text/html,x></object>",
    "<form action=//evil.example><button>", "<base href=//evil.example/>",
    "<meta http-equiv=refresh content=\"0;url=//evil.example\">",
    "<link rel=stylesheet href=//evil.example/a.css>", "<style>*{background:url(//evil.example)}",
    "<details open ontoggle=alert(1)>", "<video><source onerror=alert(1)></video>",
    "<input autofocus onfocus=alert(1)>", "<a href=javascript:alert(1)>x</a>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>", "</script><script>alert(1)</script>",
    "<!--<img src=\"--><img src=x onerror=alert(1)//\">", "<![CDATA[<img onerror=alert(1)>]]>",
    "<template><img src=x onerror=alert(1)></template>", "<xss style=\"a:expression(alert(1))\">",
    "&lt;script&gt;alert(1)&lt;/script&gt;", "&#60;img src=x onerror=alert(1)&#62;",
    "[a](javascript:alert(1))", "[a](JaVaScRiPt:alert(1))", "[a](javascript&colon;alert(1))",
    "[a](&#106;avascript:alert(1))", "[a](java\tscript:alert(1))", "[a](\x01javascript:alert(1))",
    "[a](<javascript:alert(1)>)", "[a](vbscript:msgbox(1))", "[a](file:///etc/passwd)",
    "[a](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)", "<javascript:alert(1)>",
    "[a](//evil.example \"onmouseover=alert(1)\")", "[a]: javascript:alert(1)\n\n[a]",
    "![a](https://evil.example/a.png)", "![a](javascript:alert(1))", "![a](\"onerror=\"alert(1))",
    "![a](data:image/svg+xml,<svg onload=alert(1)>)", "![![a](x)](https://evil.example/b.png)",
    "[![a](https://evil.example/c.png)](javascript:alert(1))", "<https://evil.example/x>",
    "[a](https://evil.example/`)<img src=x onerror=alert(1)>`", "[<img src=x onerror=alert(1)>](b)",
    "```<img src=x onerror=alert(1)>\n</code></pre><script>alert(1)</script>\n```",
    "`</code><script>alert(1)</script>`",
    "| <script>alert(1)</script> |\n|---|\n| <svg onload=x> |",
    "# <img src=x onerror=alert(1)> {onclick=alert(1)}",
    "{{constructor.constructor('alert(1)')()}}",
    "> - 1. <script>alert(1)</script>", "**" * 3000 + "a" + "**" * 3000, "> " * 3000 + "a",
    "x{:onclick=alert(1)}", "$\\href{javascript:alert(1)}{x}$", "<x onclick=alert(1) src=a>b</x>",
)  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "Take one.\n\nThen rest.", "a * b * c, snake_case_name, 3 < 4 & 5 > 2", "",
        "  indented\n x",
        "    a poem that\n    is indented", "two  \nlines", "#hashtag", "<b>HTML</b> &amp; more",
        r"\(x^\) and \[y_\]", "$5 to $10, or US$5/US$6",
        "[1]: https://a.example", "a | b", "-5 degrees", "**" + "x" * 20_000,
    ],
)  # fmt: skip
def test_a_text_without_markdown_is_shown_as_it_is(text: str) -> None:
    assert markdown_tree(text) is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("*a* [b](http://c)", ["p", 0, [["em", 0, ["a"]], " ", "b", " (http://c)"]]),
        ("**a** ![b](http://c)", ["p", 0, [["strong", 0, ["a"]], " ", "[Image: b (http://c)]"]]),
        ("### a", ["h3", 3, ["a"]]),
        ("3. a\n4. b", ["ol", 3, [["li", 0, ["a"]], ["li", 0, ["b"]]]]),
        ("`a`\nb", ["p", 0, [["code", 0, ["a"]], ["br", 0, []], "b"]]),
        (r"*a* \(x^\) \*", ["p", 0, [["em", 0, ["a"]], " ", r"\(", "x^", r"\)", " ", "*"]]),
        ("![a pill](picture:0f)", ["p", 0, [["img", 0, ["0f", "a pill"]]]]),
        ("*a*\n---", ["p", 0, [["em", 0, ["a"]]]]),
        ("```py\n<b>\n```", ["pre", 0, ["<b>"]]),
        ("*a*<br>b", ["p", 0, [["em", 0, ["a"]], ["br", 0, []], "b"]]),
        ("[1]: http://c\n\n*a*", ["p", 0, ["[1]: http://c"]]),
    ],
)
def test_what_becomes_of_markdown(text: str, shown: list[object]) -> None:
    assert (markdown_tree(text) or [])[0] == shown


def test_a_formula_becomes_mathml() -> None:
    pytest.importorskip("latex2mathml")
    for text in (r"\(x_1\)", "$x_1$"):
        attributes = {"display": "inline", "alttext": "x_1"}
        row = ["mrow", {}, [["msub", {}, [["mi", {}, ["x"]], ["mn", {}, ["1"]]]]]]
        assert markdown_tree(text) == [["p", 0, [["math", attributes, [row]]]]]
    for text in (r"\[\binom{n}{k}\]", r"$$\binom{n}{k}$$"):
        tree = json.dumps(markdown_tree(text))
        assert '"display": "block"' in tree
        assert '"linethickness": "0"' in tree  # without it, this is a fraction


def test_a_formula_leads_nowhere_and_is_not_deep() -> None:
    pytest.importorskip("latex2mathml")
    hostile = r"$\href{javascript:alert(1)}{x} \style{a:b}{y} \class{c}{z} \text{<script>}$"
    tree = str(markdown_tree(hostile)).partition("}, [")[2]  # behind the attribute `alttext`
    assert "href" not in tree
    assert "a:b" not in tree
    assert "['mtext', {}, ['<script>']]" in tree
    assert json.dumps(markdown_tree("$" + "{" * 400 + "x" + "}" * 400 + "$")).count("[") < 100


def test_hostile_texts_are_neither_deep_nor_slow() -> None:
    for text in (
        "*" * 20_000,
        "**" * 4000 + "a" + "**" * 4000,
        "> " * 9000 + "a",
        "![" * 9000,
        "\\(" * 9000,
    ):
        began = time.monotonic()
        assert json.dumps(markdown_tree(text)).count("[") < 200
        assert time.monotonic() - began < 20


def written(screen: Screen, *texts: str) -> Screen:
    """The screen with these texts under its last headings."""
    kept = screen.sections[: -len(texts)]
    changed = zip(screen.sections[-len(texts) :], texts, strict=True)
    new = [section.model_copy(update={"text": text}) for section, text in changed]
    return screen.model_copy(update={"sections": (*kept, *new)})


async def nothing_runs(tab: Tab, own: str) -> None:
    """No element that could run, load or lead anywhere, no request elsewhere, no complaint."""
    active = "img, svg, iframe, object, embed, form, base, video, :is(a, link, style)"
    found = f":is(#texts, #guidelines) :is({active})"
    assert await tab.value(f"document.querySelectorAll({json.dumps(found)}).length") == 0
    attributes = "#texts .marked *, #guidelines .marked *"
    allowed = {"dir", "lang", "class", "start", "tabindex", "role", "aria-label"}
    allowed |= {"display", "alttext", "linethickness", "stretchy", "accent", "form"}  # of formulas
    names = f"[...document.querySelectorAll({json.dumps(attributes)})]"
    found = await tab.value(f"{names}.flatMap(e => e.getAttributeNames())")
    assert set(found) <= allowed
    assert all(url.startswith(own) for url in tab.requests())
    assert not tab.complaints()


@needs_browser
def test_attacks_in_markdown_neither_run_nor_load(browser: Browser, tmp_path: Path) -> None:
    several = [f"**{n}** " + "\n\n".join(ATTACKS[n::6]) for n in range(6)]
    screens = [labels(f"s{n}", text) for n, text in enumerate(several)]
    alone = [labels(f"a{n}", f"{text}\n\n*x*") for n, text in enumerate(ATTACKS)]
    pair = written(preference("pair"), "*x* " + ATTACKS[2], "*x* " + ATTACKS[25])
    everything = "\n\n".join(ATTACKS)
    folder = study(tmp_path, *screens, pair, *alone, guidelines=everything)
    page = tmp_path / "ann.html"
    with open_store(folder) as store:
        page.write_text(sheet(store, "ann"), "utf-8")

    async def visit(new_tab: NewTab) -> None:
        async def through(tab: Tab, own: str, last: int) -> None:
            for n in range(last):
                await tab.sees(f"{TITLE}.startsWith('Item {n + 1} ')")
                assert await tab.value("document.querySelectorAll('#texts .marked').length") > 0
                await nothing_runs(tab, own)
                await tab.press("ArrowRight")

        several_and_pair = len(screens) + 1
        with served(folder) as site:
            tab = await signed_in(new_tab, site, "ann")
            await through(tab, site.address, several_and_pair + len(alone))
            await tab.sees(f"{TITLE}.endsWith(' labelled')")
        await through(await new_tab(page.as_uri()), "file:", several_and_pair)  # every attack

    browser.run(visit)


@needs_axe
def test_formulas_are_shown_and_read_aloud(browser: Browser, tmp_path: Path) -> None:
    pytest.importorskip("latex2mathml")
    terms = " + ".join(f"x_{{{n}}}" for n in range(40))
    answer = r"Take \(\frac{m}{2}\) mg." + "\n\n" + rf"\[ {terms} \]"
    folder = study(tmp_path, labels("s1", answer))

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            tab = await signed_in(new_tab, site, "ann")
            await tab.sees("document.querySelectorAll('#texts math').length", 2)
            for width in (390, 1440):
                await tab.screen(width)
                await fits(tab)
                assert await tab.axe() == []
            fraction = "document.querySelector('#texts mfrac').getBoundingClientRect().height"
            letter = "document.querySelector('#texts mfrac mi').getBoundingClientRect().height"
            assert await tab.value(f"{fraction} > 1.5 * {letter}")
            assert await tab.value("document.querySelector('math').getAttribute('alttext')") == (
                r"\frac{m}{2}"
            )

    browser.run(visit)


@needs_axe
def test_markdown_is_rendered_and_the_raw_text_is_a_key_away(
    browser: Browser, tmp_path: Path
) -> None:
    pair = written(preference("pair"), ANSWER, "Take two.")
    talk = labels("talk").model_copy(
        update={"sections": tuple(Section(heading=who, text=ANSWER) for who in ("User", "Model"))}
    )
    guide = "## Guide\n\n- one\n- *two*"
    folder = study(tmp_path, labels("s1", ANSWER), pair, talk, labels("plain"), guidelines=guide)
    raw = "document.querySelector('#texts .raw button')?.getAttribute('aria-pressed')"
    guidelines = "document.querySelector('#guidelines .reading').innerText"

    async def rendered(tab: Tab, tables: int = 1) -> None:
        await tab.sees("document.querySelectorAll('#texts table').length", tables)
        found = await tab.value(TAGS)
        assert {"h3", "ul", "ol", "li", "blockquote", "pre", "strong", "hr", "th", "td"} <= {*found}
        text = await tab.value(SHOWN)
        assert "the leaflet (https://leaflet.example/a)" in text
        assert "[Image: a pill (https://x.example/p.png)]" in text
        assert "[1]: https://note.example" in text
        assert "**" not in text

    async def visit(new_tab: NewTab) -> None:
        with served(folder) as site:
            tab = await signed_in(new_tab, site, "ann")
            await rendered(tab)
            ways = "[...document.querySelectorAll('#texts .marked > :is(p, blockquote, pre)')]"
            assert await tab.value(f"{ways}.map(e => getComputedStyle(e).direction).join()") == (
                "ltr,rtl,ltr,rtl,ltr"
            )
            for width in (375, 1440):
                await tab.screen(width)
                await fits(tab)
                for scheme in ("light", "dark"):
                    await tab.scheme(scheme)
                    assert await tab.axe() == []
            assert "## Guide" not in await tab.value(guidelines)
            await tab.press("r")
            await tab.sees(raw, "true")
            assert "**one**" in await tab.value(SHOWN)
            assert "## Guide" in await tab.value(guidelines)
            await tab.reload(raw, "true")
            await click(tab, "Raw text")
            await rendered(tab)
            await tab.press("ArrowRight")
            await tab.sees(f"{TITLE}.startsWith('Item 2 ')")
            await rendered(tab)
            await tab.press("ArrowRight")
            await tab.sees(f"{TITLE}.startsWith('Item 3 ')")
            await rendered(tab, 2)
            await press(tab, "1", "1", "1")
            await tab.sees(SAVED, "Saved")
            await tab.press("ArrowRight")
            await tab.sees(f"{TITLE}.startsWith('Item 4 ')")
            assert await tab.value("document.querySelectorAll('#texts p.text').length") == 3

    browser.run(visit)
