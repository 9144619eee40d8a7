"""A judge whose verdicts somebody has (they are looked up, and no model is called), and annotators
in a judge's place, held against the reference labels of the others.

A row says that the judge was asked: a text that is no label is `unparsed`, a refusal `refused`, a
blank cell `failed`. About an item without a row it was never asked: numbers are of what was, and
nothing is decided, as whoever leaves out the hard items looks better, unless `expected: rows` says
that only a part was meant for the judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from judgebench.data.dataset import Position, VerdictCell
from judgebench.data.load import JudgeRows
from judgebench.data.rows import WHOLE_REPLY
from judgebench.errors import Problem, SetupError, nearest, raise_any, shorten, some
from judgebench.judges.config import (
    CalibrationConfig,
    JuryConfig,
    RecordedConfig,
    threshold_problems,
)
from judgebench.judges.control import codes_of, with_codes
from judgebench.judges.judge import Task
from judgebench.judges.replies import ALONE, Reading, looks_like_refusal, read_reply
from judgebench.records import (
    Answer,
    AnswerKind,
    HumanLabel,
    Showing,
    Status,
    Verdict,
    content_hash,
    is_slot,
)
from judgebench.rubric import Rubric
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.studies.answers import IndexedAnswers, keys_of
from judgebench.studies.reference_labels import TruthConfig, fits, settle
from judgebench.studies.study import RECORDED, JudgeVerdicts
from judgebench.studies.verdicts import weighed

Rows = Mapping[str, Sequence[tuple[str, VerdictCell]]]  # by item: what is said on each metric
_NEAR_AMONG = 5_000  # items among which one that is spelt alike is looked for
# Where the metrics of one verdict ended differently, the first of these is its status.
_BY_WEIGHT = (Status.UNPARSED, Status.REFUSED, Status.FAILED, Status.SKIPPED)


class RecordedJudge:
    """The verdicts of one judge in a file or a table; a `Judge`.

    `rows` holds what is said of each item, of the study or `beside` it, such as altered answers. A
    judge owes a label on every metric that its rows name.
    """

    def __init__(
        self, config: RecordedConfig, rubric: Rubric, rows: Rows, file: str,
        beside: Collection[str] = (),
    ) -> None:  # fmt: skip
        self.name, self._config, self._rubric, self._rows = config.name, config, rubric, rows
        named = {metric for said in rows.values() for metric, _ in said}
        replies = WHOLE_REPLY in named
        self.metrics = [m.id for m in rubric.metrics if replies or m.id in named]
        self._beside = frozenset(beside)
        content = [[item, [[m, *one.content] for m, one in said]] for item, said in rows.items()]
        n_draws = max((len({one.repeat for _, one in said}) for said in rows.values()), default=1)
        self._about = {
            "judge": RECORDED,
            "file": file,
            "rows": {"n": len(rows), "hash": content_hash(content)},
            **({"draws": n_draws, "ties": config.ties} if n_draws > 1 else {}),
            "metrics": self.metrics,
            "expected": config.expected,
            **({"reply": config.reply, "thresholds": config.thresholds} if replies else {}),
            "rubric": {"name": rubric.name, "hash": rubric.content_hash},
            **({"about": dict(config.about)} if config.about else {}),
        }
        self.signature = content_hash({k: v for k, v in self._about.items() if k != "about"})

    @property
    def n_rows(self) -> int:
        """The number of items on which it has a verdict."""
        return len(self._rows)

    def describe(self) -> Mapping[str, Any]:
        return self._about

    def judge(self, tasks: Iterable[Task]) -> Iterator[Verdict]:
        """A verdict on each answer that has a row."""
        for task in tasks:
            said = self._rows.get(task.answer.item_id)
            if said is not None and self._owed(task.answer.kind):
                yield self._of_draws(task, said)

    def close(self) -> None:
        """Nothing to give back."""

    def _owed(self, kind: AnswerKind) -> list[str]:
        """The metrics of which labels are due on such rows."""
        metrics = self._rubric.metrics
        alone = len(self._rubric.kinds) == 1
        return [m.id for m in metrics if m.id in self.metrics and (alone or m.of == kind)]

    def unknown(self, items: Collection[str]) -> Iterator[Problem]:
        """A warning about rows on none of the `items`."""
        known = self._beside.union(items)
        if unknown := [item for item in self._rows if item not in known]:
            message = f"{self.name} has rows for {len(unknown):,} items that are not in the data"
            lacking = any(item not in self._rows for item in items)
            near = nearest(unknown[0], list(items)[:_NEAR_AMONG]) if lacking else ""
            yield Problem(message, found=f"{unknown[0]}{near}")

    def _of_draws(self, task: Task, said: Sequence[tuple[str, VerdictCell]]) -> Verdict:
        """The verdict of an item, of several draws by their majority; those that gave no label do
        not vote. What each said stands in `shown`."""
        draws: dict[str, dict[str, VerdictCell]] = {}
        for metric, cell in said:
            draws.setdefault(cell.repeat, {})[metric] = cell
        each = [self._verdict(task, draw) for draw in draws.values()]
        if len(each) == 1:
            return each[0]
        votes = {
            m: [v.labels[m] for v in each if m in v.labels] for m in self._owed(task.answer.kind)
        }
        labels = {m: self._majority(m, texts) for m, texts in votes.items() if texts}
        means = {m: _mean([p[m] for v in each if (p := v.probabilities) and m in p]) for m in votes}
        made = replace(
            each[0], status=Status.OK, reason="",
            labels={m: label for m, label in labels.items() if label},
            probabilities={m: mean for m, mean in means.items() if mean} or None,
            raw="; ".join(dict.fromkeys(v.raw for v in each if v.raw)),
            shown=tuple(s for v in each for s in v.shown or (Showing(0, 1, v.labels),)),
            rationale="\n".join(dict.fromkeys(v.rationale for v in each if v.rationale)),
        )  # fmt: skip
        if len(labels) < len(votes):  # no draw has a label on some metric
            ended = {v.status: v.reason for v in reversed(each)}
            status = next(s for s in _BY_WEIGHT if s in ended)
            return replace(made, status=status, reason=ended[status])
        if tied := [m for m, label in labels.items() if not label]:
            reason = f"its draws are tied on {', '.join(tied)}"
            return replace(made, status=Status.UNPARSED, reason=reason)
        return made

    def _majority(self, metric_id: str, texts: Sequence[str]) -> str:
        """The label that most draws gave; empty where a tie leaves none. Abstentions do not vote
        beside labels."""
        metric = next(m for m in self._rubric.metrics if m.id == metric_id)
        counts = Counter([text for text in texts if metric.index(text) >= 0] or texts)
        most = max(counts.values())
        tied = sorted((text for text, n in counts.items() if n == most), key=metric.index)
        ties = TruthConfig(ties=self._config.ties).ties_of(metric)
        return tied[-1 if ties == "upper" else 0] if len(tied) == 1 or ties != "none" else ""

    def _verdict(self, task: Task, said: Mapping[str, VerdictCell]) -> Verdict:
        whole = said.get(WHOLE_REPLY)
        labels = {metric: one.label for metric, one in said.items() if one.label is not None}
        reading = Reading(labels)
        if whole:
            reading = Reading(problems=("no reply",))
            if whole.raw:
                (reading,) = read_reply(
                    self._config.reply, whole.raw, self._rubric, ALONE, [task.answer],
                    self._config.thresholds,
                )  # fmt: skip
        lacking = [m for m in self._owed(task.answer.kind) if m not in reading.labels]
        ended = [self._ended(whole or said.get(metric), reading) for metric in lacking]
        texts = dict.fromkeys(one.text or one.raw for one in said.values())
        reason = reading.reason or "; ".join(self._why(m, said) for m in lacking)
        shares = {metric: one.probabilities for metric, one in said.items() if one.probabilities}
        return Verdict(
            task.answer.item_id, task.content_hash or task.answer.content_hash, self.name,
            self.signature, next((s for s in _BY_WEIGHT if s in ended), Status.OK), reading.labels,
            shares or None, reason=reason if lacking else "",
            raw="; ".join(filter(None, texts)),
            shown=tuple(self._shown(said)),
            rationale="\n".join(dict.fromkeys(x.rationale for x in said.values() if x.rationale)),
        )  # fmt: skip

    def _why(self, metric: str, said: Mapping[str, VerdictCell]) -> str:
        """Say what stands where a label of the metric should, and which labels are allowed."""
        text = said[metric].text if metric in said else ""
        known = self._rubric.find(metric) if text else None
        allowed = some(known.options, 8) if known else ""
        return str(Problem(f"no label for {metric}", found=text and shorten(text), allowed=allowed))

    def _shown(self, said: Mapping[str, VerdictCell]) -> Iterator[Showing]:
        """The response of a pair that stood first, and the labels of the two as they stood."""
        for metric in self._rubric.metrics:
            if (one := said.get(metric.id)) and one.shown_first and one.label:
                place = metric.label_texts.index(one.shown_first)
                label = metric.swapped(one.label) if place else one.label
                yield Showing(place, 2, {metric.id: label})

    def _ended(self, said: VerdictCell | None, reading: Reading) -> Status:
        """The status of a metric without a label."""
        if said is None:
            return Status.FAILED
        if said.status not in (None, Status.OK):
            return said.status
        if text := said.text or said.raw:
            refused = reading.refusal or (not reading.labels and looks_like_refusal(text))
            return Status.REFUSED if refused else Status.UNPARSED
        return Status.FAILED


def _mean(shares: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean probability of each label that all of the shares hold."""
    labels = set(shares[0]).intersection(*shares) if shares else ()
    return {label: sum(p[label] for p in shares) / len(shares) for label in labels}


