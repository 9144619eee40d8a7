"""What files support today: the next command for each use, and what is missing for the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote

from judgebench.features import FEATURES
from judgebench.studies.confidence import confidence
from judgebench.studies.study import Study

# A use, its command, the keys of what it needs, of advice where it is supported, and of what only
# some files have.
_USES = (
    ("verdicts of its judges", "run {bench}", "", "", "bench"),
    ("stress test", "stress {bench}", "", "", "model"),
    ("judging by a model", "init {files} --to mine", "", "template", "answers"),
    ("agreement between annotators", "align {files}", "labels pairs", "third", ""),
    ("alignment of judges", "align {files}", "labels judge", "", ""),
    ("decision", "decide {files}", "labels bar judge", "order question blind", ""),
    ("deciding alone where it is sure", "decide {files}", "labels bar judge sure", "", ""),
    ("filter for severe answers", "decide {files}", "labels bar judge severe", "", ""),
    ("rates of labels", "estimate {files}", "labels judge", "unlabelled", ""),
    (
        "watch of a certificate", "decide {files} --certificate judge.json", "labels bar judge",
        "watch", "",
    ),
    (
        "comparison of two judges", "compare {files}:{judges[0]} {files}:{judges[1]}",
        "labels two", "", "bench",
    ),
    (
        "comparison of two judges",
        "init {files} --to two-judges && "
        "judgebench run two-judges/bench.yaml --run runs/two-judges && "
        "judgebench compare runs/two-judges:{judges[0]} runs/two-judges:{judges[1]}",
        "labels two", "", "tables",
    ),
)  # fmt: skip
_LACKING = {
    "labels": "labels of people",
    "pairs": "a second annotator on the same answers",
    "bar": "a second annotator on the same answers",
    "judge": "a judge's verdicts",
    "two": "the verdicts of a second judge on the same answers",
    "sure": "a judge's probabilities, scores or repeated draws",
    "severe": "which labels are worse (--order 'METRIC: BEST < … < WORST', `order` in a rubric)",
    "template": "a bench.yaml that names a model, and a template for labels",
    "third": "a third annotator: with two, a judge must match both",
    "unlabelled": "verdicts on answers that nobody labelled: narrower intervals than labels alone",
    "watch": "after REPLACE or ASSIST: judgebench watch judge.json NEW-LABELS NEW-VERDICTS",
    "order": "REPLACE requires the order of labels (--order, or `order` in a rubric)",
    "question": "REPLACE requires each item's question (--question COLUMN, --independent-items)",
    "blind": "REPLACE requires to know if annotators saw a model's label (--blind yes, --blind no)",
}


@dataclass(frozen=True)
class Support:
    """One use of files."""

    use: str
    command: str  # the next one; empty where the files do not support the use
    adds: str = ""  # what is missing, or what one more column or annotator would add


@dataclass(frozen=True)
class StudyOrigin:
    """Where a study comes from, as commands take it."""

    arguments: str  # tables with their options, or a run folder
    judges: Sequence[str]
    bench: str = ""  # the file whose run makes the run folder; empty of tables
    asks_models: bool = False  # which a stress test asks again
    gives_probabilities: bool = False


def support_lines(supports: Sequence[Support]) -> Iterator[str]:
    """Return the supports as a table; nothing where there are none."""
    if supports:
        yield "These files support:"
    for support in supports:
        start = f"  {support.use:31}  {'yes' if support.command else 'no '}  "
        for text in filter(None, (support.command, support.adds)):
            yield start + text
            start = " " * len(start)


def supports_of(study: Study, origin: StudyOrigin) -> list[Support]:
    """Return every use of a study, supported or not."""
    supports = []
    has = _facts(study, origin)
    for use, command, needs, adds, only in _USES:
        if not has.get(only, True):
            continue
        missing, advice = (
            "; ".join(_LACKING[key] for key in keys.split() if not has.get(key))
            for keys in (needs, adds)
        )
        if missing:
            supports.append(Support(use, "", f"needs {missing}"))
        else:
            command = command.format(
                files=origin.arguments, bench=origin.bench, judges=[*map(quote, origin.judges)]
            )
            supports.append(Support(use, f"judgebench {command}", advice))
    return supports


def _facts(study: Study, origin: StudyOrigin) -> dict[str, object]:
    """Return what a study has, true or false, by the keys of the uses."""
    humans, metrics = study.humans.values(), study.rubric.metrics
    pairs = any(((h.ratings.values >= 0).sum(axis=1) >= 2).any() for h in humans)
    signals = (
        confidence(study, judge, metric).signal
        for judge in study.real_judges
        for metric in metrics
        if judge.judges(metric)
    )
    return {
        "bench": origin.bench,
        "tables": not origin.bench,
        "model": origin.asks_models and "stress" in FEATURES,
        "answers": not (origin.bench or origin.judges) and any(x.text for x in study.answers),
        "labels": study.n_labels,
        "pairs": pairs,
        "bar": pairs or study.has_gold,
        "judge": origin.judges,
        "two": origin.judges[1:],
        "sure": origin.gives_probabilities or any(signals),
        "severe": any(metric.has_severe for metric in metrics),
        "third": len(study.makers) != 2,
        "unlabelled": all(len(h.ratings.rows) < len(study.answers) for h in humans),
        "order": not any(metric.order for metric in metrics),
        "question": study.knows_questions,
        "blind": study.config.blind != "unknown",
    }
