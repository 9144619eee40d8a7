"""Data inside the page."""

from __future__ import annotations

import json
from typing import Any

from markupsafe import Markup


def json_for_page(value: Any) -> Markup:
    """JSON that is safe inside a script element.

    All but ASCII is escaped, and so are < > and &: neither `</script>` nor `<!--` can stand in it.
    """
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
