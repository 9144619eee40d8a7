"""Read the logs and exports of other tools: answers, human labels and judges' verdicts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from judgebench.data.importers.annotation import (
    ARGILLA,
    LABEL_STUDIO,
    read_argilla,
    read_label_studio,
)
from judgebench.data.importers.evaluation import (
    INSPECT_AI,
    LM_EVAL,
    PROMPTFOO,
    read_inspect_ai,
    read_lm_eval,
    read_promptfoo,
)
from judgebench.data.importers.log import Content, Log, open_content

IMPORTERS: tuple[tuple[str, Callable[[Content], Log | None]], ...] = (
    (INSPECT_AI, read_inspect_ai),
    (LM_EVAL, read_lm_eval),
    (PROMPTFOO, read_promptfoo),
    (LABEL_STUDIO, read_label_studio),
    (ARGILLA, read_argilla),
)
_LAID_OUT_OTHERWISE = ArithmeticError, AttributeError, LookupError, TypeError, ValueError


def read_log(path: Path) -> Log:
    """The log or export in a file, recognised by its content.

    Raises SetupError where it is damaged, of no known kind or laid out otherwise than its kind is,
    and MissingExtra where a package that reads it is not installed.
    """
    content = open_content(path)
    for about, read in IMPORTERS:
        try:
            log = read(content)
        except _LAID_OUT_OTHERWISE as error:
            message = f"is like {about}, but is not laid out as judgebench knows them"
            raise content.fail(f"{message} (a fault at {error})") from error
        if log is not None:
            log.left_out += content.left_out
            return log
    known = "; ".join(about for about, _ in IMPORTERS)
    message = "is no log or export that judgebench can import"
    if content.kind == "table":
        message += ": a table of your own needs no import, see `judgebench init`"
    raise content.fail(message, found=content.in_words, allowed=known)
