"""What a judge learns from all labels, in a folder to be used on other data: `tune --export`."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from judgebench.alignment.judge_scores import STATISTICS, scores
from judgebench.alignment.notes import collapsed, constant_note
from judgebench.errors import Problem, SetupError
from judgebench.files import to_json
from judgebench.learning.folds import sketch
from judgebench.learning.learnt import LEARNT, SEARCH, Learner, TrainingSet
from judgebench.models.checkpoints import sha256_of
from judgebench.progress import SILENT, ProgressDisplay
from judgebench.records import Answer, Estimate
from judgebench.results.terminal import Screen
from judgebench.rubric import Rubric
from judgebench.runs.bench import Bench, default_run_folder
from judgebench.runs.benchmark import load_bench
from judgebench.runs.folder import RunFolder, sealed
from judgebench.runs.forecast import budget_of
from judgebench.runs.judging import Stop, Work
from judgebench.runs.open import open_folder
from judgebench.studies.study import Study
from judgebench.text import counted, listed
from judgebench.tuning.config import Learn, learn_entry
from judgebench.tuning.judges import learner_of, open_examination, open_judges
from judgebench.tuning.tuned import (
    CARD,
    KNOWN,
    MANIFEST,
    MODEL,
    RUBRIC,
    as_judge,
    read_export,
    sums_of,
)
from judgebench.version import VERSION

if TYPE_CHECKING:
    pass


# What the files of some ways to learn would tell a stranger.
_HOLDS = {
    "examples": " **It holds labelled answers word for word**: share it as you would share them.",
    "bag-of-words": " It holds words of the answers, each with its weight.",
    "instructions": " The revised wording may quote answers: read it before you share it.",
    "lora": " A language model can repeat some of what it was trained on.",
}
_CARD = """\
# {name}

A judge that labels answers by the rubric {rubric}: {metrics}. judgebench {version} tuned it
(`learn: {learn}`) to agree with human labels. **It is not clinically reviewed** and gives no
medical advice.

## How to use it

An entry of `judges` in a bench.yaml with this rubric (`rubric.yaml`):

```yaml
- {entry}
```

{stands_on}`judgebench run` checks this folder, and what it stands on, before it judges.

## What it learnt from

{given} (hash `{hash}`).{holds}

It answers `skipped: trained on it` for these answers, for others to their questions, and for texts
that are nearly the same. `known.json` holds a sketch of each for that: nobody can read a text from
it, but whoever has a text can find out whether it is among them.

The recipe:

```yaml
{recipe}```

## What it is worth

Measured out of fold, beside the baselines: judges with this recipe, scored on answers whose
questions and texts they had not learnt from. This judge learnt from all labels, so it has no
figures of its own on these answers. On other data, measure again.

{scores}{notes}
## Limits

- It knows one rubric, and the kinds of questions and systems that it learnt from.
- It learnt to agree with its annotators, also where they are wrong.
- Use it in place of people only where `judgebench decide` says so on labels of your own.
"""


def card(content: Mapping[str, Any], rubric: Rubric) -> str:
    """The card in Markdown, of the manifest's content."""
    needs, recipe = content["needs"], content["recipe"]
    renamed = f", from: {{{', '.join(f'{name}: {name}' for name in needs)}}}" if needs else ""
    told = "It works on what the same {} says; `from` gives the name there.\n\n".format(
        listed([f"judge {name}" for name in needs])
    )
    sums = [f"its {what} has the sum `{sum_}`" for what, sum_ in sums_of(content["about"]).items()]
    labels = [
        f"{content['labels'][m.id]:,} for {m.title} ({content['truth'][m.id]})"
        for m in rubric.metrics
    ]
    given = f"{counted(content['answers'], 'answer')} with labels of "
    given += f"{counted(content['annotators'], 'annotator')}: {listed(labels)}"
    for file, n in content["machine_made"].items():
        given += f"; {counted(n, 'answer')} with machine-made labels ({file})"
    return _CARD.format(
        name=content["name"],
        rubric=f"{rubric.name} (version {rubric.version})",
        metrics=listed([metric.title for metric in rubric.metrics]),
        version=content["judgebench"],
        learn=recipe["learn"],
        entry=f"{{name: {content['name']}, tuned: PATH-OF-THIS-FOLDER{renamed}}}",
        stands_on=(told if needs else "") + (f"Of what it needs, {listed(sums)}.\n\n" * bool(sums)),
        given=given,
        hash=content["trained_on"],
        holds=_HOLDS.get(recipe["learn"], ""),
        recipe=yaml.safe_dump(recipe, sort_keys=False, allow_unicode=True),
        notes="".join(f"{note}\n\n" for note in content.get("notes", ())),
        scores="".join(line for m in rubric.metrics for line in _table(content, m.id, m.title)),
    )


