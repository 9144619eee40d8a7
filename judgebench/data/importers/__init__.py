"""Read the logs and exports of other tools: answers, human labels and judges' verdicts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from judgebench.data.importers import argilla, inspect_ai, label_studio, lm_eval, promptfoo
from judgebench.data.importers.content import Content, open_content
from judgebench.data.importers.log import Log

IMPORTERS: tuple[tuple[str, Callable[[Content], Log | None]], ...] = (
    (inspect_ai.ABOUT, inspect_ai.read),
    (lm_eval.ABOUT, lm_eval.read),
    (promptfoo.ABOUT, promptfoo.read),
    (label_studio.ABOUT, label_studio.read),
    (argilla.ABOUT, argilla.read),
)
_LAID_OUT_OTHERWISE = ArithmeticError, AttributeError, LookupError, TypeError, ValueError


def read_log(path: Path) -> Log:
    """The log or export in a file, recognised by its content.

    Raises SetupError where it is damaged, of no known kind or laid out otherwise than its kind is,
    and MissingExtra where a package that reads it is not installed.
    """
    found = open_content(path)
    for about, read in IMPORTERS:
        try:
            log = read(found)
        except _LAID_OUT_OTHERWISE as error:
            message = f"is like {about}, but is not laid out as judgebench knows them"
            raise found.fail(f"{message} (a fault at {error})") from error
        if log is not None:
            log.left_out += found.left_out
            return log
    known = "; ".join(about for about, _ in IMPORTERS)
    message = "is no log or export that judgebench can import"
    if found.kind == "table":
        message += ": a table of your own needs no import, see `judgebench init`"
    raise found.fail(message, found=found.in_words, allowed=known)
