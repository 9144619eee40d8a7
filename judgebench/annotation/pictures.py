"""Pictures that lie beside a table of items, where a text names them in Markdown.

They are copied into the study under names that tell nothing, so that the server opens no other file
and no annotator sees what the file is called.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from judgebench.files import disk_errors
from judgebench.records import Answer

_IN_MARKDOWN = re.compile(r"!\[([^\]\n]*)\]\(([^()\s]+)\)")
_KINDS = {  # by the first bytes: what a file is called does not count, and SVG can run scripts
    rb"\x89PNG\r\n\x1a\n": "image/png",
    rb"\xff\xd8\xff": "image/jpeg",
    rb"GIF8[79]a": "image/gif",
    rb"RIFF....WEBP": "image/webp",
}
MAX_BYTES = 5_000_000


class Picture(NamedTuple):
    """A picture by its name in the study; `kind` is its type (`image/png`)."""

    name: str
    kind: str
    content: bytes


def read_pictures(answers: Iterable[Answer], folders: Sequence[Path]) -> dict[str, Picture]:
    """Return the pictures in these folders that texts name, by their address in the text. What is
    no PNG, JPEG, GIF or WebP of at most 5 MB stays text, and so does an address out of the folder.
    """
    texts = [text for row in answers for text in (row.question, row.text, row.reference or "")]
    pictures = dict[str, Picture]()
    for address in dict.fromkeys(m[2] for text in texts for m in _IN_MARKDOWN.finditer(text)):
        path = _find(unquote(address), folders)
        if path is None or path.stat().st_size > MAX_BYTES:
            continue
        with disk_errors(path):
            content = path.read_bytes()
        kinds = (kind for start, kind in _KINDS.items() if re.match(start, content, re.DOTALL))
        if kind := next(kinds, ""):
            name = hashlib.sha256(content).hexdigest()[:32]
            pictures[address] = Picture(name, kind, content)
    return pictures


def _find(address: str, folders: Sequence[Path]) -> Path | None:
    if "\0" in address:
        return None
    paths = ((folder.resolve(), (folder / address).resolve()) for folder in folders)
    return next((p for folder, p in paths if p.is_relative_to(folder) and p.is_file()), None)


def name_pictures(text: str, pictures: Mapping[str, Picture]) -> str:
    """Return the text with the names of pictures in place of their addresses.

    >>> name_pictures("![scan](gpt/a.png)", {"gpt/a.png": Picture("0f", "image/png", b"")})
    '![scan](picture:0f)'
    """

    def named(match: re.Match[str]) -> str:
        alt, address = match.groups()
        is_shown = address in pictures
        return f"![{alt}](picture:{pictures[address].name})" if is_shown else match[0]

    return _IN_MARKDOWN.sub(named, text)
