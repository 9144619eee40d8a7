"""`judgebench import`: write the log of another tool as tables of judgebench."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from judgebench.data.logs import read_log
from judgebench.errors import Problem, SetupError
from judgebench.files import all_or_nothing, to_line, write_atomically
from judgebench.starter import Started
from judgebench.words import counted

_LOGS = "logs of inspect_ai, lm-evaluation-harness, promptfoo, DeepEval, Label Studio"


def import_file(file: str | Path, to: str | Path | None = None) -> Started:
    """Write the answers, human labels and verdicts in a log of another tool as tables into the
    folder `to`, by default the file's own.

    What a file is follows from its content: a log of inspect_ai, samples of lm-evaluation-harness,
    results of promptfoo, a test run of DeepEval or annotations of Label Studio. Labels of people
    are human labels; scorers, assertions and predictions are judges.

    Raises SetupError where the file is damaged or unknown, or a file would be overwritten; nothing
    is written then. Raises MissingExtra for an `.eval` log without inspect_ai.

    >>> import judgebench as jb
    >>> [path.name for path in jb.import_file("samples_library.jsonl", "imported").files]
    ['answers.jsonl', 'verdicts.jsonl']
    """
    path = Path(file)
    log = read_log(path)
    if log is None:
        message = "is no log that judgebench knows; tables need no import: give them as they are"
        raise SetupError(Problem(message, str(path), allowed=_LOGS))
    if not any(log.rows.values()):
        why = ", ".join(f"{what} ({count})" for what, count in log.left_out.items())
        raise SetupError(Problem("holds no answer to import", str(path), found=why))
    folder = Path(to) if to is not None else path.parent
    files = {kind: folder / f"{kind}.jsonl" for kind, rows in log.rows.items() if rows}
    with all_or_nothing(folder, list(files.values())):
        for kind, target in files.items():
            write_atomically(target, "".join(map(to_line, log.rows[kind])).encode())
    counts = (counted(len(log.rows[kind]), kind.removesuffix("s")) for kind in files)
    if "labels" in files:
        step = f"judgebench {'decide' if 'verdicts' in files else 'init'} {quote(str(path))}"
    else:
        step = f"judgebench init {quote(str(files['answers']))}, and collect labels as it says"
    return Started(tuple(files.values()), (log.tool, *counts, *log.notes), (step,), log.left_out)
