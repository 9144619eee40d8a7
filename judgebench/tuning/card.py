"""The model card of an exported judge: what it is, what it learnt from, what it is worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from judgebench.alignment.statistics import STATISTICS
from judgebench.records import Estimate
from judgebench.rubric import Rubric
from judgebench.tuning.exported import sums_of
from judgebench.words import counted, listed

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

{stands_on}`judgebench tune import FOLDER` checks the folder and prints the entry.

## What it learnt from

{given} (hash `{hash}`).{holds}

It answers `skipped: trained on it` for these answers, for others to their questions, and for texts
that are nearly the same. `known.json` holds a sketch of each for that: nobody can read a text from
it, but whoever has a text can find out whether it is among them.

The recipe:

```yaml
{recipe}```

## What it is worth

Measured out of fold, beside the control judges: judges with this recipe, scored on answers whose
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