def _table(content: Mapping[str, Any], metric: str, title: str) -> Iterator[str]:
    rows = [row for row in content["scores"] if row["metric"] == metric]
    shown = [key for key in STATISTICS if any(row["statistic"] == key for row in rows)]
    yield f"{title}, with {content['level']:.0%} intervals:\n\n"
    yield f"| | {' | '.join(STATISTICS[key].heading for key in shown)} | answers |\n"
    yield f"|---|{'---:|' * (len(shown) + 1)}\n"
    for judge in dict.fromkeys(row["judge"] for row in rows):
        own = {row["statistic"]: row for row in rows if row["judge"] == judge}
        values = [[own[key][part] for part in ("value", "low", "high")] for key in shown]
        yield f"| {judge} | {' | '.join(str(Estimate(*v)) for v in values)} | "
        yield f"{max(row['n'] for row in own.values()):,} |\n"
    yield "\n"


_SHOWN = ("accuracy", "balanced_accuracy", "kappa_quadratic", "severe_recall")


def write_judge(bench: Bench, name: str, to: Path, work: Work, *, merged: bool = False) -> None:
    """Write the folder, whole or not at all. What the judge learns from all labels is taken from
    the run folder where `judgebench tune` made it, and is learnt now where it did not.

    Raises SetupError where there is no such judge, the run folder has no out-of-fold verdicts of it
    as the benchmark stands, or the folder is there already.
    """
    entry, run = entry_of(bench, name), work.folder
    signature = next(j.signature for j in open_judges(bench, run) if j.name == name)
    manifest = run.manifest()
    signed = {n: about["signature"] for n, about in manifest.get("judges", {}).items()}
    if signed.get(name) != signature or manifest.get("state") != "finished":
        message = f"has no out-of-fold verdicts of {name} as the benchmark stands"
        allowed = f"the folder of a run that has ended: judgebench run {bench.file}"
        raise SetupError(Problem(message, str(run.path), allowed=allowed))
    examined = open_examination(bench, run)
    whole = next(j for j in examined if j.more == {"of": name, "as": "in-sample"})
    with run.locked(), closing(whole), written_whole(to) as part:
        whole.begin(work)
        learnt, ((_, train),) = whole.fitted(0), whole.parts()
        recipe = entry.model_dump(mode="json", by_alias=True, exclude_none=True)
        judging = learn_entry(as_judge(recipe), bench.file, None)
        learner = learner_of(judging, bench, run)
        _copy(learner, learnt, part / MODEL, merged=merged)
        rubric, study = train.rubric, _study(bench, run)
        _write_beside(part, rubric, train)
        beside = {file: len(more) for file, more in train.beside.items()}
        content = {
            "judgebench": VERSION,
            "name": name,
            "recipe": recipe,
            "merged": merged,
            "about": dict(learner.describe()),
            "needs": {judge: signed[judge] for judge in judging.needs},
            "rubric": {"name": rubric.name, "hash": rubric.content_hash},
            "signature": signature,
            "answers": len(train),
            "labels": {m: int((found >= 0).sum()) for m, found in train.labels.items()},
            "machine_made": beside,
            "trained_on": train.hash,
            "facts": json.loads((learnt / LEARNT).read_text()),
            "truth": {m.id: study.config.in_words(m) for m in rubric.metrics},
            "annotators": len(study.makers),
            "level": study.level,
            "scores": [*_scores(study, name)],
            "notes": [*filter(None, [collapsed(study).get(name)]), *constant_note(study)],
        }
        (part / CARD).write_text(card(content, rubric), encoding="utf-8")
        files = {str(p.relative_to(part)): p for p in sorted(part.rglob("*")) if p.is_file()}
        content["files"] = {file: sha256_of(path) for file, path in files.items()}
        (part / MANIFEST).write_bytes(sealed(content))
        read_export(part)


