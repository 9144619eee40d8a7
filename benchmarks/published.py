"""Decisions and the Alternative Annotator Test on the annotation sets of Calderon et al. (2025).

DIR is a copy of the authors' repository, github.com/nitaytech/AltTest: `data/SET/*.json`, and the
notebook with the figures that they printed. Nothing of it is part of judgebench.

    python benchmarks/published.py DIR                   # the test beside the notebook's figures
    python benchmarks/published.py DIR --decisions       # what the default rule decides
    python benchmarks/published.py DIR --quick           # two small sets
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

import judgebench as jb

# By set: the tolerance in the notebook; for ordinal sets, the labels from least to most severe.
SETS: dict[str, tuple[float, Sequence[int]]] = {
    "wax": (0.1, ()),
    "lgbteen": (0.2, ()),
    "mtbench": (0.2, ()),
    "framing": (0.15, ()),
    "cebab_aspects": (0.1, ()),
    "summeval": (0.2, (5, 4, 3, 2, 1)),
    "10k_prompts": (0.15, (5, 4, 3, 2, 1)),
    "cebab_stars": (0.1, (5, 4, 3, 2, 1)),
    "lesion": (0.15, (0, 1, 2, 3, 4, 5, 6)),
}
FIGURES = re.compile(r"^(\S+) (\S+) \[\w+\]:\s+Winning Rate=(\S+)\s+Advantage Probability=(\S+)$")


def long(folder: Path, file: str, who: str) -> pd.DataFrame:
    """`human_annotations` or `llm_annotations`: a row for each label. What stands before the first
    double underscore of an id is the text, image or question that several items are about."""
    found = json.loads((folder / f"{file}.json").read_text())
    rows = [
        (item, name, "label", str(said), item.split("__")[0])
        for name, labels in found.items()
        for item, said in labels.items()
    ]
    return pd.DataFrame(rows, columns=["item_id", who, "metric", "label", "question"])


def read(folder: Path, name: str) -> jb.Study:
    """The study of one set: all LLMs, and one metric that holds every label, as in the notebook."""
    labels = long(folder / "data" / name, "human_annotations", "annotator")
    verdicts = long(folder / "data" / name, "llm_annotations", "judge").drop(columns="question")
    order = [str(label) for label in SETS[name][1]]
    known = order or sorted(set(labels["label"]) | set(verdicts["label"]))
    kind = "ordinal" if order else "nominal"
    metric = jb.Metric(
        id="label", title=name, question=name, kind=kind,
        labels=tuple(jb.Label(text=text, description=text) for text in known),
    )  # fmt: skip
    rubric = jb.Rubric(name=name, version="1", instructions="-", metrics=(metric,))
    return jb.study(labels, verdicts, rubric=rubric)


def notebook(folder: Path) -> dict[tuple[str, str], tuple[str, str]]:
    """What the authors printed, by set and LLM: winning rate and average advantage."""
    cells: Any = json.loads((folder / "alt_test_example.ipynb").read_text())["cells"]
    printed = (line for c in cells for o in c.get("outputs", ()) for line in o.get("text", ()))
    found = filter(None, map(FIGURES.match, map(str.strip, printed)))
    return {(m[1], m[2]): (m[3], m[4]) for m in found}


def tests(folder: Path, names: Sequence[str]) -> Iterator[str]:
    from judgebench.decisions.beside import alternative_tests

    theirs, same, n = notebook(folder), 0, 0
    yield "| set | LLM | winning rate | published | advantage | published |"
    yield "|---|---|--:|--:|--:|--:|"
    for name in names:
        rule = jb.DecisionRule.model_validate({"alternative_test": {"epsilon": SETS[name][0]}})
        rows = jb.Results(tuple(alternative_tests(read(folder, name), rule)))
        for judge in rows.values("judge"):
            found = {
                r.statistic: r.estimate.value for r in rows.select(who="published", judge=judge)
            }
            rate, advantage = (f"{found[key]:.2f}" for key in ("winning_rate", "advantage"))
            published = theirs[name, judge]
            same, n = same + ((rate, advantage) == published), n + 1
            yield f"| {name} | {judge} | {rate} | {published[0]} | {advantage} | {published[1]} |"
    yield f"\n{same} of {n} cells are the published ones."


OUTCOMES = ("REPLACE", "ASSIST", "DO NOT USE", "CAN'T TELL")
COPYING = re.compile("derived|cop(y|ied|ies)")


def decided(folder: Path, names: Sequence[str]) -> Iterator[str]:
    yield f"| set | LLMs | {' | '.join(OUTCOMES)} | … for copying |\n|---|{'--:|' * 6}"
    total: Counter[str] = Counter()
    for name in names:
        made = jb.decide(read(folder, name)).decisions
        found = Counter(d.outcome.value for d in made)
        found["all"] = len(made)
        found["copying"] = sum(
            d.outcome.value == "CAN'T TELL" and bool(COPYING.search(d.reason)) for d in made
        )
        total += found
        yield line(name, found)
    yield line("all", total)


def line(name: str, found: Counter[str]) -> str:
    counts = (str(found[key]) for key in ("all", *OUTCOMES, "copying"))
    return f"| {' | '.join((name, *counts))} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="DIR", nargs="?", help="see above")
    parser.add_argument("--decisions", action="store_true", help="what the default rule decides")
    parser.add_argument("--quick", action="store_true", help="two small sets")
    given = parser.parse_args()
    sets = ["wax", "mtbench"] if given.quick else list(SETS)
    make = decided if given.decisions else tests
    if given.folder is None:
        print("left out: it needs DIR, a copy of github.com/nitaytech/AltTest")
    for text in make(given.folder, sets) if given.folder else ():
        print(text, flush=True)
