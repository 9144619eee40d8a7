"""Every error that judgebench raises on purpose.

JudgebenchError
├── SetupError          a file or a setting must be fixed; lists every problem found
│   ├── MissingExtra    an optional package is not installed; names the pip line
│   └── DamagedRun      files of a run folder are not those that its run wrote
├── NotReached          a decision has not the outcome that was required; also an AssertionError
└── RunError            a retry may help: the endpoint, the network, the disk
    ├── BudgetSpent     the user's budget is used up; everything done is kept
    ├── EndpointDown    an endpoint stopped answering; what was not answered is not lost
    ├── BackendFailed   a backend that somebody wrote in Python raised an exception
    ├── JudgesStopped   some judges stopped and are left out; the others are done
    ├── DiskFailed      the disk is full or not writable; what was written stays readable
    └── RunLocked       another process writes to this run folder
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from reprlib import Repr

DISTRIBUTION = "judgebench-eval"  # what pip installs; pyproject.toml says why
_LONGEST = 2000
_LONGEST_NAME = 80
_NEAR_AMONG, _LONGEST_NEAR = 5_000, 200  # names, and characters of one, that are compared
_SURROGATES = re.compile("[\ud800-\udfff]")
_REPR = Repr()
_REPR.maxlevel = 3  # of lists in lists, each of which is cut off after some entries


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in the user's files or settings.

    Every part but `message` may be empty. `line` is a line of a text file, or a row of a table
    counted as a spreadsheet shows it (the header is row 1). `kind` is a stable name for counting.
    What is longer than a screen is cut: a file may hold a key of a million letters.
    """

    message: str
    file: str = ""
    line: int | None = None
    field: str = ""
    found: str = ""
    allowed: str = ""
    kind: str = ""

    def __post_init__(self) -> None:
        for part in ("message", "field", "found", "allowed"):
            text = getattr(self, part)
            if len(text) > _LONGEST:
                object.__setattr__(self, part, f"{text[:_LONGEST]}… ({len(text):,} characters)")

    def __str__(self) -> str:
        where = self.file + (f":{self.line}" if self.line is not None else "")
        head = ": ".join(filter(None, (where, self.field, self.message)))
        if self.found:
            head += f"; found {self.found}"
        if self.allowed:
            head += f"; allowed: {self.allowed}"
        return _SURROGATES.sub("\ufffd", head)  # the name of a file may be no UTF-8


def shorten(value: object, most: int = 80) -> str:
    """A text or any other value quoted, its invisible characters escaped, cut off after `most`
    characters, however large it is.

    >>> shorten("a long answer", most=12)
    "'a long a..."
    """
    if isinstance(value, str):
        text = _SURROGATES.sub("\ufffd", value[: most + 1])  # bytes that are no UTF-8
        shown = ascii(text) if any(not c.isprintable() for c in text) else repr(text)
    else:
        try:
            shown = _REPR.repr(value)
        except ValueError:  # thousands of digits
            shown = f"a very large {type(value).__name__}"
    return shown if len(shown) <= most else shown[: most - 3] + "..."


def some(names: Iterable[str], most: int = 20) -> str:
    """`a, b, c and 1,204 more`, none of them longer than some words.

    >>> some("abcde", most=3)
    'a, b, c and 2 more'
    """
    names = list(names)
    shown = (n if len(n) <= _LONGEST_NAME else f"{n[:_LONGEST_NAME]}…" for n in names[:most])
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(shown) + more


class JudgebenchError(Exception):
    """The root of the tree."""


class SetupError(JudgebenchError):
    """Something in the user's files or settings must be fixed; `problems` lists all of it."""

    def __init__(self, problems: str | Problem | Sequence[Problem]) -> None:
        if isinstance(problems, str):
            problems = [Problem(problems)]
        elif isinstance(problems, Problem):
            problems = [problems]
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__("\n".join(str(p) for p in self.problems))


def raise_any(problems: Sequence[Problem]) -> None:
    """Raise SetupError with these problems, where there are any."""
    if problems:
        raise SetupError(problems)


class MissingExtra(SetupError):
    """An optional package is missing. Of several, called as they are imported, only those are named
    that are not there."""

    def __init__(self, what: str, extra: str, *packages: str) -> None:
        self.extra = extra
        lacking = [name for name in packages[1:] and packages if find_spec(name) is None]
        package = " and ".join(lacking or packages)
        super().__init__(
            f"{what} needs the package {package}, which is not installed: {pip_install(extra)}"
        )


def pip_install(extra: str) -> str:
    """The line that installs judgebench with an extra, from where it was installed.

    >>> pip_install("ray").endswith("[ray]'")
    True
    """
    return f"pip install {shlex.quote(f'{installed_from()}[{extra}]')}"


def installed_from() -> str:
    """Return what pip can install again: the folder or file that judgebench was installed from,
    `.` where that is the current folder, and otherwise its name on the package index."""
    from importlib.metadata import PackageNotFoundError, distribution  # seldom needed, and slow
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        origin = json.loads(distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        return DISTRIBUTION
    url = urlsplit(origin.get("url", ""))
    path = Path(url2pathname(url.path))
    if url.scheme != "file" or not path.exists():
        return DISTRIBUTION
    return "." if path == Path.cwd() else str(path)


class DamagedRun(SetupError):
    """Files of a run folder are missing, or are not those that its run wrote."""


class NotReached(JudgebenchError, AssertionError):
    """A decision has not the outcome that was required.

    Runners of tests count an AssertionError as a failed test, and other errors as a broken one.
    """


class RunError(JudgebenchError):
    """Something failed while running; what was finished is kept and a retry may help."""


class BudgetSpent(RunError):
    """The budget is used up; the run stopped cleanly and can be resumed with a larger one."""


class EndpointDown(RunError):
    """An endpoint did not answer in time; rerun to resume with what it left unanswered."""


class BackendFailed(RunError):
    """A backend that somebody wrote in Python raised an exception, which is the cause of this."""


class JudgesStopped(RunError):
    """Some judges stopped before they were done; `left_out` says why, by name. The others are done
    and can be scored."""

    def __init__(self, left_out: Mapping[str, str]) -> None:
        self.left_out = left_out
        super().__init__(
            "left out, because not every answer is judged: "
            + "; ".join(f"{name} ({reason})" for name, reason in left_out.items())
        )


class DiskFailed(RunError):
    """The disk is full, or the folder cannot be written to; what was written stays readable."""


class RunLocked(RunError):
    """Another process writes to this run folder."""


def nearest(name: str, options: Sequence[str], cutoff: float = 0.6) -> str:
    """`; did you mean 'X'?` for the option spelt most like `name`, else nothing: also where either
    is too long to be a slip of the pen, or the options are too many to be compared."""
    if len(name) > _LONGEST_NEAR or len(options) > _NEAR_AMONG:
        return ""
    folded = {option.casefold(): option for option in options if len(option) <= _LONGEST_NEAR}
    near = get_close_matches(name.casefold(), folded, n=1, cutoff=cutoff)
    return f"; did you mean {folded[near[0]]!r}?" if near else ""
