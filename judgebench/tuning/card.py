"""The model card of an exported judge: what it is, what it learnt from, what it is worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from judgebench.align.statistics import STATISTICS
from judgebench.records import Estimate
from judgebench.report.words import counted, listed
from judgebench.rubric import Rubric
from judgebench.tuning.exported import sums_of

# What the files of some ways to learn would tell a stranger.
_HOLDS = {
    "examples": "**It holds labelled answers word for word**: share it as you would share them.",
    "bag-of-words": "It holds words of the answers, each with its weight.",
    "instructions": "The revised wording may quote answers: read it before you share it.",
    "lora": "A language model can repeat some of what it was trained on.",
}


def card(content: Mapping[str, Any], rubric: Rubric) -> str:
    """The card in Markdown, of the manifest's content."""
    return "\n".join(_lines(content, rubric)).rstrip() + "\n"


def _lines(content: Mapping[str, Any], rubric: Rubric) -> Iterator[str]:
    name, titles = content["name"], [metric.title for metric in rubric.metrics]
    yield f"# {name}\n"
    yield (
        f"A judge that gives answers labels for {listed(titles)} by the rubric {rubric.name} "
        f"(version {rubric.version}). It was tuned with judgebench {content['judgebench']} "
        f"(`learn: {content['learn']}`) to agree with human labels. **It is not clinically "
        "reviewed** and gives no medical advice.\n"
    )
    yield "## How to use it\n"
    yield "In `judges` of a bench.yaml with the rubric in `rubric.yaml`:\n"
    renames = f", from: {{{', '.join(f'{n}: {n}' for n in content['needs'])}}}"
    entry = f"{{name: {name}, tuned: PATH-OF-THIS-FOLDER{renames if content['needs'] else ''}}}"
    yield f"```yaml\n- {entry}\n```\n"
    if content["needs"]:
        yield (
            f"It works on what {listed([*content['needs']])} says, so the benchmark needs the same "
            "judge; `from` says what it is called there.\n"
        )
    yield "`judgebench tune import FOLDER` checks the folder and prints this entry.\n"
    yield "## What it learnt from\n"
    given = [
        f"{content['labels'][m.id]:,} for {m.title} ({content['truth'][m.id]})"
        for m in rubric.metrics
    ]
    machine_made = content["machine_made"].items()
    silver = "".join(f"; {n:,} with machine-made labels ({name})" for name, n in machine_made)
    yield (
        f"{counted(content['answers'], 'answer')} with labels of "
        f"{counted(content['annotators'], 'annotator')}: {listed(given)}{silver}; hash "
        f"`{content['trained_on']}`. It answers `skipped: trained on it` for these answers, for "
        "others to their questions, and for texts that are nearly the same. For that, "
        "`known.json` holds a sketch of every text and question: nobody can read a text from it, "
        "but whoever has a text can find out whether it is among them. "
        f"{_HOLDS.get(content['learn'], '')}".rstrip()
        + "\n"
    )
    yield "The recipe:\n"
    yield f"```yaml\n{yaml.safe_dump(content['recipe'], sort_keys=False, allow_unicode=True)}```\n"
    for where, digest in sums_of(content["about"]).items():
        yield f"It needs the {where or 'weights'} with the SHA-256 `{digest}`.\n"
    yield "## What it is worth\n"
    yield (
        "Measured out of fold: judges with this recipe, each scored on answers whose questions and "
        "texts it had not learnt from, beside the control judges. This judge learnt from all "
        "labels, so it has no figures of its own on these answers; on other data, measure again.\n"
    )
    for metric in rubric.metrics:
        yield from _table(content, metric.id, metric.title)
    yield "## Limits\n"
    yield "- It knows one rubric, and the kinds of questions and systems that it learnt from."
    yield "- It learnt to agree with its annotators, also where they are wrong."
    yield "- Use it in place of people only where `judgebench decide` says so on your own labels."


def _table(content: Mapping[str, Any], metric: str, title: str) -> Iterator[str]:
    rows = [row for row in content["scores"] if row["metric"] == metric]
    shown = [key for key in STATISTICS if any(row["statistic"] == key for row in rows)]
    yield f"{title}, with {content['level']:.0%} intervals:\n"
    yield f"| | {' | '.join(STATISTICS[key].heading for key in shown)} | answers |"
    yield f"|---|{'---:|' * (len(shown) + 1)}"
    for judge in dict.fromkeys(row["judge"] for row in rows):
        own = {row["statistic"]: row for row in rows if row["judge"] == judge}
        cells = [_cell(own[key]) if key in own else "–" for key in shown]
        n = max(row["n"] for row in own.values())
        yield f"| {judge} | {' | '.join(cells)} | {n:,} |"
    yield ""


def _cell(row: Mapping[str, Any]) -> str:
    return str(Estimate(row["value"], row["low"], row["high"]))