def recorded_judges(
    rows_by_judge: JudgeRows, settings: RecordedConfig, file: str,
    rubric: Rubric, items: Collection[str], beside: Collection[str] = (),
) -> Iterator[RecordedJudge]:  # fmt: skip
    """A judge for each that a table names. `items` are those of the study.

    Raises SetupError where nothing that it says is about any of them, or its settings do not fit.
    """
    for name, rows in rows_by_judge.items():
        config = settings.model_copy(update={"name": name})
        if config.thresholds and (problems := list(threshold_problems(config.thresholds, rubric))):
            raise SetupError(problems)
        if rows and not any(item in rows for item in items):
            allowed = f"ids of the data, such as {next(iter(items), '')!r}"
            message, first = f"no verdict of {name} is about an item of the data", next(iter(rows))
            raise SetupError(Problem(message, file, None, "item_id", first, allowed))
        yield RecordedJudge(config, rubric, rows, file, beside)


AsJudges = Collection[str] | Mapping[str, Literal["items", "rows"]]
"""Names or patterns of annotators; or each with what was meant for them: every item that others
labelled, as usual, or the `rows` that they have."""

_LABELS = "labels"  # where the verdicts of annotators stand
_ITEMS = dict[str, list[tuple[str, VerdictCell]]]


def annotators_as_judges(
    asked: AsJudges, rubric: Rubric, answers: IndexedAnswers, labels: Iterable[HumanLabel]
) -> list[JudgeVerdicts]:
    """One judge per annotator, asked about the items and metrics of which they have a row.

    Raises SetupError for a name or pattern of nobody who labelled anything, and for places in a
    list.
    """
    if not asked:
        return []
    given: dict[str, _ITEMS] = {}
    labelled = set[str]()  # who gave a label at all
    metrics = {metric.id for metric in rubric.metrics}
    for label in labels:
        if not label.adjudicated and label.metric in metrics:
            of_item = given.setdefault(label.annotator, {}).setdefault(label.item_id, [])
            of_item.append((label.metric, VerdictCell(Position(_LABELS, 0), label.label)))
            if label.label is not None:
                labelled.add(label.annotator)
    judges = []
    for name, expected in _people(asked, labelled).items():
        rows: Rows = given[name]
        config = RecordedConfig.model_construct(
            name=name, expected=expected, about={"annotator": name}
        )
        judge = RecordedJudge(config, rubric, rows, _LABELS)
        known = [row for row in map(answers.row, rows) if row >= 0]
        tasks = (Task(answers[row], None, answers.content_hash(row)) for row in known)
        verdicts = {verdict.item_id: verdict for verdict in judge.judge(tasks)}
        judges.append(
            JudgeVerdicts(name, "judge", judge.signature, verdicts, about=judge.describe())
        )
    return judges


