"""What a judge learns from all labels, in a folder to be used on other data: `tune --export`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import yaml

from judgebench.errors import Problem, SetupError
from judgebench.files import to_json
from judgebench.learning.folds import sketch
from judgebench.learning.learnt import TrainingSet
from judgebench.results.documents import bullets, table_lines
from judgebench.runs.bench import Bench, default_run_folder
from judgebench.runs.benchmark import load_bench
from judgebench.runs.folder import RunFolder
from judgebench.runs.open import open_run
from judgebench.text import counted
from judgebench.tuning.config import Learn, learn_entry
from judgebench.tuning.judges import learner_of, open_examination
from judgebench.tuning.measure import measure_tuning
from judgebench.tuning.report import SCORES, show
from judgebench.tuning.tuned import (
    CARD,
    MANIFEST,
    Exported,
    check_absent,
    content_of,
    written_whole,
)
from judgebench.version import VERSION

_LEARNING = ("rounds", "stages", "by")  # keys of an entry that say how it is learnt alone
# What the files of some ways to learn would tell a stranger.
_HOLDS = {
    "examples": " **It holds labelled answers word for word**: share it as you would share them.",
    "bag-of-words": " It holds words of the answers, each with its weight.",
    "instructions": " The revised wording may quote answers: read it before you share it.",
    "lora": " A language model can repeat some of what it was trained on.",
}
_CARD = """\
# {recipe[name]}

A judge that labels answers by the rubric {rubric.name} (version {rubric.version}). judgebench
{version} tuned it (`learn: {recipe[learn]}`) to agree with human labels. **It is not clinically
reviewed** and gives no medical advice.

## How to use it

An entry of `judges` in a bench.yaml with the rubric that `judgebench.json` holds:

```yaml
- {{name: {recipe[name]}, tuned: PATH-OF-THIS-FOLDER}}
```

`judgebench run` checks this folder, and what it stands on, before it judges.

## What it learnt from

{answers} with labels of {annotators} (hash `{train.hash}`).{holds}

It answers `skipped: trained on it` for these answers, for others to their questions, and for texts
that are nearly the same. `judgebench.json` holds a sketch of each for that: numbers of its runs of
three words. Nobody can read a text from them, but whoever guesses words can check them.

The recipe:

```yaml
{entry}```

## What it is worth

Measured out of fold, beside the baselines: judges with this recipe, scored on answers whose
questions and texts they had not learnt from. This judge learnt from all labels, so it has no
figures of its own on these answers. On other data, measure again.

{scores}

## Limits

- It knows one rubric, and the kinds of questions and systems that it learnt from.
- It learnt to agree with its annotators, also where they are wrong.
- Use it in place of people only where `judgebench decide` says so on labels of your own.
"""


def export_judge(
    bench: Bench | str | Path,
    name: str,
    to: str | Path,
    *,
    folder: str | Path | None = None,
) -> Path:
    """Write what a judge learns from all labels into the folder `to`, with judgebench.json and a
    model card, to be used on other data: `{name: NAME, tuned: TO}` among the judges. Of a language
    model it is what transformers and peft read.

    `folder` is the run folder of `judgebench tune` (default: runs/NAME of the benchmark), in which
    the judge has learnt from all labels and was measured out of fold. Raises SetupError where that
    cannot be, or where `to` is there already.

    >>> import judgebench as jb
    >>> found = jb.tune("bench.yaml", "runs/tuned")
    >>> jb.export_judge("bench.yaml", "my-judge", "exported", folder="runs/tuned").name
    'exported'
    """
    loaded = bench if isinstance(bench, Bench) else load_bench(bench)
    run = RunFolder(Path(folder) if folder else default_run_folder(loaded.config))
    with closing(loaded):
        recipe = check_export(loaded, name, Path(to)).model_dump(
            mode="json", by_alias=True, exclude_none=True
        )
        judging_recipe = {key: recipe[key] for key in recipe if key not in _LEARNING}
        judging = learn_entry(judging_recipe, loaded.file, None)
        learner, judges = learner_of(judging, loaded, run), run.manifest().get("judges", {})
        taught, train = _taught(loaded, name, run)
        answers = [*train.answers, *(a for silver in train.beside.values() for a in silver.answers)]
        questions = {sketch(answer.question) for answer in answers if answer.question}
        with closing(learner), written_whole(Path(to)) as part:
            learner.export(taught, part)
            (part / CARD).write_text(card(recipe, train, run), encoding="utf-8")
            exported = Exported(
                recipe=judging_recipe,
                about=dict(learner.describe()),
                needs={judge: judges[judge]["signature"] for judge in judging.needs},
                rubric=train.rubric,
                questions=tuple(sorted(questions)),
                texts=tuple(sorted({sketch(answer.text) for answer in answers})),
                content=content_of(part),
            )
            (part / MANIFEST).write_text(to_json(exported.model_dump(mode="json"), indent=1))
    return Path(to)


def check_export(bench: Bench, name: str, to: Path) -> Learn:
    """The entry of the judge that is exported. Raises SetupError where none is one that learns, or
    where `to` is there already."""
    able = {entry.name: entry for entry in bench.learning if isinstance(entry, Learn)}
    if name not in able:
        message, allowed = "is no judge of this benchmark that learns", ", ".join(able) or "none"
        raise SetupError(Problem(message, str(bench.file), None, "judges", name, allowed))
    check_absent(to)
    return able[name]


def _taught(bench: Bench, name: str, run: RunFolder) -> tuple[Path, TrainingSet]:
    """The folder of what the judge learnt from all labels, and these. Raises SetupError where the
    run has nothing of the judge as it stands."""
    judges = {judge.name: judge for judge in open_examination(bench, run)}
    judge, manifest = judges[f"{name}~in-sample"], run.manifest()
    recorded = manifest.get("judges", {}).get(judge.name, {}).get("signature")
    if recorded != judge.signature or manifest.get("state") != "finished":
        message = f"has no verdicts of {name} as the benchmark stands"
        allowed = f"the folder of a run that has ended: judgebench tune {bench.file}"
        raise SetupError(Problem(message, str(run.path), allowed=allowed))
    return judge.fitted(0), judge.training_sets[0]


def card(recipe: Mapping[str, Any], train: TrainingSet, run: RunFolder) -> str:
    """The card in Markdown; what the judge is worth is as in the run's own report."""
    study = open_run(run.path)
    tuned = measure_tuning(study)
    assert tuned is not None
    notes = [*tuned.notes, *filter(None, [tuned.collapsed.get(recipe["name"])])]
    return _CARD.format(
        recipe=recipe,
        rubric=train.rubric,
        train=train,
        version=VERSION,
        answers=counted(len(train), "answer"),
        annotators=counted(len(study.makers), "annotator"),
        holds=_HOLDS.get(recipe["learn"], ""),
        entry=yaml.safe_dump(recipe, sort_keys=False, allow_unicode=True),
        scores="\n".join([*table_lines(show(tuned, SCORES)), "", *bullets(notes)]),
    )
