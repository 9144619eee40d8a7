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

from pydantic import BaseModel, ConfigDict

from judgebench.errors import Problem, SetupError, raise_any
from judgebench.files import read_errors, read_object
from judgebench.models.checkpoint import sha256_of
from judgebench.rubric import Rubric, load_rubric
from judgebench.runs.folder import is_sealed
from judgebench.yaml_file import validate

MANIFEST, MODEL, RUBRIC, KNOWN, CARD = (
    "manifest.json", "model", "rubric.yaml", "known.json", "README.md"
)  # fmt: skip
# What a learner tells of what it stands on: weights, an encoder, a prompt.
_SUMS = ("sha256", "revision", "hash")
_OUR_OWN = ("runtime", "rubric", "recipe", "rounds", "stages")
# Keys of an entry that say how it is learnt, and not how it then judges.
_LEARNING = {"instructions": {"rounds", "by"}}
_USUAL = {"rounds", "stages"}


class Exported(BaseModel):
    """The part of manifest.json of which a judge is made.

    `recipe` is its entry of bench.yaml, `about` what the learner told of itself, `needs` the
    signatures of the judges whose verdicts or settings it uses, by name. `seal` changes with every
    byte of the folder.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    recipe: dict[str, Any]
    about: dict[str, Any]
    needs: dict[str, str]
    merged: bool
    files: dict[str, str]
    seal: str


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
    raise_any([*_damage(folder, found.files)])
    return found


def as_judge(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of an entry by which it judges, without those by which it only learnt."""
    left_out = _LEARNING.get(recipe["learn"], _USUAL)
    return {key: value for key, value in recipe.items() if key not in left_out}


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


def rubric_for(folder: Path, ours: Rubric) -> Rubric:
    """The part of our rubric that the judge judges by. Raises SetupError with every difference."""
    theirs = load_rubric(folder / RUBRIC)
    keys = ("name", "version", "instructions")
    wrong = [f"{key} differ" for key in keys if getattr(theirs, key) != getattr(ours, key)]
    mine = {metric.id: metric for metric in ours.metrics}
    for metric in (m for m in theirs.metrics if mine.get(m.id) != m):
        wrong.append(f"the metric {metric.id} {'differs' if metric.id in mine else 'is missing'}")
    if wrong:
        message, found = f"is for another rubric: {', '.join(wrong)}", ours.content_hash
        at, named = str(folder / RUBRIC), f"{ours.name} {found}"
        raise SetupError(Problem(message, str(folder), None, "rubric", named, at))
    return ours.only([metric.id for metric in theirs.metrics])


def check_base(folder: Path, exported: Exported, now: Mapping[str, Any]) -> None:
    """Raises SetupError where weights, an encoder or a prompt that it stands on are others in what
    the learner tells `now`."""
    here = sums_of(now)
    problems = [
        Problem(f"is for another {what}", str(folder), None, what, here.get(what, "none"), sum_)
        for what, sum_ in sums_of(exported.about).items()
        if here.get(what) != sum_
    ]
    raise_any(problems)


def sums_of(about: Any, name: str = "") -> dict[str, str]:
    """The sum of each thing that a learner tells it stands on, by what it is."""
    found: dict[str, str] = {}
    for key, value in about.items() if isinstance(about, Mapping) else ():
        if key in _SUMS and isinstance(value, str) and name:
            found["base" if name == "backend" else name] = value
        elif key not in _OUR_OWN:
            found |= sums_of(value, key)
    return found
