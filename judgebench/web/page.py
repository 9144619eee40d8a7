"""What every page of ours rests on: no request leaves it, and text in it is shown, never run.

Jinja escapes every value, data is JSON that a script shows with `textContent` only, and the page's
own policy lets run only the one script whose hash it names.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup


def page_environment(folder: Path, shown: Callable[[str], str]) -> jinja2.Environment:
    """Templates of a folder in which every value but markup goes through `shown` and is escaped."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
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
    shared = Path(__file__).with_name("page.js")
    return "".join(path.read_text(encoding="utf-8") for path in (shared, *paths))


def script_hash(script: str) -> str:
    """The hash of a script as a page's policy names it, without `sha256-`."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