def lacking_labels(judges: Iterable[JudgeVerdicts]) -> Iterator[str]:
    """A sentence on each of these annotators who left a cell blank."""
    for judge in judges:
        if lacking := sum(v.status is not Status.OK for v in judge.verdicts.values()):
            yield (
                f"{judge.name}, in a judge's place, left {lacking:,} of {len(judge.verdicts):,} "
                "items blank: they count as failed"
            )


def _people(asked: AsJudges, labelled: Collection[str]) -> dict[str, str]:
    """The annotators that names and patterns stand for, each once, with what they were asked about.
    Raises SetupError."""
    people = sorted(name for name in labelled if not is_slot(name))
    expected = asked if isinstance(asked, Mapping) else dict.fromkeys(asked, "items")
    found, problems = dict[str, str](), []
    for name, due in expected.items():
        persons = [a for a in people if fits(a, name)]
        found |= dict.fromkeys([name] if name in persons else persons, due)
        message = "is not an annotator with a label (places in a list, as crowd#1, are no people)"
        if due not in ("items", "rows"):
            problems.append(Problem("is none of items and rows", "", None, "as_judges", str(due)))
        elif not persons:
            problems.append(Problem(message, "", None, "as_judges", name, some(sorted(people))))
    raise_any(problems)
    return found


