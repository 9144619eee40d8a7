"""The labelled answers beside all answers on which a verdict is due: do they look the same?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from judgebench.errors import Problem, SetupError
from judgebench.rubric import Metric
from judgebench.stats.arrays import FloatArray
from judgebench.stats.partly_labelled import Sample, Unlike, unlike
from judgebench.studies.drawn import Cells, Mask
from judgebench.studies.study import JudgeVerdicts, Study
from judgebench.words import listed

MOST_GROUPS = 40  # values of a column that are groups
FEWEST = 20  # labelled questions from which a difference is more than chance
_FEWEST_OF_SYSTEM = 10  # labelled questions of each system, from which systems are weighed
_RARELY = 0.01
_MOST_DIFFER = 3  # traits that a sentence names
_BY_SYSTEM = "Each system weighs as it does among all answers."


def traits_of(
    study: Study, metric: Metric, judges: Sequence[JudgeVerdicts]
) -> dict[str, FloatArray]:
    """The columns of numbers by which labelled and other answers are compared (items,): how long
    the text is, and the labels of each judge that were due on every answer."""
    labelled = study.humans[metric.id].truth >= 0
    about, k = study.answers.of_kind(metric, study.rubric), len(metric.labels)
    others = study.lengths[~labelled]  # verdicts may bring along answers whose texts nobody gave
    known = not len(others) or np.mean(others > 0) >= 1 / 2
    length = "length of the text (logarithm)"
    traits: dict[str, FloatArray] = {length: study.lengths} if known else {}
    for judge in judges:
        if study.asked(judge, metric)[about].all():
            labels = study.judged(judge, metric)
            texts = [*enumerate(metric.label_texts)][1 if k == 2 else 0 :]
            given = {f"{judge.name}: {text}": labels == i for i, text in texts}
            traits |= {name: which.astype(np.float64) for name, which in given.items()}
            traits[f"{judge.name}: no label"] = (labels < 0).astype(np.float64)
    return traits


def indicators(cells: Cells, column: str) -> dict[str, FloatArray]:
    """A column of 1 and 0 for each value of a column of few values (items,)."""
    texts = cells.get(column, np.empty(0, dtype=object))
    values = sorted({*texts.tolist()} - {""})
    if len(values) > MOST_GROUPS:
        return {}
    return {f"{column} {value}": (texts == value) * 1.0 for value in values}


def differences(found: Sequence[Unlike], labelled: str = "the labelled answers") -> str:
    """A clause on what differs: `the labelled answers differ from all in …`."""
    said = listed([
        f"{one.name} ({_shown(one.labelled)} of those labelled, {_shown(one.every)} of all)"
        for one in found[:_MOST_DIFFER]
    ])  # fmt: skip
    return f"{labelled} differ from all in {said}"


def _shown(x: float) -> str:
    return f"{100 * x:.0f} %" if 0 <= x <= 1 else f"{x:.2f}"


@dataclass(frozen=True)
class LabelledPart:
    """The labelled answers beside all answers on which a verdict of a judge is due.

    `weights` (answers,) say how many answers each labelled one stands for; None where all stand for
    as many. `unlike` says in what they differ from all answers, weighed so; empty where they look
    the same, or are too few to tell.
    """

    weights: FloatArray | None
    unlike: tuple[Unlike, ...]
    by: str = ""  # a sentence on the weights


NOT_COMPARED = LabelledPart(None, ())


def labelled_part(
    study: Study, judge: JudgeVerdicts, metric: Metric, labelled: Mask
) -> LabelledPart:
    """Compare the `labelled` answers (answers,) with all on which a verdict is due.

    Where only systems differ, because as many answers of each were labelled, and each has enough
    labelled questions, every system gets the weight that it has among all answers. Raises
    SetupError for a column of the declared draw that the answers lack.
    """
    due, drawn = (study.asked if judge.asked_in_part else study.owed)(judge, metric), study.drawn
    if not (labelled & due).any() or (labelled[due].all() and not drawn.columns):
        return NOT_COMPARED
    y = np.where(labelled & due, 1.0, np.nan)
    whole = drawn.sample(y, study.clusters, study.cells)
    sample = whole.at(due)
    if sample.why_none:
        problem = Problem(sample.why_none, field="drawn", found=", ".join(drawn.columns))
        raise SetupError(problem)
    traits = {name: x[due] for name, x in traits_of(study, metric, [judge]).items()}
    systems = {name: x[due] for name, x in indicators(study.cells, "system").items()}
    found = _unlike(sample, {**traits, **systems})
    by = drawn.in_words()
    if found and not drawn.is_said and {one.name for one in found} <= set(systems):
        each = [sample.at(x > 0) for x in systems.values()]
        if min(part.units for part in each) >= _FEWEST_OF_SYSTEM:
            strata = np.unique(study.cells["system"][due].astype(str), return_inverse=True)[1]
            sample, by = replace(sample, strata=strata), _BY_SYSTEM
            found = unlike(sample, traits)
    weights = None
    if np.ptp(sample.w[sample.labelled]) > 0:
        weights = np.zeros(len(due))
        weights[due] = sample.w
    return LabelledPart(weights, tuple(found), by)


def _unlike(sample: Sample, columns: Mapping[str, FloatArray]) -> list[Unlike]:
    """The traits in which the labelled answers differ from all. Of few questions, the groups of
    which none is labelled, though chance would leave them out in 1 % of draws at most."""
    if sample.units >= FEWEST:
        return unlike(sample, columns)
    shares = {name: float(x.mean()) for name, x in columns.items() if set(np.unique(x)) <= {0, 1}}
    chance = {
        name: (1 - share) ** sample.units
        for name, share in shares.items()
        if not (columns[name] * sample.labelled).any()
    }
    return [Unlike(name, 0.0, shares[name], p) for name, p in chance.items() if p < _RARELY]


def population_notes(study: Study) -> Iterator[str]:
    """A sentence on each metric whose labelled answers do not look like all answers on which a
    verdict is due."""
    for metric in study.rubric.metrics:
        parts = [
            labelled_part(study, judge, metric, study.humans[metric.id].truth >= 0)
            for judge in study.real_judges
        ]
        if differing := next((part.unlike for part in parts if part.unlike), None):
            yield f"{metric.title}: {differences(differing)}. Every number is of the labelled ones."
