"""What a judge gets wrong is discussed, decided by people, and learnt: rounds of introspection.

After section 3.3 and Algorithm 2 of AutoMedEval. Two language models discuss a label until they
agree: one proposes a revision, the other says what it holds of it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel

from judgebench.errors import Problem, SetupError, raise_any
from judgebench.files import to_json, write_atomically
from judgebench.judges.judge import Task
from judgebench.learning.learnt import LEARNT, Learner, TrainingSet
from judgebench.models.contract import Message, Reply, Request
from judgebench.people.page import Item, Question, Row, read_tables, review_page
from judgebench.records import Answer, Verdict, content_hash, without_runtime
from judgebench.rubric import Rubric
from judgebench.runs.bench import Bench
from judgebench.runs.folder import RunFolder
from judgebench.runs.judging import Work
from judgebench.runs.run_bench import now
from judgebench.stats.arrays import IntArray
from judgebench.tuning.advisers import (
    Adviser,
    costs_in,
    judged_labels,
    open_adviser,
    why_unread,
)
from judgebench.tuning.config import RoundsConfig
from judgebench.writer import FENCED, fenced, read_shape, schema_of

DISCUSSIONS, DECISIONS = "exchanges.jsonl", "decisions.json"
ACCEPT, REJECT = "accept", "reject"
EXCHANGES = 3  # of a proposal and an opinion on it, at most, as in the paper
_NESTED = "nested"
_FOLDS = 3  # inside the training set, to find what the judge gets wrong
_TOKENS = 400  # of a turn, where the model's file says nothing
_TASK = f"""A judge of answers is taught from labels that people gave. To the answer below it gives
another label than it is taught. You and a colleague find out which label is right by the rubric,
whoever gave it. Propose another label than people gave only where the rubric and the facts bear it
out, and agree with your colleague only where they are right. {FENCED}
Reply with one JSON object: `reason`, in one to three sentences, and `label`."""


class _Opinion(BaseModel):
    reason: str
    label: str


@dataclass(frozen=True)
class Case:
    """An answer to which a judge, out of fold, gives another label than it is taught."""

    answer: Answer
    metric: str
    taught: str
    judged: str


@dataclass(frozen=True)
class Turn:
    """What one of the two models said; `outcome` says how a reply that cannot be read ended."""

    by: str
    reason: str
    label: str = ""
    outcome: str = ""


@dataclass
class Dialogue:
    """A case and the turns so far: the suggester's and the objector's in alternation."""

    case: Case
    turns: list[Turn] = field(default_factory=list)

    @property
    def outcome(self) -> str:
        """`kept`: the suggester holds that the label is right; `agreed`: both propose one label."""
        last = self.turns[-1] if self.turns else Turn("", "", outcome="no reply")
        if last.outcome:
            return last.outcome
        if len(self.turns) % 2:
            return "kept" if last.label == self.case.taught else "no reply"
        return "agreed" if last.label == self.proposal.label else "disputed"

    @property
    def is_proposal(self) -> bool:
        """True where another label is proposed."""
        return self.outcome in ("agreed", "disputed")

    @property
    def proposal(self) -> Turn:
        """The suggester's last turn."""
        return self.turns[::2][-1]

    def awaits(self, speaker: int) -> bool:
        """True where the suggester (0) or the objector (1) is to speak next."""
        return self.outcome in ("no reply", "disputed") and len(self.turns) % 2 == speaker

    def to_plain(self) -> Mapping[str, Any]:
        """All of it, for a file."""
        case = self.case
        return {
            "item_id": case.answer.item_id, "metric": case.metric, "was": case.taught,
            "judged": case.judged, "now": self.proposal.label, "reason": self.proposal.reason,
            "outcome": self.outcome, "transcript": [asdict(turn) for turn in self.turns],
        }  # fmt: skip


