"""What a judge gets wrong is discussed, decided by people, and learnt: rounds of introspection.

After section 3.3 and Algorithm 2 of AutoMedEval. Two language models discuss a label until they
agree: one proposes a revision, the other says what it holds of it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel

from judgebench.errors import Problem, SetupError
from judgebench.files import to_json, write_atomically
from judgebench.judges.judge import Task
from judgebench.learning.learnt import LEARNT, Learner, TrainingSet
from judgebench.models.contract import Message, Reply, Request
from judgebench.people.page import Item, Question, review_page
from judgebench.records import Answer, Verdict, content_hash, without_runtime
from judgebench.rubric import Metric, Rubric
from judgebench.runs.bench import Bench
from judgebench.runs.folder import RunFolder
from judgebench.runs.judging import Work
from judgebench.stats.arrays import IntArray
from judgebench.tuning.advisers import Adviser, costs_in, judged_labels, open_adviser
from judgebench.tuning.config import RoundsConfig
from judgebench.tuning.review import decided, page_item
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


@dataclass
class Dialogue:
    """An answer to which a judge, out of fold, gives another label (`judged`) than it is `taught`,
    and what was said of it: the suggester's and the objector's turns in alternation. A turn holds
    `by`, `reason` and `label`, which is empty where the reply cannot be read."""

    answer: Answer
    metric: Metric
    taught: str
    judged: str
    turns: list[Mapping[str, str]] = field(default_factory=list)
    decision: str = ""  # ACCEPT, REJECT, or empty where people have to decide

    @property
    def outcome(self) -> str:
        """`kept`: the suggester holds that the label is right; `agreed` and `disputed`: another one
        is proposed, by both or by the suggester alone; `unreadable`; or `no reply`."""
        label = self.turns[-1]["label"] if self.turns else None
        if label == "":
            return "unreadable"
        if len(self.turns) % 2 or label is None:
            return "kept" if label == self.taught else "no reply"
        return "agreed" if label == self.proposal["label"] else "disputed"

    @property
    def proposal(self) -> Mapping[str, str]:
        """The suggester's last turn."""
        return self.turns[::2][-1]

    def awaits(self, speaker: int) -> bool:
        """True where the suggester (0) or the objector (1) is to speak next."""
        return self.outcome in ("no reply", "disputed") and len(self.turns) % 2 == speaker

    def to_plain(self) -> Mapping[str, Any]:
        """All of it, for a file."""
        return {
            "item_id": self.answer.item_id, "metric": self.metric.id, "was": self.taught,
            "judged": self.judged, "now": self.proposal["label"],
            "reason": self.proposal["reason"], "outcome": self.outcome, "transcript": self.turns,
            "decision": self.decision,
        }  # fmt: skip


@dataclass(frozen=True)
class Panel:
    """The two models that discuss labels of the rubric, the suggester and the objector, and the
    file of what they said."""

    advisers: tuple[Adviser, Adviser]
    rubric: Rubric
    path: Path

    @property
    def signature(self) -> Sequence[str]:
        """Changes with either model and with the rubric."""
        return [*(a.judge.signature for a in self.advisers), self.rubric.content_hash]

    def key(self, dialogue: Dialogue) -> str:
        """The same for the same two about the same."""
        answer = dialogue.answer
        about = [answer.item_id, answer.content_hash, dialogue.metric.id]
        return content_hash([*self.signature, *about, dialogue.taught, dialogue.judged])

    def discuss(self, dialogues: Iterable[Dialogue], work: Work) -> Mapping[str, Dialogue]:
        """Each until both agree, or for EXCHANGES exchanges; the dialogues by their keys.

        Raises BudgetSpent, Interrupted, and what an engine raises; what was said is kept.
        """
        by_key = {self.key(dialogue): dialogue for dialogue in dialogues}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        first, second = self.advisers
        with closing(first), closing(second):
            for speaker in [0, 1] * EXCHANGES:
                due = {
                    content_hash([key, len(dialogue.turns)]): dialogue
                    for key, dialogue in by_key.items()
                    if dialogue.awaits(speaker)
                }
                self._take_turns(self.advisers[speaker], due, work)
        return by_key

    def _take_turns(self, adviser: Adviser, due: Mapping[str, Dialogue], work: Work) -> None:
        name = adviser.judge.name
        requests = {key: self._request(key, due[key], adviser) for key in due}
        replies = adviser.replies(requests, self.path, work, f"{name} on labels")
        for key, reply in replies.items():
            opinion = _opinion(reply, due[key].metric.label_texts)
            due[key].turns.append({"by": name, **opinion.model_dump()})

    def _request(self, key: str, dialogue: Dialogue, adviser: Adviser) -> Request:
        """The request for the next turn."""
        answer, metric, decoding = dialogue.answer, dialogue.metric, adviser.judge.config.decoding
        lines = [
            f"Label that it is taught: {dialogue.taught}", f"Label of the judge: {dialogue.judged}",
        ]  # fmt: skip
        reason = {}
        if dialogue.turns:
            lines.append(f"Label of your colleague: {dialogue.turns[-1]['label']}")
            reason["colleague"] = dialogue.turns[-1]["reason"]
        user = "\n".join([fenced(answer.question, answer.text, **reason), "", *lines])
        system = f"{_TASK}\n\n{self.rubric.instructions}\n\n{metric.prompt_line()}"
        return Request(
            key,
            (Message("system", system), Message("user", user)),
            schema_of(_Opinion, label=list(metric.label_texts)),
            decoding.max_tokens or _TOKENS,
            decoding.temperature,
            decoding.top_p,
            decoding.seed,
        )


