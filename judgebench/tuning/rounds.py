"""People check what a machine made, on a local page: `judgebench tune review`.

The questions are those of AutoMedEval (section 3.1, "Reliability Verification"), where an item that
fails any of three is left out.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from judgebench.errors import Problem, SetupError, shorten
from judgebench.files import read_models, to_json, to_line, write_atomically
from judgebench.judges.judge import Task
from judgebench.learning.learnt import LEARNT, Learner, TrainingSet
from judgebench.learning.trainer import Watch
from judgebench.models.checkpoints import local_path, merge
from judgebench.models.contract import Message, Request
from judgebench.people.page import Item, Question, read_decisions, review_page
from judgebench.records import Results, Row, Verdict, content_hash, without_runtime
from judgebench.runs.bench import Bench
from judgebench.runs.folder import RunFolder
from judgebench.runs.judging import Interrupted, Work, ask
from judgebench.runs.load import open_judge
from judgebench.runs.run_bench import now
from judgebench.runs.verdict_log import (
    FiledVerdicts,
    VerdictWriter,
    read_verdicts,
    set_damaged_aside,
)
from judgebench.stats.intervals import clustered_mean
from judgebench.studies.answers import indexed
from judgebench.tuning.config import RoundsConfig
from judgebench.tuning.examples import SilverLine, Texts, language_model
from judgebench.tuning.instructions import Adviser, Case, Dialogue, Panel, discuss, read_turns
from judgebench.tuning.train import ADAPTER, MODEL, Recipe, train

CRITERIA = (
    Question("knowledge", "Is the medical knowledge in the reasons and labels right?"),
    Question("attribution", "Is what the reasons say of the answer really in the answer?"),
    Question("fluency", "Are the reasons fluent and easy to understand?"),
)


def shown_item(line: Item) -> Item:
    """A line of a silver file as an item of a page."""
    looked_up = ["\n\n".join([one["question"], *one.get("passages", ())])
                 for one in line.get("transcript", ())]  # fmt: skip
    labels = "\n".join(f"{metric}: {label}" for metric, label in line["labels"].items())
    sections = [
        ["Question", line.get("question", "")], ["Answer", line["text"]], ["Labels", labels],
        ["Reasons", line.get("rationale", "")],
        *([f"Looked up {n}", text, True] for n, text in enumerate(looked_up, 1)),
    ]  # fmt: skip
    # Not who wrote it: that would be judged instead of what was written.
    return {"id": line["item_id"], "title": "", "sections": sections}


def teacher_of(line: Item) -> str:
    """The name of whoever wrote the labels."""
    teacher = line.get("teacher")
    return str(teacher.get("name", "")) if isinstance(teacher, dict) else str(teacher or "")


class _Looked(BaseModel):
    question: str
    passages: tuple[str, ...] = ()


class _Line(SilverLine):
    """With where the labels come from; other keys are kept."""

    model_config = ConfigDict(extra="allow")

    transcript: tuple[_Looked, ...] = ()
    teacher: dict[str, Any] | str = ""


def read_items(path: Path, *, unique: bool = False) -> list[Item]:
    """The lines of a silver file. Raises SetupError for every line that is unsound, where there is
    none, and where each is to have an id of its own, for one that occurs twice."""
    seen = Counter[str]()

    def check(line: _Line) -> Iterator[Problem]:
        seen[line.item_id] += 1
        if unique and seen[line.item_id] > 1:
            yield Problem("occurs twice", field="item_id", found=shorten(line.item_id))

    items: list[Item] = [
        line.model_dump(exclude_unset=True) for line in read_models(path, _Line, check)
    ]
    if not items:
        raise SetupError(Problem("holds no item", str(path)))
    return items


@dataclass(frozen=True)
class Reviewed:
    """Items by what people said of them. Whoever fails one on any criterion rejects it; what is
    accepted was passed on every criterion.

    `rates` holds the share that fails each criterion, of the items that have an answer on it, and
    the share `dropped` of those that are decided; over questions.
    """

    accepted: Sequence[Item]
    rejected: Sequence[Item]
    undecided: Sequence[Item]
    rates: Results

    def lines(self) -> Sequence[str]:
        """The rates, and what follows of them."""
        *failing, dropped = [row.estimate for row in self.rates]
        told = [f"{row.statistic}: {row.estimate:.1%} (n = {row.estimate.n})" for row in self.rates]
        known = [rate.value for rate in failing if rate.value is not None]
        if known and dropped.value is not None:
            told.append(
                f"Whatever fails one criterion is dropped: at least the largest of these shares "
                f"({max(known):.1%}) and at most their sum ({min(1, sum(known)):.1%}), where all "
                "items have an answer on every criterion."
            )
        return told


def reviewed(lines: Sequence[Item], said: Sequence[Mapping[str, Mapping[str, str]]]) -> Reviewed:
    """Silver items, split by the decisions of one or several people.

    As an item that fails one criterion is dropped, no fewer are dropped than fail the worst one.
    AutoMedEval (section 3.1) has 9.29 % fail attribution and drops 305 of 9,874, which is 3.1 %:
    not both can be of the same items by the same rule.
    """
    keys = [q.key for q in CRITERIA]
    fails = np.full((len(lines), len(keys)), np.nan)
    for row, line in enumerate(lines):
        answers = [found[line["item_id"]] for found in said if line["item_id"] in found]
        for column, key in enumerate(keys):
            if given := {one[key] for one in answers} - {""}:
                fails[row, column] = "fail" in given
    # 1 where any is failed, else 0, and NaN where one has no answer.
    decided = np.where((fails == 1).any(axis=1), 1.0, fails.sum(axis=1))
    groups = np.unique([x.get("question") or x["item_id"] for x in lines], return_inverse=True)[1]
    rate = partial(clustered_mean, clusters=groups, undefined="no answer", kind="share")
    rates = {**{f"fails {key}": rate(x) for key, x in zip(keys, fails.T, strict=True)},
             "dropped": rate(decided)}  # fmt: skip
    rejected = [
        {**lines[row], "failed": [key for key, f in zip(keys, fails[row], strict=True) if f == 1]}
        for row in np.flatnonzero(decided == 1).tolist()
    ]
    return Reviewed(
        [lines[row] for row in np.flatnonzero(decided == 0).tolist()],
        rejected,
        [lines[row] for row in np.flatnonzero(np.isnan(decided)).tolist()],
        Results(tuple(Row("review", name, e) for name, e in rates.items())),
    )


ABOUT = "generator.json"


class _Turn(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    role: Literal["system", "user", "assistant"]
    content: str


class Pair(BaseModel):
    """A line of a file of pairs; keys besides these are passed over."""

    model_config = ConfigDict(frozen=True)

    messages: tuple[_Turn, ...] = Field(min_length=1)
    target: str = Field(min_length=1)


def read_pairs(path: Path) -> Sequence[Pair]:
    """Raises SetupError with every line that is unsound, and where there is none."""
    if not (pairs := read_models(path, Pair)):
        raise SetupError(Problem("holds no pair to learn from", str(path)))
    return pairs


def tune_generator(
    pairs: Sequence[Pair], model: str, folder: Path, recipe: Recipe, watch: Watch
) -> Mapping[str, Any]:
    """Train the model to write the whole target of each pair, and leave it in the folder: a model
    of its own, `transformers:FOLDER`. Returns facts about the training.

    The training lies in FOLDER.training, and goes on from there where it was interrupted. Raises
    what `train` raises, and SetupError where the folder is there already.
    """
    if folder.exists():
        message = "is there already: name another folder, or remove it"
        raise SetupError(Problem(message, str(folder)))
    base = local_path(model)
    texts, training = Texts(base), folder.with_name(f"{folder.name}.training")
    examples = [
        texts.example(Request("", tuple(Message(t.role, t.content) for t in p.messages)), p.target)
        for p in pairs
    ]
    facts = train([examples], base, recipe, training, watch)
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    if recipe.rank is None:
        shutil.copytree(training / MODEL, part)
    else:
        merge(base, training / ADAPTER, part)
    content = {"base": model, "pairs": len(pairs), **facts}
    write_atomically(part / ABOUT, to_json(content, indent=1).encode())
    part.rename(folder)
    return facts


_NAME = "revisions"
_ASKED = (Question("decision", "Is the proposed label right?", ("accept", "reject")),)


@dataclass(frozen=True)
class Revisions:
    """The outcome of a judge's talks, how many of those that wait are decided, and the page on
    which the others are."""

    outcomes: Mapping[str, int]
    waiting: int
    decided: int
    page: Path


def revisions(run: Path, name: str, tables: Sequence[Path] = ()) -> Revisions:
    """Write a page on which people decide on what waits, and revisions.jsonl with all proposals.
    Once the `tables` that they saved decide on all of it, the next run learns from that.

    Raises SetupError where the judge does not learn in rounds, and for tables that are unsound.
    """
    folder = RunFolder.existing(run)
    home, entry = folder.path / "tuning" / name, folder.manifest()["judges"].get(name, {})
    if "rounds" not in entry.get("about", {}):
        message = "is no judge of this run that learns in rounds"
        raise SetupError(Problem(message, str(folder.path), found=name))
    facts = [json.loads(path.read_text()) for path in home.glob(f"{entry['signature']}/*/{LEARNT}")]
    waiting = sorted({key for fact in facts for key in fact["waiting"]})
    talks, answers = dict[str, Dialogue](), folder.indexed_answers()
    for turn in read_turns(home / TALKS):
        if (row := answers.row(turn.item_id)) >= 0:
            case = Case(answers[row], turn.metric, turn.taught, turn.said)
            talks.setdefault(turn.key, Dialogue(case)).turns.append(turn)
    proposed = {k: t for k, t in talks.items() if t.outcome in ("agreed", "disputed")}
    shown = {key: _shown(key, talk) for key, talk in proposed.items()}
    lines = [to_line({"key": k, "outcome": t.outcome, **t.told()}) for k, t in proposed.items()]
    write_atomically(home / f"{_NAME}.jsonl", "".join(lines).encode())
    page = home / f"{_NAME}.html"
    write_atomically(page, review_page(_NAME, [shown[key] for key in waiting], _ASKED).encode())
    said = [read_decisions(table, list(shown.values()), _ASKED) for table in tables]
    found = {
        key: Decision(key=key, accepted=row["decision"] == "accept", when=now(),
                      reviewer=row.get("reviewer", ""), remark=row.get("remark", ""))
        for one in said
        for key, row in one.items()
        if row["decision"]
    }  # fmt: skip
    decided = sum(key in found for key in waiting)
    if decided == len(waiting) > 0:
        kept = {**decisions_in(home / DECISIONS), **found}
        content = "".join(to_line(decision.model_dump()) for decision in kept.values())
        write_atomically(home / DECISIONS, content.encode())
    outcomes = Counter[str](talk.outcome for talk in talks.values())
    return Revisions(dict(outcomes), len(waiting), decided, page)


def _shown(key: str, talk: Dialogue) -> Item:
    """A proposal as an item of the page."""
    case = talk.case
    about = f"people: {case.taught}\njudge: {case.said}\nproposed: {talk.proposal.label}"
    talked = "\n\n".join(f"{turn.by}: {turn.label} {turn.reason}".strip() for turn in talk.turns)
    title = f"{case.answer.item_id} · {case.metric} · {talk.outcome}"
    sections = [
        ["Question", case.answer.question], ["Answer", case.answer.text], ["Labels", about],
        ["What was said", talked],
    ]  # fmt: skip
    return {"id": key, "title": title, "sections": sections}


TALKS, DECISIONS, TARGETS = "exchanges.jsonl", "decisions.jsonl", "targets.jsonl"
_NESTED = "nested"
_DEVELOPMENT = 5  # one of so many parts of the questions says whether a round helped
_FOLDS = 3  # inside the rest, to find what the judge gets wrong


class Decision(BaseModel):
    """A person's decision on a proposal."""

    model_config = ConfigDict(frozen=True)

    key: str
    accepted: bool
    reviewer: str = ""
    remark: str = ""
    when: str = ""


