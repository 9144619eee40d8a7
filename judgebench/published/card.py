"""A published study as its folder describes it: study.yaml beside a benchmark, and the figures that
its authors printed.

A folder holds study.yaml, bench.yaml with its rubric, and, as far as there are any, rule.yaml (the
decision rule), published.csv, published.py and a `prepare` file.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from pydantic import Field

from judgebench.data.findings import nearest
from judgebench.errors import Problem, SetupError, raise_any
from judgebench.yaml_file import Strict, load_model, read_text

CARD, BENCH, RULE, PREPARE = "study.yaml", "bench.yaml", "rule.yaml", "prepare.py"
PUBLISHED, COMPUTED = "published.csv", "published.py"
_NEEDED = ("source", "what", "printed")


class Source(Strict):
    """Files of a repository, and the licence that it states."""

    repository: str
    paths: tuple[str, ...] = Field(min_length=1)
    licence: str


class Pass(Strict):
    """A judge that was said to be able to stand in for annotators on a metric of the rubric."""

    judge: str
    metric: str


class StudyCard(Strict):
    """The keys of study.yaml.

    `data` is where the published files lie below the folder of all data (by itself the name of the
    study), unless the study `ships_data` in its own folder. `prepare` is a Python file (by itself
    prepare.py, where there is one) with a function `prepare(data, to)`, which writes tables where
    data.yaml cannot read the files as they are. `passes` are the judges that were said to pass,
    `traps` sentences on what misleads.
    """

    title: str = Field(min_length=1)
    source: str = Field(min_length=1)
    files: tuple[Source, ...] = Field(min_length=1)
    data: str = ""
    ships_data: bool = False
    prepare: str = ""
    what: str = Field(min_length=1)
    claim: str = Field(min_length=1)
    passes: tuple[Pass, ...] = ()
    traps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Printed:
    """A figure as its authors printed it; `where` are the keys of the one row that gives it, a
    `scale` of 100 means per cent."""

    source: str
    what: str
    text: str
    where: Mapping[str, str]
    scale: float = 1.0

    def same(self, value: float | None) -> bool:
        """To the last digit that was printed.

        >>> Printed("Table 1", "accuracy", "0.87", {}).same(0.8651)
        True
        """
        decimals = len(self.text.partition(".")[2])
        return value is not None and f"{self.scale * value:.{decimals}f}" == self.text.strip("%")


@dataclass(frozen=True)
class Folder:
    """A published study: where it is described, and by what."""

    path: Path
    card: StudyCard

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def rule(self) -> Path | None:
        """The decision rule of the study; None for the usual one."""
        return found if (found := self.path / RULE).exists() else None

    def data(self, home: Path) -> Path:
        """The folder of its published files: its own, or below that of all data."""
        return self.path if self.card.ships_data else home / (self.card.data or self.name)

    def prepared(self, data: Path, to: Path) -> Path:
        """The folder that data.yaml reads: the published files, or `to`, where tables were made of
        them. Raises SetupError where the preparation fails."""
        file = self.path / (self.card.prepare or PREPARE)
        if not file.exists():
            return data
        try:
            _module(file).prepare(data, to)
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
            raise SetupError(
                Problem("cannot prepare the tables", str(file), field="prepare", found=found)
            ) from error
        return to

    def printed(self) -> list[Printed]:
        """The figures of published.csv. Raises SetupError with every row that is unsound."""
        file = self.path / PUBLISHED
        if not file.exists():
            return []
        table = csv.DictReader(io.StringIO(read_text(file)))
        missing = [c for c in _NEEDED if c not in (table.fieldnames or ())]
        raise_any([Problem("has no such column", str(file), 1, found=c) for c in missing])
        return list(_figures(list(table), file))

    def computed(self, study: Any, data: Path) -> Iterator[tuple[Printed, float]]:
        """The figures that published.py yields as (source, what, printed, value)."""
        file = self.path / COMPUTED
        if file.exists():
            for source, what, text, value in _module(file).figures(study, data):
                yield Printed(source, what, text, {}), value


def _figures(rows: list[dict[str, str]], file: Path) -> Iterator[Printed]:
    problems = []
    for line, row in enumerate(rows, start=2):
        where = {k: v for k, v in row.items() if k not in (*_NEEDED, "scale") and v}
        if "statistic" not in where:  # published.py says what gives it
            continue
        try:
            float(row["printed"].strip("%"))
            scale = float(row.get("scale") or 1)
        except ValueError:
            found = f"{row['printed']!r}, scale {row.get('scale') or 1}"
            problems.append(Problem("is no number", str(file), line, "printed", found))
            continue
        yield Printed(row["source"], row["what"], row["printed"], where, scale)
    raise_any(problems)


def read_folders(home: Path, only: Sequence[str] = ()) -> list[Folder]:
    """The studies in the folder `home`, by name: those below it that hold a study.yaml, or itself;
    those alone that `only` names, if any.

    Raises SetupError with every problem of all of them, and where there is none.
    """
    files = [home / CARD] if (home / CARD).exists() else sorted(home.glob(f"*/{CARD}"))
    known = [file.parent.name for file in files]
    raise_any([
        Problem(f"no such study{nearest(name, known)}", str(home), found=name,
                allowed=", ".join(known))
        for name in only if name not in known
    ])  # fmt: skip
    files = [file for file in files if not only or file.parent.name in only]
    if not files:
        raise SetupError(Problem(f"holds no study: no {CARD} in it or one folder below", str(home)))
    found, problems = [], list[Problem]()
    for file in files:
        try:
            folder = Folder(file.parent.resolve(), load_model(file, StudyCard))
            problems += _absent(folder)
            folder.printed()
            found.append(folder)
        except SetupError as error:
            problems += error.problems
    raise_any(problems)
    return found


def _absent(folder: Folder) -> Iterator[Problem]:
    """Files that the study needs and that are not there."""
    for name in filter(None, (BENCH, folder.card.prepare)):
        if not (folder.path / name).exists():
            yield Problem(f"no such file {name!r}", str(folder.path / CARD))


def _module(file: Path) -> Any:
    spec = spec_from_file_location(f"judgebench_study_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