def _opinion(reply: Reply, labels: Sequence[str]) -> _Opinion:
    """The opinion in a reply; without a label, and with what is wrong as its reason, where there is
    none."""
    try:
        opinion = read_shape(reply, _Opinion)
        if opinion.label not in labels:
            raise ValueError(f"{opinion.label!r} is not a label of the metric")
    except ValueError as error:
        return _Opinion(reason=str(error), label="")
    return opinion


def panel_of(name: str, config: RoundsConfig, bench: Bench, home: Path) -> Panel:
    """The panel that discusses what the judge `name` gets wrong; what is said is kept in `home`.
    Raises SetupError where one of the two is no language model of the benchmark."""
    field, folder = f"judges.{name}.rounds", home.parents[1]
    advisers = (
        open_adviser(bench, config.suggester, f"{field}.suggester", folder),
        open_adviser(bench, config.objector, f"{field}.objector", folder),
    )
    return Panel(advisers, bench.rubric, home / DISCUSSIONS)


class Rounds(Learner):
    """A learner that is taught the labels that rounds of introspection leave.

    `home` holds what all its cells share: dialogues, decisions, and what was learnt on the way.
    """

    def __init__(self, learner: Learner, config: RoundsConfig, panel: Panel, home: Path) -> None:
        self._learner, self._config, self._panel, self._home = learner, config, panel, home
        self.needs, self.calls = learner.needs, learner.calls
        self.parse_retries = learner.parse_retries
        self._decisions = decisions_in(home)

    def describe(self) -> Mapping[str, Any]:
        rounds = {
            **self._config.model_dump(),
            "panel": self._panel.signature,
            "decisions": content_hash(self._decisions),
        }
        return {**self._learner.describe(), "rounds": rounds}

    @property
    def spent(self) -> float:
        """US dollars for all dialogues, and for what was judged in between."""
        return sum([*costs_in(self._panel.path), *costs_in(self._home / _NESTED)])

    def costs(self, folder: Path) -> Iterable[float]:
        return self._learner.costs(folder)

    def fit(self, train: TrainingSet, folder: Path, work: Work) -> Mapping[str, Any]:
        rounds, proposals, taken = [], dict[str, Dialogue](), dict[str, Dialogue]()
        for _ in range(self._config.n):
            differing = self._differing(_revised(train, taken), work)
            dialogues = self._panel.discuss(differing, work)
            outcomes = Counter(dialogue.outcome for dialogue in dialogues.values())
            proposed = {k: d for k, d in dialogues.items() if d.outcome in ("agreed", "disputed")}
            for key, dialogue in proposed.items():
                dialogue.decision = self._decision(key, dialogue)
            proposals |= proposed
            accepted = {k: d for k, d in proposed.items() if d.decision == ACCEPT}
            rounds.append({"outcomes": dict(outcomes), "revised": len(accepted)})
            is_waiting = not all(dialogue.decision for dialogue in proposed.values())
            if not accepted or (is_waiting and self._config.decide == "people"):
                break
            taken |= accepted
        facts = self._learner.fit(_revised(train, taken), folder, work)
        lines = [{"key": k, **d.to_plain(), "taught": k in taken} for k, d in proposals.items()]
        return {**facts, "rounds": rounds, "revised": len(taken), "proposals": lines}

    def _decision(self, key: str, dialogue: Dialogue) -> str:
        if dialogue.outcome == "agreed" and self._config.decide == "agreed":
            return ACCEPT
        return self._decisions.get(key, "")

    def judge(self, tasks: Iterable[Task], folder: Path) -> Iterator[Verdict]:
        return self._learner.judge(tasks, folder)

    def drain(self) -> None:
        self._learner.drain()

    def close(self) -> None:
        self._learner.close()

    def _differing(self, taught: TrainingSet, work: Work) -> Iterator[Dialogue]:
        """Where the judge, out of fold inside this set, gives another label than it is taught."""
        for train, judged in taught.folds(_FOLDS):
            labels = self._labels(train, judged, work)
            for metric, codes in zip(judged.rubric.metrics, labels, strict=True):
                texts, right = metric.label_texts, judged.labels[metric.id]
                for row in np.flatnonzero((codes >= 0) & (right >= 0) & (codes != right)).tolist():
                    yield Dialogue(
                        judged.answers[row], metric, texts[right[row]], texts[codes[row]]
                    )

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
        row, metric = row_of[dialogue.answer.item_id], dialogue.metric
        labels[metric.id][row] = metric.index(dialogue.proposal["label"])
        reasons[row] = dialogue.proposal["reason"]
    return replace(train, labels=labels, reasons=reasons)


