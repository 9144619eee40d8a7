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

_IN_MARKDOWN = re.compile(r"!\[([^\[\]\n]{0,1000})\]\(([^()\s]{1,1000})\)")
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]+:|//", re.IGNORECASE)
_KINDS = {  # by the first bytes: what a file is called does not count, and SVG can run scripts
    rb"\x89PNG\r\n\x1a\n": "image/png",
    rb"\xff\xd8\xff": "image/jpeg",
    rb"GIF8[79]a": "image/gif",
    rb"RIFF....WEBP": "image/webp",
}
MAX_BYTES = 5_000_000
ALLOWED = "only PNG, JPEG, GIF and WebP of at most 5 MB in the folder of the table"


class Picture(NamedTuple):
    """A picture by its name in the study; `kind` is its type (`image/png`)."""

    name: str
    kind: str
    content: bytes


def read_pictures(
    texts: Iterable[str], folders: Sequence[Path]
) -> tuple[dict[str, Picture], list[str]]:
    """Return the pictures in these folders that texts name, by their address in the text, and the
    addresses of all others, which stay text."""
    pictures, others = dict[str, Picture](), list[str]()
    for address in dict.fromkeys(name for text in texts for _, name in _IN_MARKDOWN.findall(text)):
        path = _find(unquote(address), folders)
        picture = _read(path) if path else None
        if picture:
            pictures[address] = picture
        else:
            others.append(address)
    return pictures, others


def _read(path: Path) -> Picture | None:
    """The picture in a file, if it holds one."""
    with disk_errors(path):
        content = path.read_bytes() if path.stat().st_size <= MAX_BYTES else b""
    kinds = (kind for start, kind in _KINDS.items() if re.match(start, content, re.DOTALL))
    kind = next(kinds, "")
    return Picture(hashlib.sha256(content).hexdigest()[:32], kind, content) if kind else None


def _find(address: str, folders: Sequence[Path]) -> Path | None:
    """The file of an address in one of the folders, or below it."""
    if _ELSEWHERE.match(address) or "\0" in address:
        return None
    paths = [(folder.resolve(), (folder / address).resolve()) for folder in folders]
    return next((p for folder, p in paths if p.is_relative_to(folder) and p.is_file()), None)


def name_pictures(text: str, pictures: Mapping[str, Picture]) -> str:
    """Return the text with the names of pictures in place of their addresses.

    >>> name_pictures("![scan](gpt/a.png)", {"gpt/a.png": Picture("0f", "image/png", b"")})
    '![scan](picture:0f)'
    """

    def named(match: re.Match[str]) -> str:
        alt, address = match.groups()
        return f"![{alt}](picture:{pictures[address].name})" if address in pictures else match[0]

    return _IN_MARKDOWN.sub(named, text)
