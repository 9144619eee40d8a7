"""Standard output and error as a command writes to them: the border to the terminal.

What strangers wrote (a server's error, a file's name, a cell) passes here on its way to the screen,
so here it loses what a terminal would obey; and here is settled what an encoding without all
characters, a closed pipe or a full disk means for a command.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO, cast

from judgebench.words import for_terminal

# What stands for a character in an encoding that lacks it. Of others their number is written.
_PLAIN = {
    "…": "...", "−": "-", "–": "-", "—": "-", "‑": "-", "‘": "'", "’": "'", "“": '"', "”": '"',
    "≥": ">=", "≤": "<=", "≠": "!=", "≈": "~", "×": "x", "±": "+/-", "·": "|", "•": "*", "→": "->",
    "°": " degrees", "∞": "inf", "α": "alpha", "κ": "kappa", "ρ": "rho", "τ": "tau", "\ufffd": "?",
}  # fmt: skip


def _in_plain_characters(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    lost = error.object[error.start : error.end]
    plain = (_PLAIN.get(c) or c.encode("ascii", "backslashreplace").decode() for c in lost)
    return "".join(plain), error.end


codecs.register_error("judgebench", _in_plain_characters)


class Stream(io.TextIOBase):
    """A stream whose text commands no terminal, in characters that its encoding holds.

    `raw` is the stream for a writer that sends commands of its own (`results.screen`).
    """

    def __init__(self, under: TextIO, clean: bool = True) -> None:
        self._under = under
        self._clean = clean

    @property
    def raw(self) -> TextIO:
        """The same stream, on which text is written as it is."""
        return cast(TextIO, Stream(self._under, clean=False))

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._under.encoding or "utf-8"

    def write(self, text: str) -> int:
        shown = for_terminal(text) if self._clean else text
        with self._named():
            self._under.write(shown.encode(self.encoding, "judgebench").decode(self.encoding))
        return len(text)

    def flush(self) -> None:
        with self._named():
            self._under.flush()

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Errors of the system say that they are about this stream."""
        try:
            yield
        except OSError as error:
            error.filename = error.filename or "standard output"
            raise

    def fileno(self) -> int:
        return self._under.fileno()

    def isatty(self) -> bool:
        return self._under.isatty()

    def writable(self) -> bool:
        return True


@contextmanager
def guarded_streams() -> Iterator[None]:
    """While it lasts, standard output and error are Streams; one that is closed swallows all."""
    before = sys.stdout, sys.stderr
    with open(os.devnull, "w", encoding="utf-8") as nothing:
        sys.stdout, sys.stderr = (Stream(stream or nothing) for stream in before)
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before
            for stream in filter(None, before):
                try:
                    stream.flush()
                except (OSError, ValueError):  # lest Python tries again when it ends
                    with suppress(OSError, ValueError):
                        os.dup2(nothing.fileno(), stream.fileno())


def told(error: OSError) -> Iterator[str]:
    """What to print about an error of the system that ended a command: a line, or none for a
    reader that went away, such as `head`."""
    if error.errno != errno.EPIPE:
        file = os.fsdecode(error.filename) if error.filename is not None else "a file"
        yield f"{file} cannot be read or written: {error.strerror or error}"