@dataclass(frozen=True)
class Panel:
    """The two models that discuss labels of the rubric, and the file of what they said."""

    suggester: Adviser
    objector: Adviser
    rubric: Rubric
    path: Path

    def speaker(self, dialogue: Dialogue) -> Adviser:
        """Who is to speak next."""
        return self.objector if len(dialogue.turns) % 2 else self.suggester

    def key(self, case: Case) -> str:
        """Of a dialogue: the same for the same two about the same."""
        signatures = [self.suggester.signature, self.objector.signature, self.rubric.content_hash]
        answer = case.answer
        about = [answer.item_id, answer.content_hash, case.metric, case.taught, case.judged]
        return content_hash([*signatures, *about])

    def request(self, key: str, dialogue: Dialogue) -> Request:
        """The request for the next turn."""
        case, decoding = dialogue.case, self.speaker(dialogue).config.decoding
        rubric = self.rubric.only([case.metric])
        (metric,) = rubric.metrics
        lines = [f"Label that it is taught: {case.taught}", f"Label of the judge: {case.judged}"]
        reason = {}
        if dialogue.turns:
            lines.append(f"Label of your colleague: {dialogue.turns[-1].label}")
            reason["colleague"] = dialogue.turns[-1].reason
        user = "\n".join([fenced(case.answer.question, case.answer.text, **reason), "", *lines])
        system = f"{_TASK}\n\n{rubric.instructions}\n\n{metric.prompt_line()}"
        return Request(
            key=key,
            messages=(Message("system", system), Message("user", user)),
            schema=schema_of(_Opinion, label=list(metric.label_texts)),
            max_tokens=decoding.max_tokens or _TOKENS,
            temperature=decoding.temperature,
            top_p=decoding.top_p,
            seed=decoding.seed,
        )

    def turn(self, dialogue: Dialogue, reply: Reply) -> Turn:
        """The reply as the next turn."""
        name = self.speaker(dialogue).config.name
        (metric,) = self.rubric.only([dialogue.case.metric]).metrics
        try:
            opinion = read_shape(reply, _Opinion)
            if opinion.label not in metric.label_texts:
                raise ValueError(f"{opinion.label!r} is not a label of the metric")
        except ValueError as error:
            return Turn(name, str(error), outcome=why_unread(reply))
        return Turn(name, opinion.reason, opinion.label)


def discuss(cases: Iterable[Case], panel: Panel, work: Work) -> Mapping[str, Dialogue]:
    """Every case until both agree, or for EXCHANGES exchanges; the dialogues by their keys.

    Raises BudgetSpent, Interrupted, and what an engine raises; what was said is kept.
    """
    dialogues = {panel.key(case): Dialogue(case) for case in cases}
    panel.path.parent.mkdir(parents=True, exist_ok=True)
    with closing(panel.suggester), closing(panel.objector):
        for speaker in [0, 1] * EXCHANGES:
            due = {
                content_hash([key, len(dialogue.turns)]): dialogue
                for key, dialogue in dialogues.items()
                if dialogue.awaits(speaker)
            }
            adviser = (panel.suggester, panel.objector)[speaker]
            requests = {key: panel.request(key, dialogue) for key, dialogue in due.items()}
            name = f"{adviser.config.name} on labels"
            for key, reply in adviser.replies(requests, panel.path, work, name).items():
                due[key].turns.append(panel.turn(due[key], reply))
    return dialogues


def panel_of(name: str, config: RoundsConfig, bench: Bench, home: Path) -> Panel:
    """The panel that discusses what the judge `name` gets wrong; what is said is kept in `home`.
    Raises SetupError where one of the two is no language model of the benchmark."""
    field, folder = f"judges.{name}.rounds", home.parents[1]
    suggester = open_adviser(bench, config.suggester, f"{field}.suggester", folder)
    objector = open_adviser(bench, config.objector, f"{field}.objector", folder)
    rubric = bench.rubric.of_kind("answer") or bench.rubric
    return Panel(suggester, objector, rubric, home / DISCUSSIONS)


def decisions_in(path: Path) -> Mapping[str, Mapping[str, str]]:
    """What people decided on proposals, by the key of the dialogue; none where there is no file."""
    return json.loads(path.read_text()) if path.is_file() else {}


