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
_MENTIONED = re.compile(  # of a text that never ends, the search does
    r"!\[[^\[\]\n]{0,1000}\]\(([^()\n]{1,1000})\)?"
    r"|<img\b[^<>]{0,1000}?\bsrc\s{0,9}=\s{0,9}([^<>]{1,1000})",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]+:|//", re.IGNORECASE)
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


def read_pictures(
    texts: Iterable[str], folders: Sequence[Path]
) -> tuple[dict[str, Picture], dict[str, str]]:
    """Return the pictures in these folders that texts name, by their address in the text; and why
    the others stay text, by their address."""
    pictures, reasons = dict[str, Picture](), dict[str, str]()
    for match in (match for text in texts for match in _MENTIONED.finditer(text)):
        address = (match[1] or match[2]).strip("\"' ")
        if address in pictures or address in reasons:
            continue
        is_plain = _IN_MARKDOWN.fullmatch(match[0]) or _ELSEWHERE.match(address)
        path = _find(unquote(address), folders) if is_plain else "is not written as ![text](path)"
        picture = _read(path) if isinstance(path, Path) else path
        if isinstance(picture, Picture):
            pictures[address] = picture
        else:
            reasons[address] = picture
    return pictures, reasons


def _read(path: Path) -> Picture | str:
    """The picture in a file, or why there is none."""
    with disk_errors(path):
        content = path.read_bytes() if path.stat().st_size <= MAX_BYTES else b""
    kinds = (kind for start, kind in _KINDS.items() if re.match(start, content, re.DOTALL))
    if kind := next(kinds, ""):
        return Picture(hashlib.sha256(content).hexdigest()[:32], kind, content)
    return "is no PNG, JPEG, GIF or WebP of at most 5 MB"


def _find(address: str, folders: Sequence[Path]) -> Path | str:
    """The file of an address, or why there is none."""
    if _ELSEWHERE.match(address):
        return "is no file beside the table: pages load nothing from elsewhere"
    if "\0" in address:
        return "is no such file"
    paths = [(folder.resolve(), (folder / address).resolve()) for folder in folders]
    inside = [path for folder, path in paths if path.is_relative_to(folder)]
    missing = "is no such file" if inside else "lies outside the folder of the table"
    return next(filter(Path.is_file, inside), missing)


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
