"""A large data set that a run folder keeps, so that a resumed run need not read it again.

The run folder's answers.jsonl and labels.jsonl hold what was read from the user's files. Beside
them are `answers.index` (where each line begins, content hashes, lengths of texts) and
`data.json`: which files were read, with their hashes, and the warnings. As long as every hash is
the one that was noted, reading the files again would give the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from judgebench.data.answer_file import AnswerFile
from judgebench.data.open_table import reader_of_wing
from judgebench.errors import Problem, SetupError
from judgebench.files import open_bytes, read_lines, read_object, to_json, write_atomically
from judgebench.records import Dataset, HumanLabel, Origin, canonical_json

ANSWERS, LABELS, _INDEX, _DATA = "answers.jsonl", "labels.jsonl", "answers.index", "data.json"


def keep_data(folder: Path, dataset: Dataset) -> None:
    """Note that the run folder's answers and labels, which are written, are those of `dataset`.

    Small data sets, and those that are not just what files hold, are not kept. One that was taken
    from the folder is kept there already. Raises OSError.
    """
    if is_kept(folder, dataset):
        return
    (folder / _DATA).unlink(missing_ok=True)
    if dataset.origin is None or not isinstance(dataset.answers, AnswerFile):
        (folder / _INDEX).unlink(missing_ok=True)
        return
    write_atomically(folder / _INDEX, dataset.answers.index_bytes())
    noted = {
        "reading": dataset.origin.reading,
        "files": dict(dataset.origin.files),
        "kept": _hashes(folder),
        "sources": dict(dataset.sources),
        "textless": list(dataset.textless),
        "blind": dataset.blind,
        "warnings": [asdict(problem) for problem in dataset.warnings],
    }
    write_atomically(folder / _DATA, to_json(noted, indent=2).encode("utf-8"))


def is_kept(folder: Path, dataset: Dataset) -> bool:
    """Whether the data set was taken from that run folder, whose files need not be written."""
    answers = dataset.answers
    taken = isinstance(answers, AnswerFile) and answers.is_all_of(folder / ANSWERS)
    return taken and dataset.origin is not None and (folder / _DATA).is_file()


def kept_data(folder: Path, reading: str) -> Dataset | None:
    """The data set that the run folder keeps; None unless reading would give just the same."""
    try:
        noted = read_object((folder / _DATA).read_bytes(), folder / _DATA)
        if noted["reading"] != reading or noted["kept"] != _hashes(folder):
            return None
        if any(file_hash(Path(path)) != known for path, known in noted["files"].items()):
            return None
        return Dataset(
            answers=AnswerFile.open(folder / ANSWERS, (folder / _INDEX).read_bytes()),
            labels=tuple(HumanLabel(**value) for _, value in read_lines(folder / LABELS)),
            warnings=tuple(Problem(**value) for value in noted["warnings"]),
            sources=noted["sources"],
            textless=tuple(noted["textless"]),
            blind=noted["blind"],
            origin=Origin(reading, noted["files"]),
        )
    except (OSError, SetupError, KeyError, TypeError, AttributeError):
        return None


def file_hash(path: Path) -> str:
    """The SHA-256 of a file's bytes as hex digits; of a wing's table, of its rows, which a database
    may hold in a file beside it. Raises OSError, and SetupError for such a table."""
    if read := reader_of_wing(path):
        rows = canonical_json(read(path)).encode("utf-8", "surrogatepass")
        return hashlib.sha256(rows).hexdigest()
    with open_bytes(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _hashes(folder: Path) -> Mapping[str, str]:
    return {name: file_hash(folder / name) for name in (ANSWERS, LABELS, _INDEX)}