class Rounds(Learner):
    """A learner that is taught the labels that rounds of introspection leave.

    `home` holds what all its cells share: dialogues, decisions, and what was learnt on the way.
    """

    def __init__(self, learner: Learner, config: RoundsConfig, panel: Panel, home: Path) -> None:
        self._learner, self._config, self._panel, self._home = learner, config, panel, home
        self.needs, self.calls = learner.needs, learner.calls
        self.parse_retries = learner.parse_retries
        self._decisions = decisions_in(home / DECISIONS)

    def describe(self) -> Mapping[str, Any]:
        rounds = {
            **self._config.model_dump(),
            "suggester": self._panel.suggester.signature,
            "objector": self._panel.objector.signature,
            "decisions": content_hash([[k, d["decision"]] for k, d in self._decisions.items()]),
        }
        return {**self._learner.describe(), "rounds": rounds}

    @property
    def spent(self) -> float:
        """US dollars for all dialogues, and for what was judged in between."""
        paths = (self._home / DISCUSSIONS, self._home / _NESTED)
        return sum(cost for path in paths for cost in costs_in(path))

    def costs(self, folder: Path) -> Iterable[float]:
        return self._learner.costs(folder)

    def fit(self, train: TrainingSet, folder: Path, work: Work) -> Mapping[str, Any]:
        rounds, waiting = [], list[str]()
        proposals, taken = dict[str, Dialogue](), dict[str, Dialogue]()
        for _ in range(self._config.n):
            dialogues = discuss(self._cases(_revised(train, taken), work), self._panel, work)
            proposed = {key: d for key, d in dialogues.items() if d.is_proposal}
            proposals |= proposed
            accepted = {key: d for key, d in proposed.items() if self._is_accepted(key, d)}
            undecided = [key for key, d in proposed.items() if self._is_accepted(key, d) is None]
            waiting += undecided
            outcomes = Counter(dialogue.outcome for dialogue in dialogues.values())
            rounds.append({"outcomes": dict(outcomes), "revised": len(accepted)})
            if not accepted or (undecided and self._config.decide == "people"):
                break
            taken |= accepted
        told = f"{len(taken)} labels are revised, {len(waiting)} wait for a decision"
        work.progress.say(f"{self._home.name}: {told} ({folder.name})")
        facts = self._learner.fit(_revised(train, taken), folder, work)
        lines = [
            {
                "key": key, **dialogue.to_plain(), "taught": key in taken,
                "decision": self._decisions.get(key),
            }
            for key, dialogue in proposals.items()
        ]  # fmt: skip
        about = {"rounds": rounds, "revised": len(taken)}
        return {**facts, **about, "waiting": waiting, "proposals": lines}

    def _is_accepted(self, key: str, dialogue: Dialogue) -> bool | None:
        """Whether a proposal is taught; None where people have to decide."""
        if dialogue.outcome == "agreed" and self._config.decide == "agreed":
            return True
        decision = self._decisions.get(key)
        return decision["decision"] == ACCEPT if decision else None

    def judge(self, tasks: Iterable[Task], folder: Path) -> Iterator[Verdict]:
        return self._learner.judge(tasks, folder)

    def drain(self) -> None:
        self._learner.drain()

    def close(self) -> None:
        self._learner.close()

    def _cases(self, taught: TrainingSet, work: Work) -> Iterator[Case]:
        """Where the judge, out of fold inside this set, gives another label than it is taught."""
        for train, judged in taught.folds(_FOLDS):
            labels = self._labels(train, judged, work)
            for metric, codes in zip(judged.rubric.metrics, labels, strict=True):
                texts, right = metric.label_texts, judged.labels[metric.id]
                for row in np.flatnonzero((codes >= 0) & (right >= 0) & (codes != right)).tolist():
                    answer = judged.answers[row]
                    yield Case(answer, metric.id, texts[right[row]], texts[codes[row]])

    def _labels(self, train: TrainingSet, judged: TrainingSet, work: Work) -> IntArray:
        """(metrics, judged): the label that it gives once it is taught."""
        signature = content_hash([without_runtime(self._learner.describe()), train.hash])
        folder = self._home / _NESTED / signature
        if not (folder / LEARNT).exists():
            folder.mkdir(parents=True, exist_ok=True)
            facts = self._learner.fit(train, folder, work)
            write_atomically(folder / LEARNT, to_json(dict(facts), indent=1).encode())
        judge = _Nested(self._learner, self._home.name, signature, folder)
        return judged_labels(judge, judged, folder, work)


@dataclass
class _Nested:
    """What was learnt in a folder, as a judge."""

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


def _revised(train: TrainingSet, dialogues: Mapping[str, Dialogue]) -> TrainingSet:
    """With the labels and reasons that these dialogues propose as what is taught; of two about one
    label the later counts."""
    if not dialogues:
        return train
    row_of = {answer.item_id: row for row, answer in enumerate(train.answers)}
    labels = {metric: codes.copy() for metric, codes in train.labels.items()}
    reasons = list(train.reasons) or [""] * len(train)
    for dialogue in dialogues.values():
        row, metric = row_of.get(dialogue.case.answer.item_id), dialogue.case.metric
        if row is not None:
            (declared,) = train.rubric.only([metric]).metrics
            labels[metric][row] = declared.index(dialogue.proposal.label)
            reasons[row] = dialogue.proposal.reason
    return replace(train, labels=labels, reasons=reasons)


# --- between two runs -----------------------------------------------------------------------------

_QUESTIONS = (Question("decision", "Is the proposed label right?", (ACCEPT, REJECT)),)


