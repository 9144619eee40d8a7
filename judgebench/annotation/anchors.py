"""Anchors: answers whose right labels are known, of tables and of sets of altered answers.

They are hidden among the items of everybody.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from judgebench.data.load import load_data
from judgebench.errors import Problem, SetupError, raise_any
from judgebench.features import FEATURES
from judgebench.files import find_file, open_bytes
from judgebench.records import Answer, Dataset, content_hash
from judgebench.rubric import Rubric

SHIPPED = "consensus-violations"  # the set of altered answers that anchors are drawn from
# One of 48 severe anchors may be missed where a rule allows 10 %; of 30 none, which costs power.
SEVERE_SHARE = 0.8  # of the anchors
Anchor = tuple[Answer, Mapping[str, str]]  # an answer and its right labels by metric


def read_anchors(
    names: Sequence[str], folder: Path, items: Dataset, rubric: Rubric
) -> list[Anchor]:
    """Return the answers of these tables and sets, seen from the folder, with their right labels.

    Of a set each altered answer has the label that it must reach, where that is the most severe
    one; its parent is good where people wrote the set. Left out is what is among the items already,
    altered or not. Raises SetupError with every problem.
    """
    paths = [find_file("adversarial", name, ".jsonl", folder) for name in names]
    sets = [path for path in paths if _is_set(path)]
    tables = [path for path in paths if path not in sets]
    texts = {row.text for row in items.answers}
    anchors = _of_tables(tables, rubric) if tables else []
    of_sets = [anchor for path in sets for anchor in _of_set(path, rubric, texts)]
    return [*(anchor for anchor in anchors if anchor[0].text not in texts), *of_sets]


def _is_set(path: Path) -> bool:
    with open_bytes(path) as file:
        return path.suffix == ".jsonl" and b'"parent"' in file.readline()


def _of_set(path: Path, rubric: Rubric, texts: Collection[str]) -> Iterator[Anchor]:
    metrics = [metric for metric in rubric.metrics if metric.has_severe]
    for item in FEATURES["stress"].parts.altered(path):
        must = item.must_worsen
        flawed = [m for m in metrics if m.parse(must.get(m.id, "")) == m.most_severe]
        if flawed and item.parent.text not in texts:
            yield item.answer, {m.id: m.label_texts[-1] for m in flawed}
            if item.is_by_hand:
                yield item.parent, {m.id: m.label_texts[0] for m in flawed}


def _of_tables(paths: Sequence[Path], rubric: Rubric) -> list[Anchor]:
    table, file = load_data(paths, rubric), ", ".join(map(str, paths))
    known = defaultdict[str, dict[str, str]](dict)
    problems = [Problem("its items have no text to label", text) for text in table.textless]
    for row in table.labels:
        if row.label and known[row.item_id].setdefault(row.metric, row.label) != row.label:
            message = "has several known labels"
            problems.append(Problem(message, file, None, row.metric, row.item_id))
    unknown = (row.item_id for row in table.answers if row.item_id not in known)
    problems += [Problem("has no known label", file, found=item_id) for item_id in unknown]
    raise_any(problems)
    return [(row, known[row.item_id]) for row in table.answers]


def draw_anchors(anchors: Sequence[Anchor], n: int, rubric: Rubric, seed: int) -> list[Anchor]:
    """Return n of these anchors, or all for 0, under ids that tell nothing. Of n, four fifths have
    a severe flaw, and each is of another question. Raises SetupError where there are fewer."""
    severe = {metric.id: metric.most_severe for metric in rubric.metrics}
    n_severe = round(SEVERE_SHARE * n)
    lacking = {True: n_severe, False: n - n_severe}
    drawn, groups = list[Anchor](), set[str]()
    for row, labels in sorted(anchors, key=lambda anchor: content_hash([seed, anchor[0].item_id])):
        is_severe = any(severe[metric] == label for metric, label in labels.items())
        if n == 0 or (lacking[is_severe] > 0 and row.group not in groups):
            lacking[is_severe] -= 1
            groups.add(row.group)
            item_id = content_hash([seed, row.item_id])[:8]
            drawn.append((replace(row, item_id=item_id, system=""), labels))
    if len(drawn) < n:
        counts = f"{lacking[True]} with a severe flaw and {lacking[False]} good ones"
        message = f"there are too few, each of another question: lacking are {counts}"
        allowed = "fewer, or more tables and sets under anchors_from (--anchors-from)"
        raise SetupError(Problem(message, found=str(n), allowed=allowed))
    return drawn
