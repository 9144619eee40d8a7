"""Two studies in, one Comparison out.

Every verdict that differs between A and B, item by item.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from judgebench.alignment.alignment import ALIGNED
from judgebench.alignment.alignment_part import flat
from judgebench.alignment.caveats import few_questions
from judgebench.alignment.differences import corrected
from judgebench.comparison.differences import (
    SIDES,
    Compared,
    Pair,
    common_metrics,
    differences,
    left_out_lines,
    left_out_rows,
    matched,
    metric_lines,
    of_the_runs,
    pairs_of,
    truth_changes,
    truth_line,
    unpaired_lines,
)
from judgebench.comparison.result import Changed, Comparison, Flips, PairSummary
from judgebench.errors import Problem, SetupError, some
from judgebench.records import Estimate
from judgebench.results.rows import Results, Row
from judgebench.runs.features import analyses
from judgebench.runs.open import opened_study
from judgebench.studies.labelled import population_notes
from judgebench.studies.study import Study
from judgebench.words import counted

# In a head: what a judge is, and not how fast it was asked.
_OF_JUDGES = ("backend", "prompt", "decoding", "rubric")
_TEXTS = {
    "prompt.hash": "the text of the prompt", "rubric.hash": "the text of the rubric",
    "backend.sha256": "the file of the model",
}  # fmt: skip
_MOST_SETTINGS = 6
RIGHT = ("A", "B", "neither", "unknown")


def flips(compared: Compared) -> Iterator[Row]:
    """The items whose label differs, also where one of both gave none: `label_a`, `label_b`, the
    `truth` and whose label is `right`. The value is the severity by B minus that by A.

    First those that A has right and B has not, then those with the largest shift.
    """
    study, metric = compared.study, compared.metric
    one, two = compared.judged()
    truth = study.humans[metric.id].truth
    differ = np.flatnonzero(one != two)
    right = np.where(truth < 0, 3, np.where(one == truth, 0, np.where(two == truth, 1, 2)))
    shift = np.zeros(len(one))
    if metric.kind == "ordinal":
        severity = np.array([*metric.severities, 0])
        shift = np.where((one >= 0) & (two >= 0), severity[two] - severity[one], np.nan)
    far = np.nan_to_num(np.abs(shift), nan=np.inf)
    order = differ[np.lexsort((-far[differ], right[differ]))]
    label_texts = [*metric.label_texts, ""]  # -1 is no label
    texts = [[label_texts[i] for i in labels.tolist()] for labels in (one, two, truth)]
    ids = list(study.answers.item_ids())
    for row in order.tolist():
        keys = {
            "who": compared.pair[0].name, "item_id": ids[row], "label_a": texts[0][row],
            "label_b": texts[1][row], "truth": texts[2][row], "right": RIGHT[int(right[row])],
        }  # fmt: skip
        known = metric.kind == "ordinal" and not np.isnan(shift[row])
        moved = Estimate(float(shift[row]), n=1) if known else Estimate(None, reason="")
        yield Row("flip", "severity_shift", moved, compared.pair[1].name, metric.id, keys)


# Of one judge and statistic, p values are corrected over the metrics.
_FAMILY = ("judge", "who", "failures", "of")
NOT_MEASURED = "No answer has a human label: only what changed is known, not what is right."


def compare_studies(a: Study, b: Study, judges: tuple[str, str] = ("", "")) -> Comparison:
    """B minus A on the answers that both judges were asked about.

    Both are scored against the human labels of B, or of A where B has none. Raises SetupError where
    the two have no answer or metric in common, where labels of a metric differ, or where nothing
    says which judges are compared.
    """
    pairs = pairs_of(a, b, judges)
    metrics = common_metrics(a, b)
    common, left_out = matched(a, b)
    differing = truth_changes(a, b, common, metrics)
    side = 1 if b.n_labels or not a.n_labels else 0
    holder = (a, b)[side]
    shared = holder.rubric.only([metric.id for metric in metrics])
    base = replace(holder.only(common[side]), rubric=shared)
    rows = [*left_out_rows(left_out)]
    rows += [Row("truth", "truth_differs", Estimate(n), "", m) for m, n in differing.items()]
    titles = {metric.id: metric.title for metric in metrics}
    compared = [
        *_which(a, b, len(common[0]), pairs),
        *left_out_lines(left_out),
        truth_line(differing, SIDES[side], titles) if base.n_labels else NOT_MEASURED,
    ]
    summaries, flipped, decided = [], [], []
    alike: dict[bytes, tuple[Study, list[Pair]]] = {}
    for pair in pairs:
        asked, left = _both_asked(base, pair)
        who = "" if len(pairs) == 1 else f"{pair[1].name}: "
        compared += left_out_lines(left, who)
        rows += left_out_rows(left, pair[1].name)
        on = alike.setdefault(asked.tobytes(), (base.only(np.flatnonzero(asked)), []))
        on[1].append(pair)
        of_metrics = [Compared(on[0], pair, metric) for metric in shared.metrics]
        found = [row for one in of_metrics for row in differences(one)]
        rows += [*found, *corrected(found, _FAMILY), *of_the_runs(on[0], pair)]
        flipped += [row for one in of_metrics for row in flips(one)]
        summaries.append(
            PairSummary(pair[0].name, pair[1].name, len(on[0].answers), _settings(pair))
        )
    for study, those in alike.values():
        decided += decisions((a, b), study, those)
    rows += decision_rows(decided)
    gaps = tuple(_of_either(a.gaps, b.gaps))
    return Comparison(
        name=b.name if a.name == b.name else f"{a.name} and {b.name}",
        rubric=shared,
        pairs=tuple(summaries),
        found=Results(tuple(rows)),
        flips=Flips(Results(tuple(flipped)), gaps),
        decisions=tuple(decided),
        compared=tuple(compared),
        notes=(
            *metric_lines(a, b, metrics),
            *unpaired_lines(a, b, pairs),
            *population_notes(holder),
            *_of_either(a.notes, b.notes),
            *few_questions(base),
        ),
        n_answers=max(len(study.answers) for study, _ in alike.values()),
        runs=(_run(a), _run(b)),
        gaps=gaps,
    )


def _run(study: Study) -> str:
    return ", ".join(filter(None, (study.name, study.run)))


def _which(a: Study, b: Study, n: int, pairs: Sequence[Pair]) -> Iterator[str]:
    """Sentences on what A and B are, and on how many answers."""
    for place, (side, study) in enumerate(zip(SIDES, (a, b), strict=True)):
        names = ", ".join(pair[place].name for pair in pairs)
        yield f"{side}: {names} in {_run(study)}."
    changed = {pair[1].name: some(said, _MOST_SETTINGS) for pair in pairs if (said := _said(pair))}
    if changed:
        whose = (f"{name}: {said}" if len(pairs) > 1 else said for name, said in changed.items())
        yield f"Settings that differ: {'; '.join(whose)}."
    yield f"{counted(n, 'answer')} with the same question and text in both; B − A on these answers."


def _said(pair: Pair) -> list[str]:
    """`model gpt-4 → gpt-5` for each setting that may change what a judge says, texts by name
    alone."""
    found = []
    for key, *values in _settings(pair):
        root, _, last = key.partition(".")
        if key in _TEXTS:
            found.append(_TEXTS[key])
        elif root in _OF_JUDGES:
            a, b = (value if value not in ("", "None") else "none" for value in values)
            found.append(f"{root if last in ('', 'name') else last} {a} → {b}")
    return found


def _of_either(a: Sequence[str], b: Sequence[str]) -> Iterator[str]:
    """The sentences on A and on B, and on which of them where it is only one."""
    for note in dict.fromkeys((*a, *b)):
        only = "" if note in a and note in b else "In A: " if note in a else "In B: "
        yield f"{only}{note}"


def _both_asked(base: Study, pair: Pair) -> tuple[Any, Mapping[str, Sequence[str]]]:
    """Flags (items,) of the answers that both were asked about, and the ids of the others.

    Raises SetupError where there is none.
    """
    asked = [base.asked(judge) for judge in pair]
    both = asked[0] & asked[1]
    if not both.any():
        message = "no answer has a verdict of both judges"
        names = f"{pair[0].name} {int(asked[0].sum()):,}, {pair[1].name} {int(asked[1].sum()):,}"
        raise SetupError(Problem(message, base.name, field="verdicts", found=names))
    ids = [] if both.all() else list(base.answers.item_ids())
    left = {
        f"not_asked_{side.lower()}": [ids[row] for row in np.flatnonzero(~one)]
        for side, one in zip(SIDES, asked, strict=True)
        if ids
    }
    return both, left


def _settings(pair: Pair) -> tuple[tuple[str, str, str], ...]:
    """The settings that are not the same in both judges."""
    a, b = ({key: str(x) for key, x in flat(judge.about or {})} for judge in pair)
    return tuple(
        (key, a.get(key, ""), b.get(key, ""))
        for key in dict.fromkeys((*a, *b))
        if a.get(key) != b.get(key)
    )


# --- what is decided about both on the same answers -----------------------------------------------


def decisions(studies: tuple[Study, Study], base: Study, pairs: Sequence[Pair]) -> list[Changed]:
    """The decisions on each pair of judges on the answers of `base`, whose human labels and
    baselines serve for both; nothing where nothing decides.

    Each side keeps its own stress test.
    """
    found = [
        _decided(study, base, {pair[i].name for pair in pairs}) for i, study in enumerate(studies)
    ]
    changed = []
    for a, b in pairs:
        for metric in base.rubric.metrics:
            sides = [
                (results, {"judge": judge.name, "metric": metric.id})
                for results, judge in zip(found, (a, b), strict=True)
            ]
            made = [results.select("decision", **about) for results, about in sides]
            if not all(made):
                continue
            one, two = (
                {
                    (row["outcome"], row.statistic): row
                    for row in results.select("condition", who="", **about)
                }
                for results, about in sides
            )
            first, second = (rows[0] for rows in made)
            changed.append(
                Changed(
                    b.name, a.name, metric.id, (first["outcome"], second["outcome"]),
                    (first.estimate.reason, second.estimate.reason), (one, two),
                )
            )  # fmt: skip
    return changed


def _decided(study: Study, base: Study, names: set[str]) -> Results:
    """The rows of the decisions on the judges of `study`, on the answers of `base`."""
    controls = [j for j in base.judges if j.kind == "control" and j.name not in names]
    judges = [j for j in study.judges if j.kind != "control" or j.name in names]
    beside = {key: value for key, value in study.beside.items() if key != ALIGNED}
    if len(base.rubric.metrics) < len(study.rubric.metrics):
        beside.pop("stress", None)  # its demands are on metrics that are not compared
    side = replace(base, judges=(*judges, *controls), beside=beside)
    found = analyses(side, "decide", "stress").get("decide")
    return found.results if found else Results()


def decision_rows(changed: Sequence[Changed]) -> Iterator[Row]:
    """The outcomes of both sides with their reasons, and every condition of both."""
    for one in changed:
        about = (one.judge, one.metric)
        for place, side in enumerate(SIDES):
            keys = {
                "who": one.who, "run": side, "outcome": one.outcomes[place],
                "changed": "yes" if one.differs else "no",
            }  # fmt: skip
            reason = Estimate(None, reason=one.reasons[place])
            yield Row("decision", "", reason, *about, keys)
        for place, side in enumerate(SIDES):
            for row in one.conditions[place].values():
                more = {**row.keys, "who": one.who, "run": side}
                yield Row("condition", row.statistic, row.estimate, *about, more)


def compare(
    a: Study | str | Path,
    b: Study | str | Path,
    *,
    judges: tuple[str, str] = ("", ""),
    rule: Any | None = None,
) -> Comparison:
    """Compare A with B on the same answers: B minus A with intervals, the decisions that changed,
    the verdicts that flipped.

    Both are studies or run folders, also the same one twice. `judges` names one of each; without,
    judges of the same name are compared, or the only judge of each. Both are scored against the
    human labels of B. Raises SetupError where there is nothing to
    compare.

    >>> import judgebench as jb
    >>> found = jb.compare("runs/small", "runs/small")
    >>> found.difference("accuracy", "my-judge", "empathy").value
    0.0
    >>> len(found.flips.to_frame())
    0
    """
    first = opened_study(a)
    same = isinstance(b, str | Path) and a == b
    second = first if same else opened_study(b)
    if first.name == second.name and first is not second:  # the folders tell them apart
        first, second = (
            study if isinstance(given, Study) else replace(study, run=_in_folder(study, given))
            for study, given in ((first, a), (second, b))
        )
    if rule is not None:
        first, second = (replace(x, beside={**x.beside, "decide": rule}) for x in (first, second))
    return compare_studies(first, second, judges)


def _in_folder(study: Study, folder: str | Path) -> str:
    return ", ".join(filter(None, (study.run, str(folder))))