@dataclass(frozen=True)
class Revisions:
    """How many proposals for a judge wait for a decision, how many of these are decided, and the
    page on which people decide. On `disputed` ones reviewers differ. `round` is the round, from 1,
    that was discussed last."""

    waiting: int
    decided: int
    disputed: int
    round: int
    page: Path


def cells_of(folder: RunFolder, name: str) -> Sequence[Mapping[str, Any]]:
    """What the judge `name` learnt in rounds: in its folds, and from all labels."""
    judges = folder.manifest()["judges"]
    home = folder.path / "tuning"
    places = [
        home / judge / entry["signature"]
        for judge, entry in judges.items()
        if name in (judge, entry.get("of")) and "rounds" in entry["about"]
    ]
    paths = [path for place in places for path in sorted(place.glob(f"*/{LEARNT}"))]
    return [json.loads(path.read_text()) for path in paths]


def waiting_in(cells: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    """The keys of the proposals that wait for a decision of people."""
    return sorted({key for cell in cells for key in cell["waiting"]})


def revisions(run: Path, name: str, tables: Sequence[Path] = ()) -> Revisions:
    """Write a page on which people decide on what waits. Once the `tables` that they saved decide
    on all of it, the next run learns from that. What one of several reviewers rejects is rejected.

    Raises SetupError where the judge does not learn in rounds, for tables that are unsound, and for
    decisions without a reviewer.
    """
    folder = RunFolder.existing(run)
    home, entry = folder.path / "tuning" / name, folder.manifest()["judges"].get(name, {})
    if "rounds" not in entry.get("about", {}):
        message = "is no judge of this run that learns in rounds"
        raise SetupError(Problem(message, str(folder.path), found=name))
    cells = cells_of(folder, name)
    answers = {answer.item_id: answer for answer in folder.answers()}
    proposals = {p["key"]: p for cell in cells for p in cell["proposals"]}
    items = {key: _item(p, answers[p["item_id"]]) for key, p in proposals.items()}
    waiting, page = waiting_in(cells), home / "revisions.html"
    html = review_page("revisions", [items[key] for key in waiting], _QUESTIONS)
    write_atomically(page, html.encode())
    rows_by_key = _decided_rows(tables, list(items.values()))
    decided = len(rows_by_key.keys() & waiting)
    if decided == len(waiting) > 0:
        decisions = {key: _combined(rows) for key, rows in rows_by_key.items()}
        every = {**decisions_in(home / DECISIONS), **decisions}
        write_atomically(home / DECISIONS, to_json(every, indent=1).encode())
    disputed = sum(len({row["decision"] for row in rows}) > 1 for rows in rows_by_key.values())
    last = max((len(cell["rounds"]) for cell in cells if cell["waiting"]), default=0)
    return Revisions(len(waiting), decided, disputed, last, page)


def _decided_rows(tables: Sequence[Path], items: Sequence[Item]) -> Mapping[str, list[Row]]:
    """The rows of all reviewers that decide, by item. Raises SetupError."""
    rows_by_key = dict[str, list[Row]]()
    problems = []
    for path, rows in zip(tables, read_tables(tables, items, _QUESTIONS), strict=True):
        decided = {key: row for key, row in rows.items() if row["decision"]}
        if any(not row.get("reviewer", "").strip() for row in decided.values()):
            message = "is blank: decisions need the name of whoever decided"
            problems.append(Problem(message, str(path), field="reviewer"))
        for key, row in decided.items():
            rows_by_key.setdefault(key, []).append(row)
    raise_any(problems)
    return rows_by_key


def _combined(rows: Sequence[Row]) -> Row:
    """The decision on one proposal, with all who decided."""
    by_decision = {row["decision"]: row for row in rows}
    reviewers = ", ".join(dict.fromkeys(row["reviewer"] for row in rows))
    return {**by_decision.get(REJECT, rows[0]), "reviewer": reviewers, "when": now()}


def _item(proposal: Mapping[str, Any], answer: Answer) -> Item:
    """A proposal as an item of the page."""
    labels = "people: {was}\njudge: {judged}\nproposed: {now}".format_map(proposal)
    turns = [
        f"{turn['by']}: {turn['label']} {turn['reason']}".strip() for turn in proposal["transcript"]
    ]
    sections = [
        ["Question", answer.question], ["Answer", answer.text], ["Labels", labels],
        ["What was said", "\n\n".join(turns)],
    ]  # fmt: skip
    title = f"{answer.item_id} · {proposal['metric']} · {proposal['outcome']}"
    return {"id": proposal["key"], "title": title, "sections": sections}
