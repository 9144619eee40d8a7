"""What every page of ours rests on: no request leaves it, and text in it is shown, never run.

Jinja escapes every value, data is JSON that a script shows with `textContent` only, and the page's
own policy lets run only the one script whose hash it names.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from judgebench.data.cells import mark_forbidden
from judgebench.errors import Problem, SetupError, shorten

_HERE = Path(__file__).parent
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def page_environment(folder: Path, shown: Callable[[str], str]) -> jinja2.Environment:
    """Templates of a folder in which every value but markup goes through `shown` and is escaped."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader([folder, _HERE]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else shown(str(value)),
    )


def json_for_page(value: Any) -> Markup:
    """JSON that is safe inside a script element.

    All but ASCII is escaped, and so are < > and &: neither `</script>` nor `<!--` can stand in it.
    """
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def page_script(*paths: Path) -> str:
    """The scripts of a page as one, behind what all of them use (`page.js`)."""
    return _texts(_HERE / "page.js", *paths)


def script_hash(script: str) -> str:
    """The hash of a script as a page's policy names it, without `sha256-`."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def fill_in_page(page: Path, data: Mapping[str, Any], **values: Any) -> str:
    """A whole page on which people fill in a table: kept in the browser, saved as a CSV file.

    `page` names the three files of what is its own, without their endings: a template that extends
    `local.html.jinja`, a style and a script. `data` is what `local.js` and that script read, with
    the `columns` and the file name (`table`) of the table; `values` are for the template.
    """
    script = page_script(_HERE / "local.js", page.with_suffix(".js"))
    return local_page(page, script, data, table=data["table"], **values)[0]


def local_page(
    page: Path, script: str, data: Any, *, connect: str = "'none'", **values: Any
) -> tuple[str, str]:
    """A page as HTML, and its policy: it loads nothing, runs the one script and style that it
    holds, and talks to nobody but `connect` (`'self'`: the server that it comes from).

    The template, as in `fill_in_page`, extends `local.html.jinja`; its script finds `data` as JSON
    in the element of that id.
    """
    template = page_environment(page.parent, mark_forbidden).get_template(f"{page.name}.html.jinja")
    style = _texts(_HERE / "local.css", page.with_suffix(".css"))
    policy = (
        f"default-src 'none'; style-src 'sha256-{script_hash(style)}'; script-src"
        f" 'sha256-{script_hash(script)}'; connect-src {connect}; img-src data:; base-uri 'none';"
        " form-action 'none'"
    )
    html = template.render(
        **values,
        data=json_for_page(data),
        style=Markup(style),
        script=Markup(script),
        policy=Markup(policy),
    )
    return html, policy


def check_people(names: Sequence[str], field: str) -> None:
    """Raises SetupError where nobody is named, a name can name no file, or one is named twice."""
    problems = [] if names else [Problem("name somebody", field=field)]
    seen: set[str] = set()
    for name in names:
        if not _NAME.fullmatch(name):
            message = "cannot name a file"
            allowed = "letters a to z, digits, full stops, dashes and underscores"
            problems.append(Problem(message, "", None, field, shorten(name), allowed))
        elif name.casefold() in seen:
            problems.append(Problem("is named twice", field=field, found=shorten(name)))
        seen.add(name.casefold())
    if problems:
        raise SetupError(problems)


def _texts(*paths: Path) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in paths)