def entry_of(bench: Bench, name: str) -> Learn:
    """The entry of that judge. Raises SetupError where it is none that learns."""
    able = {entry.name: entry for entry in bench.learning if isinstance(entry, Learn)}
    if name not in able:
        message, allowed = "is no judge of this benchmark that learns", ", ".join(able) or "none"
        raise SetupError(Problem(message, str(bench.file), None, "judges", name, allowed))
    return able[name]


@contextmanager
def written_whole(folder: Path) -> Iterator[Path]:
    """An empty folder that becomes `folder` once it is full; what a killed process left of one is
    thrown away. Raises SetupError where something is there already."""
    if folder.exists():
        raise SetupError(Problem("is there already, and is not overwritten", str(folder)))
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        yield part
        os.replace(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _copy(learner: Learner, learnt: Path, to: Path, *, merged: bool) -> None:
    if merged:
        learner.merge(learnt, to)
    else:
        shutil.copytree(learnt, to, ignore=shutil.ignore_patterns(SEARCH))


def _write_beside(part: Path, rubric: Rubric, train: TrainingSet) -> None:
    said = yaml.safe_dump(rubric.as_plain(), sort_keys=False, allow_unicode=True)
    (part / RUBRIC).write_text(said, encoding="utf-8")
    seen = [*_seen(train)]
    questions = sorted({sketch(answer.question) for answer in seen if answer.question})
    texts = sorted({sketch(answer.text) for answer in seen})
    (part / KNOWN).write_text(to_json({"questions": questions, "texts": texts}))


def _seen(train: TrainingSet) -> Iterator[Answer]:
    """All that is learnt from, answers with machine-made labels among them."""
    yield from train.answers
    for more in train.beside.values():
        yield from _seen(more)


def _study(bench: Bench, run: RunFolder) -> Study:
    return open_folder(run, bench.config.truth, bench.config.report.level)


def _scores(study: Study, name: str) -> Iterator[dict[str, Any]]:
    """Out of fold, of the judge and of the baselines."""
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


def export_judge(
    bench: str | Path,
    name: str,
    to: str | Path,
    *,
    folder: str | Path | None = None,
    merged: bool = False,
    budget: float | None = None,
    data_folder: str | Path | None = None,
    show_progress: bool = False,
) -> Path:
    """Write what a judge learns from all labels into the folder `to`, with rubric, manifest and
    model card, to be used on other data: `{name: NAME, tuned: TO}` among the judges.

    `folder` is the run folder (default: runs/NAME of the benchmark), which must hold the judge's
    out-of-fold verdicts. `merged` writes a whole model in place of an adapter. The others are as in
    `run` and `load_bench`. Raises SetupError where that cannot be, or where `to` is there already.

    >>> import judgebench as jb
    >>> found = jb.tune("bench.yaml", "runs/tuned")
    >>> jb.export_judge("bench.yaml", "my-judge", "exported", folder="runs/tuned").name
    'exported'
    """
    display = ProgressDisplay(Screen()) if show_progress else nullcontext(SILENT)
    with closing(load_bench(bench, data_folder=data_folder)) as loaded, display as progress:
        at = RunFolder(Path(folder) if folder else default_run_folder(loaded.config))
        work = Work(at, progress, budget_of(loaded, at, budget), Stop())
        write_judge(loaded, name, Path(to), work, merged=merged)
    return Path(to)
