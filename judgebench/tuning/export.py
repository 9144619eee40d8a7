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

from judgebench.alignment.judge_scores import scores
from judgebench.alignment.notes import collapsed, constant_note
from judgebench.errors import Problem, SetupError
from judgebench.learning.folds import sketch
from judgebench.learning.learnt import LEARNT, TrainingSet
from judgebench.models.checkpoints import sha256_of
from judgebench.progress import SILENT, ProgressDisplay
from judgebench.records import Answer, Estimate
from judgebench.results.terminal import Screen
from judgebench.rubric import Rubric
from judgebench.runs.bench import Bench, default_run_folder
from judgebench.runs.benchmark import load_bench
from judgebench.runs.folder import RunFolder, sealed
from judgebench.runs.judging import Budget, Stop, Work
from judgebench.runs.open import open_folder
from judgebench.studies.study import Study
from judgebench.text import counted, listed
from judgebench.tuning.config import Learn, learn_entry
from judgebench.tuning.judges import learner_of, open_examination, open_judges
from judgebench.tuning.tuned import CARD, MANIFEST, as_judge, read_export
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

An entry of `judges` in a bench.yaml with the rubric that `judgebench.json` holds:

```yaml
- {entry}
```

`judgebench run` checks this folder, and what it stands on, before it judges.

## What it learnt from

{answers} with labels of {annotators} (hash `{hash}`).{holds}

It answers `skipped: trained on it` for these answers, for others to their questions, and for texts
that are nearly the same. `judgebench.json` holds a sketch of each for that: numbers of its runs of
three words. Nobody can read a text from them, but whoever guesses words can check them.

The recipe:

```yaml
{recipe}```

## What it is worth

Measured out of fold, beside the baselines: judges with this recipe, scored on answers whose
questions and texts they had not learnt from. This judge learnt from all labels, so it has no
figures of its own on these answers. On other data, measure again.

| judge | metric | statistic | {level:.0%} interval | answers |
|---|---|---|---:|---:|
{scores}
{notes}
## Limits

- It knows one rubric, and the kinds of questions and systems that it learnt from.
- It learnt to agree with its annotators, also where they are wrong.
- Use it in place of people only where `judgebench decide` says so on labels of your own.
"""


def card(content: Mapping[str, Any], rubric: Rubric) -> str:
    """The card in Markdown, of the manifest's content."""
    recipe = content["recipe"]
    renamed = ", ".join(f"{name}: {name}" for name in content["needs"])
    source = f", from: {{{renamed}}}" if renamed else ""
    rows = [
        f"| {row['judge']} | {row['metric']} | {row['statistic']} | "
        f"{Estimate(row['value'], row['low'], row['high'])} | {row['n']:,} |"
        for row in content["scores"]
    ]
    return _CARD.format(
        name=content["name"],
        rubric=f"{rubric.name} (version {rubric.version})",
        metrics=listed([metric.title for metric in rubric.metrics]),
        version=content["judgebench"],
        learn=recipe["learn"],
        entry=f"{{name: {content['name']}, tuned: PATH-OF-THIS-FOLDER{source}}}",
        answers=counted(content["answers"], "answer"),
        annotators=counted(content["annotators"], "annotator"),
        hash=content["trained_on"],
        holds=_HOLDS.get(recipe["learn"], ""),
        recipe=yaml.safe_dump(recipe, sort_keys=False, allow_unicode=True),
        level=content["level"],
        scores="\n".join(rows),
        notes="".join(f"{note}\n\n" for note in content["notes"]),
    )


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
        learner.export(learnt, part, merged=merged)
        rubric = train.rubric
        study = open_folder(run, bench.config.truth, bench.config.report.level)
        seen = [*_seen(train)]
        content = {
            "judgebench": VERSION,
            "name": name,
            "recipe": recipe,
            "merged": merged,
            "about": dict(learner.describe()),
            "needs": {judge: signed[judge] for judge in judging.needs},
            "rubric": rubric.as_plain(),
            "questions": sorted({sketch(answer.question) for answer in seen if answer.question}),
            "texts": sorted({sketch(answer.text) for answer in seen}),
            "signature": signature,
            "answers": len(train),
            "trained_on": train.hash,
            "facts": json.loads((learnt / LEARNT).read_text()),
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
    """The path of a folder that becomes `folder` once it is full; what a killed process left of one
    is thrown away. Raises SetupError where something is there already."""
    if folder.exists():
        raise SetupError(Problem("is there already, and is not overwritten", str(folder)))
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield part
        os.replace(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _seen(train: TrainingSet) -> Iterator[Answer]:
    """All that is learnt from, answers with machine-made labels among them."""
    yield from train.answers
    for more in train.beside.values():
        yield from _seen(more)


def _scores(study: Study, name: str) -> Iterator[dict[str, Any]]:
    """Out of fold, of the judge and of the baselines."""
    judges = sorted(study.judges, key=lambda judge: judge.name != name)
    for judge in (j for j in judges if j.name == name or j.kind == "control"):
        for metric in (m for m in study.rubric.metrics if judge.judges(m)):
            for row in scores(study, judge, metric):
                if row.statistic in _SHOWN and row["failures"] == "left_out":
                    e = row.estimate
                    yield {
                        "judge": judge.name, "metric": metric.id, "statistic": row.statistic,
                        "value": e.value, "low": e.low, "high": e.high, "n": e.n,
                    }  # fmt: skip


def export_judge(
    bench: Bench | str | Path,
    name: str,
    to: str | Path,
    *,
    folder: str | Path | None = None,
    merged: bool = False,
    show_progress: bool = False,
) -> Path:
    """Write what a judge learns from all labels into the folder `to`, with judgebench.json and a
    model card, to be used on other data: `{name: NAME, tuned: TO}` among the judges. Of a language
    model it is what transformers and peft read.

    `folder` is the run folder (default: runs/NAME of the benchmark), which must hold the judge's
    out-of-fold verdicts. `merged` writes a whole model in place of an adapter. Raises SetupError
    where that cannot be, or where `to` is there already.

    >>> import judgebench as jb
    >>> found = jb.tune("bench.yaml", "runs/tuned")
    >>> jb.export_judge("bench.yaml", "my-judge", "exported", folder="runs/tuned").name
    'exported'
    """
    loaded = bench if isinstance(bench, Bench) else load_bench(bench)
    display = ProgressDisplay(Screen()) if show_progress else nullcontext(SILENT)
    with closing(loaded), display as progress:
        run = RunFolder(Path(folder) if folder else default_run_folder(loaded.config))
        write_judge(
            loaded, name, Path(to), Work(run, progress, Budget(None), Stop()), merged=merged
        )
    return Path(to)
