"""Items whose right labels are known: of tables and of sets of altered answers. They stand among
the others of everybody, all of them (gold items) or a draw (anchors)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from judgebench.data.load import load_data
from judgebench.errors import Problem, SetupError, raise_any
from judgebench.features import FEATURES
from judgebench.files import find_file, open_bytes
from judgebench.records import Answer, Dataset, content_hash
from judgebench.rubric import Rubric

SHIPPED = "consensus-violations"  # the set of altered answers that anchors are drawn from
Known = tuple[Answer, Mapping[str, str]]  # an item and its right labels by metric


def read_known(names: Sequence[str], folder: Path, items: Dataset, rubric: Rubric) -> list[Known]:
    """The items of these tables and sets, seen from the folder, with their right labels.

    Of a set each altered answer has the label that it must reach, where that is the most severe
    one; its parent is good where people wrote the set. Left out are those of an answer that is
    among the items. Raises SetupError with every problem.
    """
    paths = [find_file("adversarial", name, ".jsonl", folder) for name in names]
    sets = [path for path in paths if _is_set(path)]
    tables = [path for path in paths if path not in sets]
    known = _of_tables(tables, items, rubric) if tables else []
    texts = {row.text for row in items.answers}
    return [*known, *(one for path in sets for one in _of_set(path, rubric, texts))]


def _is_set(path: Path) -> bool:
    with open_bytes(path) as file:
        return path.suffix == ".jsonl" and b'"parent"' in file.readline()


def _of_set(path: Path, rubric: Rubric, texts: set[str]) -> Iterator[Known]:
    severe = [metric for metric in rubric.metrics if metric.has_severe]
    for item in FEATURES["stress"].parts.altered(path):
        must = item.must_worsen
        flawed = [m for m in severe if m.parse(must.get(m.id, "")) == m.most_severe]
        if flawed and item.parent.text not in texts:
            yield item.answer, {m.id: m.label_texts[-1] for m in flawed}
            if item.is_by_hand:
                yield item.parent, {m.id: m.label_texts[0] for m in flawed}


def _of_tables(paths: Sequence[Path], items: Dataset, rubric: Rubric) -> list[Known]:
    table, file = load_data(paths, rubric), ", ".join(map(str, paths))
    own = {row.item_id for row in items.answers}
    gold = defaultdict[str, dict[str, str]](dict)
    problems = [Problem("its items have no text to label", text) for text in table.textless]
    for given in table.labels:
        if given.label and gold[given.item_id].setdefault(given.metric, given.label) != given.label:
            wrong = "has several known labels"
            problems.append(Problem(wrong, file, None, given.metric, given.item_id))
    for name in (row.item_id for row in table.answers):
        if name in own:
            problems.append(Problem("is one of the items", file, found=name))
        if name not in gold:
            problems.append(Problem("has no known label", file, found=name))
    raise_any(problems)
    return [(row, gold[row.item_id]) for row in table.answers]


def draw_anchors(known: Sequence[Known], n: int, rubric: Rubric, seed: int) -> list[Known]:
    """n of these items, half of them with a severe flaw, each of another question, under ids that
    tell nothing. Raises SetupError where there are fewer."""
    severe = {metric.id: metric.most_severe for metric in rubric.metrics}
    lacking = {True: n // 2, False: n - n // 2}
    drawn, groups = list[Known](), set[str]()
    for row, labels in sorted(known, key=lambda one: content_hash([seed, one[0].item_id])):
        is_flawed = any(severe[metric] == label for metric, label in labels.items())
        if lacking[is_flawed] and row.group not in groups:
            lacking[is_flawed] -= 1
            groups.add(row.group)
            name = content_hash([seed, row.item_id])[:8]
            drawn.append((replace(row, item_id=name, system=""), labels))
    if any(lacking.values()):
        counts = f"{lacking[True]} with a severe flaw and {lacking[False]} good ones"
        message = f"there are too few, each of another question: lacking are {counts}"
        raise SetupError(Problem(message, field="anchors", found=str(n)))
    return drawn
