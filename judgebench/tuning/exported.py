"""The folder that a tuned judge is kept in, to be used on other data.

manifest.json   what was learnt how, of what, what it is worth out of fold, and the SHA-256 of
                every other file; sealed, so that a changed byte shows
model/          what the judge learnt
rubric.yaml     the rubric that it judges by
known.json      sketches of the questions and texts that it learnt from
README.md       the same for people
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from judgebench.backends.weights import sha256_of
from judgebench.errors import Problem, SetupError
from judgebench.files import read_errors, read_object
from judgebench.records import content_hash
from judgebench.rubric import Rubric, load_rubric
from judgebench.store.integrity import is_sealed
from judgebench.tuning.alike import Known
from judgebench.yaml_file import Strict, validate

MANIFEST, MODEL, RUBRIC, KNOWN, CARD = (
    "manifest.json", "model", "rubric.yaml", "known.json", "README.md"
)  # fmt: skip
_RUNTIME = "runtime"  # a key of what a learner tells that its verdicts do not depend on


class Exported(Strict):
    """What manifest.json holds.

    `recipe` is the judge's entry of bench.yaml, `about` what the learner told of itself (base
    weights among it), `needs` the signatures of the judges whose verdicts or settings it uses, by
    name. `answers` and `labels` count what people labelled, `trained_on` is the hash of all of it.
    `machine_made` counts, by the file, answers with labels of machines. `scores` are out of fold.
    """

    judgebench: str
    name: str
    learn: str
    recipe: dict[str, Any]
    about: dict[str, Any]
    needs: dict[str, str]
    rubric: dict[str, str]
    signature: str
    answers: int
    labels: dict[str, int]
    trained_on: str
    machine_made: dict[str, int]
    facts: dict[str, Any]
    truth: dict[str, str]
    annotators: int
    level: float
    scores: list[dict[str, Any]]
    files: dict[str, str]
    seal: str

    @property
    def hash(self) -> str:
        """Changes with every byte of the folder but for the card."""
        return content_hash({name: of for name, of in self.files.items() if name != CARD})


def read_export(folder: Path) -> Exported:
    """The manifest of a folder in which every file is as it was written.

    Raises SetupError with every file that is missing or was changed.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise SetupError(Problem(f"holds no exported judge: {MANIFEST} is missing", str(folder)))
    with read_errors(path):
        content = path.read_bytes()
    if not is_sealed(content):
        raise SetupError(Problem("was changed after the export", str(path)))
    found = validate(read_object(content, path), Exported, str(path))
    if problems := [*_damage(folder, found.files)]:
        raise SetupError(problems)
    return found


def _damage(folder: Path, files: Mapping[str, str]) -> Iterator[Problem]:
    for name, expected in files.items():
        path = folder / name
        if not path.is_file():
            yield Problem("is missing from the export", str(path))
            continue
        with read_errors(path):
            found = sha256_of(path)
        if found != expected:
            yield Problem("was changed after the export", str(path), None, "SHA-256", found)


def known_to(folder: Path) -> tuple[Known, Known]:
    """Whether a question, and whether a text, is among what the judge learnt from."""
    path = folder / KNOWN
    found = read_object(path.read_bytes(), path)
    return Known(found["questions"]), Known(found["texts"])


def rubric_for(folder: Path, ours: Rubric) -> Rubric:
    """The part of our rubric that the judge judges by. Raises SetupError with every difference."""
    theirs = load_rubric(folder / RUBRIC)
    keys = ("name", "version", "instructions")
    wrong = [f"{key} differ" for key in keys if getattr(theirs, key) != getattr(ours, key)]
    mine = {metric.id: metric for metric in ours.metrics}
    for metric in theirs.metrics:
        if mine.get(metric.id) != metric:
            how = "differs" if metric.id in mine else "is missing"
            wrong.append(f"the metric {metric.id} {how}")
    if wrong:
        message, found = f"is for another rubric: {', '.join(wrong)}", ours.content_hash
        allowed = str(folder / RUBRIC)
        raise SetupError(
            Problem(message, str(folder), None, "rubric", f"{ours.name} {found}", allowed)
        )
    return ours.only([metric.id for metric in theirs.metrics])


def check_base(folder: Path, exported: Exported, now: Mapping[str, Any]) -> None:
    """Raises SetupError where weights below what was learnt are others than those of `now`, which
    the learner tells of itself."""
    then, here = sums_of(exported.about), sums_of(now)
    raise_any(
        Problem(
            f"was made for another base: {where or 'weights'} have another SHA-256",
            str(folder), None, "base", here.get(where, "none"), then[where],
        )
        for where in then
        if here.get(where) != then[where]
    )  # fmt: skip


def raise_any(problems: Iterator[Problem]) -> None:
    """Raises SetupError where there are problems."""
    if found := [*problems]:
        raise SetupError(found)


def sums_of(about: Any, where: str = "") -> dict[str, str]:
    """Every SHA-256 in what a learner tells of itself, by where it stands."""
    found: dict[str, str] = {}
    for key, value in about.items() if isinstance(about, Mapping) else ():
        if key == _RUNTIME:
            continue
        if key == "sha256" and isinstance(value, str):
            found[where] = value
        found |= sums_of(value, key)
    return found