def truth_of_others(
    truth: TruthConfig, names: Sequence[str], labels: Iterable[HumanLabel]
) -> TruthConfig:
    """The same rule with a truth that those annotators have no part in.

    Raises SetupError where no annotator is left.
    """
    if not names:
        return truth
    others = [a for a in truth.choose({x.annotator for x in labels}) if a not in names]
    if not others:
        message = "leaves no annotator to make the reference labels"
        raise SetupError(Problem(message, field="as_judges", found=", ".join(names)))
    return truth.model_copy(update={"annotators": tuple(others)})


# One member's label of every answer, by metric: its place in the metric, -1 where it gave none.
Ballots = Mapping[str, IntArray]
_TIE = 1e-9  # natural logarithms closer than this differ by rounding alone


def jury_about(config: JuryConfig, rubric: Rubric, members: Mapping[str, str]) -> dict[str, object]:
    """The facts on which a jury's verdicts depend; `members` maps names to signatures."""
    return {
        "judge": "jury",
        "members": dict(members),
        "rule": config.rule,
        "ties": config.ties or "upper; none between nominal labels",
        "rubric": {"name": rubric.name, "hash": rubric.content_hash},
    }


def jury_verdicts(
    config: JuryConfig,
    rubric: Rubric,
    answers: Sequence[Answer],
    members: Sequence[Ballots],
    signature: str,
) -> Iterator[Verdict]:
    """One verdict per answer, by the members that gave a label.

    A metric that no member labelled, or that is tied where `ties` settles nothing, has no label and
    the verdict is `unparsed`. Members' abstentions do not vote; `members` have one row per answer.
    """
    truth = TruthConfig(rule=config.rule, ties=config.ties)
    settled = (
        settle(np.stack([votes[m.id] for votes in members], axis=1), m, truth)
        for m in rubric.metrics
    )
    why = "no member's label, or a tie, for "
    codes = codes_of(settled, rubric, answers)
    for (item_id, hashed), row in zip(keys_of(answers), codes, strict=True):
        empty = Verdict(item_id, hashed, config.name, signature, Status.UNPARSED)
        yield with_codes(empty, row, rubric, why)


def calibration_about(
    config: CalibrationConfig, rubric: Rubric, member_signature: str, answers: Sequence[Answer]
) -> dict[str, object]:
    """The facts on which a calibrated judge's verdicts depend: of the prior, the answers."""
    hashes = [list(key) for key in keys_of(answers)]
    return {
        "judge": "calibration",
        "of": {config.calibrate: member_signature},
        "prior_from": {"n": len(hashes), "hash": content_hash(hashes)},
        "rubric": {"name": rubric.name, "hash": rubric.content_hash},
    }


def calibrated_verdicts(
    config: CalibrationConfig, rubric: Rubric, answers: Sequence[Answer],
    given: Mapping[str, FloatArray], signature: str,
) -> Iterator[Verdict]:  # fmt: skip
    """One verdict per answer, in their order: the likeliest label once the prior is removed.

    `given` holds the judge's probabilities by metric, (answers, options), NaN where it gave none. A
    metric then has no label, and the verdict is `unparsed` with the reason, as where labels are
    equally likely (all are in a batch of one answer).
    """
    # Here, for it brings scipy, which every command would otherwise load.
    from judgebench.stats.calibration import batch_prior, without_prior

    log_p = dict[str, FloatArray]()
    with np.errstate(divide="ignore"):  # the logarithm of 0 is kept finite by `stats.calibration`
        for metric_id, p in given.items():
            logs = np.log(p)
            log_p[metric_id] = without_prior(logs, batch_prior(logs))
    for row, (item_id, hashed) in enumerate(keys_of(answers)):
        labels, probabilities, reasons = {}, {}, []
        for metric in rubric.metrics:
            logs = log_p[metric.id][row]
            if np.isnan(logs).any():
                reasons.append(f"{metric.id}: {config.calibrate} gave no probabilities")
                continue
            options = weighed(metric)
            probabilities[metric.id] = dict(zip(options, np.exp(logs).tolist(), strict=True))
            best = np.flatnonzero(logs > logs.max() - _TIE)
            if len(best) == 1:
                labels[metric.id] = options[int(best[0])]
            else:
                reasons.append(f"{metric.id}: labels are equally likely")
        status = Status.UNPARSED if reasons else Status.OK
        yield Verdict(
            item_id, hashed, config.name, signature, status, labels=labels,
            probabilities=probabilities or None, reason="; ".join(reasons),
        )  # fmt: skip
