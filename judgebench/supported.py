"""What files support today: the next command for each use, and what is missing for the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from shlex import quote

from judgebench.features import FEATURES
from judgebench.studies.confidence import confidence
from judgebench.studies.study import Study
from judgebench.text import listed

_ANY = "COLUMN"
_BENCH, _RUN = "two-judges", "runs/two-judges"
_NEW = "NEW-LABELS NEW-VERDICTS"
_PEOPLE = "labels of people"
_PAIRS = "a second annotator on the same answers"
_JUDGE = "a judge's verdicts"
_NOBODY = "verdicts on answers that nobody labelled"


@dataclass(frozen=True)
class Support:
    """One use of files."""

    use: str
    command: str  # the next one; empty where the files do not support the use
    adds: str = ""  # what is missing, or what one more column or annotator would add

    def lines(self, width: int) -> Iterator[str]:
        """Return the use in a column of that width, and what is to be done about it."""
        start = f"  {self.use:{width}}  {'yes' if self.command else 'no ':3}  "
        if self.command:
            yield start + self.command
            start = " " * len(start)
        if self.adds:
            yield start + self.adds


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
    width = max((len(support.use) for support in supports), default=0)
    for support in supports:
        yield from support.lines(width)


def supports_of(study: Study, origin: StudyOrigin) -> list[Support]:
    """Return every use of a study, supported or not."""
    arguments, judged = origin.arguments, [] if origin.judges else [_JUDGE]
    labelled = [] if study.n_labels else [_PEOPLE]
    paired = labelled or ([] if _n_pairs(study) else [_PAIRS])
    compared = (labelled if study.has_gold else paired) + judged
    ordered = [] if any(m.has_severe for m in study.rubric.metrics) else [_order(study, origin)]
    declarations = _declarations(study, origin)
    watch = f"after REPLACE or ASSIST: judgebench watch judge.json {_NEW}"
    stressed = origin.asks_models and "stress" in FEATURES
    third = "a third annotator: with two, a judge must match both"
    return [
        *_first_steps(study, origin),
        *([_support("stress test", f"stress {origin.bench}", [])] if stressed else ()),
        _support(
            "agreement between annotators", f"align {arguments}", paired,
            third if len(study.makers) == 2 else "",
        ),
        _support("alignment of judges", f"align {arguments}", labelled + judged),
        _support("decision", f"decide {arguments}", compared, declarations),
        *_where_it_is_sure(study, origin, compared),
        _support("filter for severe answers", f"decide {arguments}", compared + ordered),
        _support(
            "rates of labels", f"estimate {arguments}", labelled + judged,
            "" if _has_unlabelled(study) else f"{_NOBODY}: narrower intervals than labels alone",
        ),
        _support(
            "watch of a certificate", f"decide {arguments} --certificate judge.json", compared,
            "; ".join(filter(None, (declarations, watch))),
        ),
        _support("comparison of two judges", *_comparison(origin, labelled)),
    ]  # fmt: skip


def _support(use: str, command: str, missing: Iterable[str], adds: str = "") -> Support:
    if needs := list(dict.fromkeys(missing)):
        return Support(use, "", f"needs {listed(needs)}")
    return Support(use, f"judgebench {command}", adds)


def _first_steps(study: Study, origin: StudyOrigin) -> Iterator[Support]:
    """What comes before the run folder of a benchmark, or where answers wait for a judge."""
    if origin.bench:
        yield _support("verdicts of its judges", f"run {origin.bench}", [])
    elif not origin.judges and any(answer.text for answer in study.answers):
        step = "a bench.yaml that names a model, and a template for labels"
        yield _support("judging by a model", f"init {origin.arguments} --to mine", [], step)


def _where_it_is_sure(
    study: Study, origin: StudyOrigin, missing: Sequence[str]
) -> Iterator[Support]:
    """What a judge may decide alone, where something says how sure it is."""
    signals = (
        confidence(study, judge, metric).signal
        for judge in study.real_judges
        for metric in study.rubric.metrics
        if judge.judges(metric)
    )
    if origin.gives_probabilities or any(signals):
        needs = _declarations(study, origin).replace("for REPLACE, ", "")
        yield _support(
            "deciding alone where it is sure", f"decide {origin.arguments}", missing, needs
        )


def _n_pairs(study: Study) -> int:
    """The largest number of items of a metric that have two labels."""
    counts = ((humans.ratings.values >= 0).sum(axis=1) for humans in study.humans.values())
    return max((int((n_labels >= 2).sum()) for n_labels in counts), default=0)


def _has_unlabelled(study: Study) -> bool:
    """True where no metric has a label on every item."""
    n_labelled = (len(humans.ratings.rows) for humans in study.humans.values())
    return max(n_labelled, default=0) < len(study.answers)


def _order(study: Study, origin: StudyOrigin) -> str:
    """What makes a label severe; the direction is nobody's guess."""
    unordered = [metric for metric in study.rubric.metrics if metric.order]
    if not unordered or origin.bench:
        return "a metric with labels from the least to the most severe in the rubric"
    order = quote(f"{unordered[0].title}: BEST < … < WORST")
    return f"the order of labels (--order {order})"


def _declarations(study: Study, origin: StudyOrigin) -> str:
    """What REPLACE waits for, in the options that say it."""
    options = []
    if any(metric.order for metric in study.rubric.metrics):
        options.append(_order(study, origin))
    if not study.knows_questions:
        column = "" if origin.bench else f"--question {quote(study.unconfirmed_question or _ANY)}, "
        options.append(f"which items share a question ({column}--independent-items)")
    if study.config.blind == "unknown":
        options.append("whether annotators saw a model's label (--blind yes, --blind no)")
    return f"for REPLACE, say {listed(options)}" if options else ""


def _comparison(origin: StudyOrigin, labelled: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The command that compares the first two judges, and what is missing for it."""
    if len(origin.judges) < 2:
        return "", [*labelled, "the verdicts of a second judge on the same answers"]
    run = origin.arguments if origin.bench else _RUN
    compare = f"compare {' '.join(quote(f'{run}:{judge}') for judge in origin.judges[:2])}"
    if origin.bench:
        return compare, labelled
    first = f"init {origin.arguments} --to {_BENCH}"
    then = f"judgebench run {_BENCH}/bench.yaml --run {_RUN}"
    return f"{first} && {then} && judgebench {compare}", labelled