# --- between two runs -----------------------------------------------------------------------------

_QUESTIONS = (Question("decision", "Is the proposed label right?", (ACCEPT, REJECT)),)


@dataclass(frozen=True)
class Revisions:
    """How many proposals for a judge wait for a decision, how many of these are decided, and the
    page on which people decide."""

    waiting: int
    decided: int
    page: Path


def decisions_in(home: Path) -> Mapping[str, str]:
    """ACCEPT or REJECT by the key of a proposal; nothing where people have not decided yet."""
    path = home / DECISIONS
    return json.loads(path.read_text()) if path.is_file() else {}


def proposals_of(folder: RunFolder, name: str) -> Mapping[str, Mapping[str, Any]]:
    """The proposals for the judge `name`, of its folds and of all labels, by their keys. Those wait
    for people that have no `decision`."""
    learnt = [
        json.loads(path.read_text())
        for judge, entry in folder.manifest()["judges"].items()
        if name in (judge, entry.get("of")) and "rounds" in entry["about"]
        for path in (folder.path / "tuning" / judge / entry["signature"]).glob(f"*/{LEARNT}")
    ]
    return {proposal["key"]: proposal for cell in learnt for proposal in cell["proposals"]}


def revisions(run: Path, name: str, tables: Sequence[Path] = ()) -> Revisions:
    """Write a page on which people decide on what waits. Once the `tables` that they saved decide
    on all of it, the next run learns from that. What one of several reviewers rejects is rejected.

    Raises SetupError where no rounds proposed anything for the judge, and for tables that are
    unsound.
    """
    folder = RunFolder.existing(run)
    home, proposals = folder.path / "tuning" / name, proposals_of(folder, name)
    if not proposals:
        message = "is no judge of this run for which rounds proposed anything"
        raise SetupError(Problem(message, str(folder.path), found=name))
    answers = {answer.item_id: answer for answer in folder.answers()}
    items = {key: _item(p, answers[p["item_id"]]) for key, p in proposals.items()}
    waiting = sorted(key for key, proposal in proposals.items() if not proposal["decision"])
    page = home / "revisions.html"
    html = review_page("revisions", [items[key] for key in waiting], _QUESTIONS)
    write_atomically(page, html.encode())
    rows = decided(tables, list(items.values()), _QUESTIONS)
    decisions = {key: row["decision"] for key, row in rows.items() if row["decision"]}
    n_decided = len(decisions.keys() & waiting)
    if n_decided == len(waiting) > 0:
        every = {**decisions_in(home), **decisions}
        write_atomically(home / DECISIONS, to_json(every, indent=1).encode())
    return Revisions(len(waiting), n_decided, page)


def _item(proposal: Mapping[str, Any], answer: Answer) -> Item:
    """A proposal as an item of the page."""
    labels = "people: {was}\njudge: {judged}\nproposed: {now}".format_map(proposal)
    turns = ["{by}: {label} {reason}".format_map(turn) for turn in proposal["transcript"]]
    title = f"{answer.item_id} · {proposal['metric']} · {proposal['outcome']}"
    sections = [["Labels", labels], ["What was said", "\n\n".join(turns)]]
    return page_item(proposal["key"], title, (answer.question, answer.text), sections)
