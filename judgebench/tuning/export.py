"""A tuned judge, taken along: what it learnt from all labels, with all that tells what it is."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import judgebench
from judgebench.align.against_truth import scores
from judgebench.backends.weights import sha256_of
from judgebench.errors import Problem, SetupError
from judgebench.files import to_json
from judgebench.records import Answer
from judgebench.rubric import Rubric
from judgebench.runner.bench import Bench
from judgebench.runner.judging import Work
from judgebench.stats.resample import Resampling
from judgebench.store.integrity import sealed
from judgebench.store.open import open_run
from judgebench.study.study import Study
from judgebench.tuning.alike import sketch
from judgebench.tuning.card import card
from judgebench.tuning.config import Learn
from judgebench.tuning.exported import CARD, KNOWN, MANIFEST, MODEL, RUBRIC, Exported, read_export
from judgebench.tuning.judges import open_examination, open_judges
from judgebench.tuning.learnt import LEARNT, Learner
from judgebench.tuning.training import TrainingSet

_SHOWN = ("accuracy", "balanced_accuracy", "weighted_kappa", "severe_recall")


@dataclass(frozen=True)
class Wanted:
    """Which judge is exported where. `merged`: as a whole model, not as an adapter. `replace`: in
    the place of an earlier export."""

    name: str
    folder: Path
    merged: bool = False
    replace: bool = False


def export_judge(bench: Bench, wanted: Wanted, work: Work) -> Exported:
    """Write the folder, whole or not at all. What the judge learns from all labels is taken from
    the run folder where `judgebench tune` made it, and is learnt now where it did not.

    Raises SetupError where there is no such judge, the run folder has no out-of-fold verdicts of it
    as the benchmark stands, or the folder is there already.
    """
    entry, run = entry_of(bench, wanted.name), work.folder
    with opened(open_judges(bench, run)) as judges:
        signature = next(judge.signature for judge in judges if judge.name == entry.name)
    signed = run.manifest().get("judges", {})
    if (
        signed.get(entry.name, {}).get("signature") != signature
        or run.manifest().get("state") != "finished"
    ):
        message = f"has no out-of-fold verdicts of {entry.name} as the benchmark stands"
        allowed = f"the folder of a run that has ended: judgebench run {bench.file}"
        raise SetupError(Problem(message, str(run.path), allowed=allowed))
    with (
        run.locked(),
        opened(open_examination(bench, run)) as judges,
        written_whole(wanted.folder, MANIFEST if wanted.replace else "") as part,
    ):
        whole = next(j for j in judges if j.more == {"of": entry.name, "as": "in-sample"})
        whole.begin(work)
        learnt = whole.fitted(0)
        _copy(whole.learner, learnt, part / MODEL, merged=wanted.merged)
        rubric = bench.rubric.of_kind("answer") or bench.rubric
        _write_beside(part, rubric, whole.training(0))
        recipe = entry.model_dump(mode="json", by_alias=True, exclude_none=True)
        study = open_run(run, bench.config.truth, _resampling(bench))
        content = {
            "judgebench": judgebench.__version__,
            "name": entry.name,
            "learn": recipe["learn"],
            "recipe": recipe,
            "about": dict(whole.describe()),
            "needs": {name: signed[name]["signature"] for name in entry.needs},
            "rubric": {"name": rubric.name, "hash": rubric.content_hash},
            "signature": signature,
            **_counts(whole.training(0)),
            "facts": json.loads((learnt / LEARNT).read_text()),
            "truth": {m.id: study.config.in_words(m) for m in study.rubric.metrics},
            "annotators": len(study.makers),
            "level": bench.config.report.level,
            "scores": [*_scores(study, entry.name)],
        }
        (part / CARD).write_text(card(content, rubric), encoding="utf-8")
        files = {str(p.relative_to(part)): p for p in sorted(part.rglob("*")) if p.is_file()}
        content["files"] = {name: sha256_of(path) for name, path in files.items()}
        (part / MANIFEST).write_bytes(sealed(content))
        read_export(part)
    return read_export(wanted.folder)


def entry_of(bench: Bench, name: str) -> Learn:
    """The entry of that judge. Raises SetupError where it is none that learns."""
    able = {entry.name: entry for entry in bench.learning if isinstance(entry, Learn)}
    if name not in able:
        message, allowed = "is no judge of this benchmark that learns", ", ".join(able) or "none"
        raise SetupError(Problem(message, str(bench.file), None, "judges", name, allowed))
    return able[name]


@contextmanager
def opened(judges: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """The judges, closed at the end."""
    try:
        yield judges
    finally:
        for judge in judges:
            judge.close()


@contextmanager
def written_whole(folder: Path, replaced: str = "") -> Iterator[Path]:
    """An empty folder that becomes `folder` once it is full; what a killed process left of one is
    thrown away. With `replaced` it takes the place of a folder that holds a file of that name.

    Raises SetupError where something else is there.
    """
    if folder.exists() and not (replaced and (folder / replaced).is_file()):
        how = f"holds no {replaced}, so it is not replaced" if replaced else "is there already"
        raise SetupError(Problem(how, str(folder)))
    part, old = (folder.with_name(f".{folder.name}.{what}") for what in ("part", "old"))
    for left in (part, old):
        shutil.rmtree(left, ignore_errors=True)
    try:
        part.mkdir(parents=True)
        yield part
        if folder.exists():
            os.replace(folder, old)
        os.replace(part, folder)
    finally:
        for left in (part, old):
            shutil.rmtree(left, ignore_errors=True)


def _copy(learner: Learner, learnt: Path, to: Path, *, merged: bool) -> None:
    if not merged:
        shutil.copytree(learnt, to)
        return
    merge = getattr(learner, "merge", None)
    if merge is None:
        message = "has no adapter that could be merged"
        raise SetupError(Problem(message, field="merged", allowed="learn: lora"))
    merge(learnt, to)


def _write_beside(part: Path, rubric: Rubric, train: TrainingSet) -> None:
    said = yaml.safe_dump(rubric.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    (part / RUBRIC).write_text(said, encoding="utf-8")
    known = {
        "questions": sorted({sketch(a.question) for a in _seen(train) if a.question}),
        "texts": sorted({sketch(a.text) for a in _seen(train)}),
    }
    (part / KNOWN).write_text(to_json(known))


def _seen(train: TrainingSet) -> list[Answer]:
    """All answers that are learnt from, those with machine-made labels among them."""
    beside = [*train.beside.values(), *train.again]
    return [*train.answers, *(answer for more in beside for answer in _seen(more))]


def _counts(train: TrainingSet) -> dict[str, Any]:
    labels = {metric: int((found >= 0).sum()) for metric, found in train.labels.items()}
    beside = {name: len(more) for name, more in train.beside.items()}
    about = {"answers": len(train), "labels": labels, "trained_on": train.hash}
    return {**about, "machine_made": beside}


def _scores(study: Study, name: str) -> Iterator[dict[str, Any]]:
    """Out of fold, of the judge and of the control judges."""
    judges = sorted(study.judges, key=lambda judge: judge.name != name)
    for judge in (j for j in judges if j.name == name or j.kind == "control"):
        for metric in (m for m in study.rubric.metrics if judge.judges(m)):
            for row in scores(study, judge, metric):
                if row.statistic in _SHOWN and row["failures"] == "left_out":
                    found = row.estimate
                    yield {
                        "judge": judge.name, "metric": metric.id, "statistic": row.statistic,
                        "value": found.value, "low": found.low, "high": found.high, "n": found.n,
                        "n_missing": found.n_missing, "method": found.method,
                    }  # fmt: skip


def _resampling(bench: Bench) -> Resampling:
    report = bench.config.report
    return Resampling(report.resamples, bench.config.seed, report.level)