class Rounds(Learner):
    """A learner that is taught anew after each round.

    `home` holds what all its cells share: talks, decisions, and what was learnt on the way.
    """

    def __init__(
        self, learner: Learner, config: RoundsConfig, panel: Panel, home: Path,
        *, seed: int = 0,
    ) -> None:  # fmt: skip
        self._learner, self._config, self._panel = learner, config, panel
        self._home, self._seed, self._revise = home, seed, True
        self.needs, self.calls = learner.needs, learner.calls
        self.parse_retries = learner.parse_retries
        self._decided = decisions_in(home / DECISIONS)

    def without_revisions(self) -> Rounds:
        """As many passes over the labels as they are."""
        other = copy(self)
        other._revise = False
        return other

    def describe(self) -> Mapping[str, Any]:
        about = dict(self._learner.describe())
        about["rounds"] = {
            **self._config.model_dump(),
            "suggester": self._panel.suggester.signature,
            "objector": self._panel.objector.signature,
            "decisions": content_hash([[d.key, d.accepted] for d in self._decided.values()]),
            "seed": self._seed,
            "revise": self._revise,
        }
        return about

    @property
    def spent(self) -> float:
        """US dollars for all talks, and for what was judged in between."""
        if not self._revise:
            return 0.0
        nested = sorted((self._home / _NESTED).glob("*"))
        files = [path for one in nested for path in one.glob("verdicts-*.jsonl")]
        paid = [turn.cost for turn in read_turns(self._panel.path)]
        paid += [verdict.cost for path in files for verdict in read_verdicts(path)]
        return sum(cost or 0.0 for cost in paid) + sum(
            cost for one in nested for cost in self.costs(one)
        )

    def costs(self, folder: Path) -> Iterable[float]:
        return self._learner.costs(folder)

    def fit(self, train: TrainingSet, folder: Path, work: Work) -> Mapping[str, Any]:
        rest, development = next(train.folds(_DEVELOPMENT, self._seed))
        n, right = self._right(rest, development, work)
        told, kept, waiting, stopped = [], dict[str, Dialogue](), list[str](), "all rounds are done"
        passes = 0
        for number in range(1, self._config.n + 1):
            talks = discuss(list(self._cases(_revised(rest, kept), work)), self._panel, work)
            taken, undecided = self._decide(talks)
            waiting += undecided
            outcomes = dict(Counter(talk.outcome for talk in talks.values()))
            about = {"talks": outcomes, "waiting": len(undecided), "revised": len(taken)}
            told.append(about)
            if undecided and self._config.decide == "people":
                stopped = f"round {number} waits for {len(undecided)} decisions"
                break
            if not taken:
                stopped = f"round {number} revises nothing"
                break
            again = _again(_revised(rest, {**kept, **taken}), number)
            after = self._right(again, development, work)[1]
            about["development"] = {"n": n, "right_before": right, "right_after": after}
            if after <= right:
                stopped = f"round {number} does not improve the development fold"
                break
            kept, right, passes = {**kept, **taken}, after, number
        work.progress.say(f"{self._home.name}: {passes} rounds kept; {stopped} ({folder.name})")
        targets = _again(_revised(train, kept) if self._revise else train, passes)
        facts = self._learner.fit(targets, folder, work)
        revised = [{**kept[k].told(), "decided": self._decided_by(k)} for k in kept]
        lines = [to_line(one) for one in revised if self._revise]
        write_atomically(folder / TARGETS, "".join(lines).encode())
        about = {"rounds": told, "stopped": stopped, "passes": passes, "revised": len(lines)}
        return {**facts, **about, "waiting": waiting}

    def judge(self, tasks: Iterable[Task], folder: Path) -> Iterator[Verdict]:
        return self._learner.judge(tasks, folder)

    def export(self, folder: Path, to: Path, *, merged: bool = False) -> None:
        self._learner.export(folder, to, merged=merged)

    def drain(self) -> None:
        self._learner.drain()

    def close(self) -> None:
        self._learner.close()

    def _decide(self, talks: Mapping[str, Dialogue]) -> tuple[Mapping[str, Dialogue], list[str]]:
        """The talks whose proposals are taken, and the keys of those that people have to decide."""
        taken, waiting = {}, []
        for key, talk in talks.items():
            if talk.outcome == "agreed" and self._config.decide == "agreed":
                taken[key] = talk
            elif talk.outcome in ("agreed", "disputed"):
                if key not in self._decided:
                    waiting.append(key)
                elif self._decided[key].accepted:
                    taken[key] = talk
        return taken, waiting

    def _decided_by(self, key: str) -> Mapping[str, Any]:
        decision = self._decided.get(key)
        return decision.model_dump() if decision else {"reviewer": "both models agree"}

    def _cases(self, taught: TrainingSet, work: Work) -> Iterator[Case]:
        for kept, judged in taught.folds(_FOLDS, self._seed):
            yield from self._wrong(kept, judged, work)

    def _wrong(
        self, train: TrainingSet, judged: TrainingSet, work: Work, *, unread: bool = False
    ) -> Iterator[Case]:
        """The cases where the judge gives another label than is taught; or none, with `unread`."""
        found = self._verdicts(train, judged, work)
        for metric in judged.rubric.metrics:
            codes = judged.labels[metric.id].tolist()
            for answer, code in zip(judged.answers, codes, strict=True):
                said = found[answer.item_id].labels.get(metric.id, "")
                if code >= 0 and (said or unread) and metric.label_texts[code] != said:
                    yield Case(answer, metric.id, metric.label_texts[code], said)

    def _right(self, taught: TrainingSet, judged: TrainingSet, work: Work) -> tuple[int, int]:
        """The number of labels that people gave, and of those that the judge gives too."""
        n = sum(int((found >= 0).sum()) for found in judged.labels.values())
        return n, n - sum(1 for _ in self._wrong(taught, judged, work, unread=True))

    def _verdicts(
        self, train: TrainingSet, judged: TrainingSet, work: Work
    ) -> Mapping[str, Verdict]:
        """Its verdicts on the judged answers once it is taught, by item; each is asked once."""
        key = content_hash([without_runtime(self._learner.describe()), train.hash])
        folder = self._home / _NESTED / key
        if not (folder / LEARNT).exists():
            folder.mkdir(parents=True, exist_ok=True)
            facts = self._learner.fit(train, folder, work)
            write_atomically(folder / LEARNT, to_json(dict(facts), indent=1).encode())
        answers = indexed(judged.answers)
        path = folder / f"verdicts-{judged.hash}.jsonl"
        asked = _Named(self._learner, f"{self._home.name}: rounds", key, folder)
        if message := set_damaged_aside(path):
            work.progress.say(message)
        with VerdictWriter(path) as writer:
            known = FiledVerdicts(path, key, answers)
            due = known.never_ended(np.arange(len(answers)))
            work.progress.start(asked.name, len(answers), len(answers) - len(due))
            if len(due):
                ask(asked, (Task(answers[row]) for row in due.tolist()), writer, known, work)
        if work.stop.wanted:
            raise Interrupted
        return {verdict.item_id: verdict for verdict in read_verdicts(path)}


@dataclass
class _Named:
    """A learner as a judge of that name and signature, for `ask`."""

    learner: Learner
    name: str
    signature: str
    folder: Path

    def describe(self) -> Mapping[str, Any]:
        return self.learner.describe()

    def judge(self, tasks: Iterable[Task]) -> Iterator[Verdict]:
        for verdict in self.learner.judge(tasks, self.folder):
            yield replace(verdict, judge=self.name, signature=self.signature)

    def close(self) -> None:
        """The learner is closed by whoever opened it."""


def decisions_in(path: Path) -> Mapping[str, Decision]:
    """By the key of the talk; none where there is no file. Raises SetupError."""
    found = read_models(path, Decision) if path.is_file() else []
    return {decision.key: decision for decision in found}


def _revised(train: TrainingSet, talks: Mapping[str, Dialogue]) -> TrainingSet:
    """With the labels and reasons that these talks propose as what is taught; of two talks about
    one label the later counts."""
    if not talks:
        return train
    rows = {answer.item_id: row for row, answer in enumerate(train.answers)}
    labels = {metric: found.copy() for metric, found in train.labels.items()}
    reasons = list(train.reasons) or [""] * len(train)
    for talk in talks.values():
        row, metric = rows.get(talk.case.answer.item_id), talk.case.metric
        if row is not None:
            labels[metric][row] = train.rubric.only([metric]).metrics[0].index(talk.proposal.label)
            reasons[row] = talk.proposal.reason
    return replace(train, labels=labels, reasons=reasons)


def _again(train: TrainingSet, passes: int) -> TrainingSet:
    return replace(train, again=[replace(train, beside={}, again=())] * passes)


def panel_of(name: str, config: RoundsConfig, bench: Bench, home: Path) -> Panel:
    """The panel that talks about what the judge `name` gets wrong; what is said is kept in `home`.
    Raises SetupError where one of the two is no language model of the benchmark."""

    def adviser(role: str, who: str) -> Adviser:
        judge = language_model(bench, who, f"judges.{name}.rounds.{role}")
        opened = partial(open_judge, judge, bench.file, home.parents[1])
        return Adviser(judge.config, judge.signature, lambda: opened().engine)

    two = adviser("suggester", config.suggester), adviser("objector", config.objector)
    rubric = bench.rubric.of_kind("answer") or bench.rubric
    return Panel(*two, config.exchanges, rubric, home / TALKS)
