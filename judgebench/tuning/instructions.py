"""Two language models talk about a label: one proposes a revision, the other accepts or objects.

After section 3.3 and Algorithm 2 of AutoMedEval. Each turn is on disk before the next is asked for,
and none is asked for twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict, create_model

from judgebench.errors import Problem, SetupError
from judgebench.files import drop_torn_line, read_lines, read_models, to_line, write_atomically
from judgebench.judges.config import JudgeConfig
from judgebench.judges.judge import Task
from judgebench.judges.llm import LLMJudge
from judgebench.judges.replies import looks_like_refusal
from judgebench.learning.learnt import SEARCH, Learner, TrainingSet
from judgebench.models.contract import Backend, Message, Reply, Request
from judgebench.progress import NoProgress, Progress
from judgebench.prompt import disarm
from judgebench.records import Answer, Verdict, content_hash
from judgebench.rubric import Metric, Rubric, load_rubric
from judgebench.runs.bench import Bench
from judgebench.runs.folder import RunFolder
from judgebench.runs.judging import Interrupted, RequestGroups, Work, judge_answers
from judgebench.runs.load import open_judge
from judgebench.runs.run_bench import now
from judgebench.runs.verdict_log import FiledVerdicts, read_verdicts
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.studies.answers import indexed
from judgebench.tuning.config import InstructionsConfig
from judgebench.tuning.examples import language_model
from judgebench.writer import FENCED, WritingTerms, fenced, read_shape, schema_of, write_texts

Outcome = Literal["agreed", "disputed", "kept", "refused", "unreadable", "no reply"]
_TOKENS = 400  # of a turn, where the model's file says nothing


@dataclass(frozen=True)
class Adviser:
    """A language model that is asked for advice, and how its engine is opened."""

    config: JudgeConfig
    signature: str
    open: Callable[[], Backend]


@dataclass(frozen=True)
class Panel:
    """The models that talk, how often, about the metrics of which rubric, and where that is
    kept."""

    suggester: Adviser
    objector: Adviser
    exchanges: int
    rubric: Rubric
    path: Path

    def key(self, case: Case) -> str:
        """Of a talk: the same for the same two about the same."""
        who = [self.suggester.signature, self.objector.signature, self.rubric.content_hash]
        answer = case.answer
        about = [answer.item_id, answer.content_hash, case.metric, case.taught, case.said]
        return content_hash([*who, *about])


@dataclass(frozen=True)
class Case:
    """An answer of which a judge, out of fold, says something else than it is taught."""

    answer: Answer
    metric: str
    taught: str
    said: str


class Turn(BaseModel):
    """A turn of one of the two, as a line of the file of all talks."""

    model_config = ConfigDict(frozen=True)

    key: str
    item_id: str
    metric: str
    taught: str
    said: str
    by: str
    when: str
    ending: Literal["ok", "refused", "unreadable"] = "ok"
    label: str = ""  # as the suggester would have it
    accepts: bool | None = None  # what the objector says
    reason: str = ""
    cost: float | None = None
    looked_up: tuple[dict[str, Any], ...] = ()


class _Proposal(BaseModel):
    reason: str
    label: str


class _Opinion(BaseModel):
    reason: str
    decision: Literal["accept", "object"]


@dataclass
class Dialogue:
    """A case and what was said of it so far."""

    case: Case
    turns: list[Turn] = field(default_factory=list)

    @property
    def outcome(self) -> Outcome:
        """`kept`: the suggester holds that the label is right."""
        if not self.turns:
            return "no reply"
        last = self.turns[-1]
        if last.ending != "ok":
            return last.ending
        if last.accepts is None:
            return "kept" if last.label == self.case.taught else "no reply"
        return "agreed" if last.accepts else "disputed"

    @property
    def proposal(self) -> Turn:
        """The last one."""
        return [turn for turn in self.turns if turn.accepts is None][-1]

    def told(self) -> Mapping[str, Any]:
        """All of it, for a file."""
        case = self.case
        return {
            "item_id": case.answer.item_id, "metric": case.metric, "was": case.taught,
            "judged": case.said, "now": self.proposal.label, "reason": self.proposal.reason,
            "transcript": [turn.model_dump() for turn in self.turns],
        }  # fmt: skip

    def awaits(self, n: int, of: int) -> bool:
        """True where the suggester (0) or the objector (1) is to speak next."""
        open_ = self.outcome in ("no reply", "disputed")
        return open_ and len(self.turns) % 2 == n and len(self.turns) < 2 * of


def discuss(cases: Sequence[Case], panel: Panel, work: Work) -> Mapping[str, Dialogue]:
    """Every case until both agree, or for so many exchanges; the talks by their keys.

    Raises BudgetSpent, Interrupted, and what an engine raises; what was said is kept.
    """
    talks = {panel.key(case): Dialogue(case) for case in cases}
    panel.path.parent.mkdir(parents=True, exist_ok=True)
    drop_torn_line(panel.path)
    for turn in read_turns(panel.path):
        if turn.key in talks:
            talks[turn.key].turns.append(turn)
    with panel.path.open("ab", buffering=0) as file, ExitStack() as engines:
        opened: dict[int, Backend] = {}

        def keep(talk: Dialogue, reply: Reply) -> None:
            turn = _turn(panel, talk, reply)
            file.write(to_line(turn.model_dump(exclude_defaults=True)).encode())
            talk.turns.append(turn)

        for speaker in [0, 1] * panel.exchanges:
            due = {k: t for k, t in talks.items() if t.awaits(speaker, panel.exchanges)}
            if not due:
                continue
            adviser = (panel.suggester, panel.objector)[speaker]
            if speaker not in opened:
                opened[speaker] = adviser.open()
                engines.callback(opened[speaker].close)
            name = adviser.config.name
            terms = WritingTerms(
                f"{name} {('proposes', 'answers')[speaker]}", work.progress, work.stop, work.budget,
                f"judges.{name}.settings.price", adviser.config.decoding.left_out,
            )  # fmt: skip
            write_texts(due, opened[speaker], lambda k, t: _request(panel, k, t), keep, terms)
            if work.stop.wanted:
                raise Interrupted
    return talks


def read_turns(path: Path) -> Sequence[Turn]:
    """All that was said, in order; nothing where there is no file. Raises SetupError."""
    return read_models(path, Turn) if path.is_file() else []


def _turn(panel: Panel, talk: Dialogue, reply: Reply) -> Turn:
    speaker = len(talk.turns) % 2
    adviser = (panel.suggester, panel.objector)[speaker]
    labels = panel.rubric.only([talk.case.metric]).metrics[0].label_texts
    found: dict[str, Any] = {"cost": reply.cost}
    try:
        if speaker == 0:
            proposal = read_shape(reply, _Proposal)
            if proposal.label not in labels:
                raise ValueError(f"{proposal.label!r} is not a label of the metric")
            found |= {"label": proposal.label, "reason": proposal.reason}
        else:
            opinion = read_shape(reply, _Opinion)
            found |= {"accepts": opinion.decision == "accept", "reason": opinion.reason}
    except ValueError as error:
        refused = reply.finish == "refused" or looks_like_refusal(reply.text)
        ending = "refused" if refused else "unreadable"
        found |= {"ending": ending, "reason": str(error)}
    looked_up = tuple(asdict(lookup) for lookup in reply.transcript)
    case = talk.case
    return Turn(
        key=reply.key, item_id=case.answer.item_id, metric=case.metric, taught=case.taught,
        said=case.said, by=adviser.config.name, when=now(), looked_up=looked_up, **found,
    )  # fmt: skip


_SUGGEST = (
    "A judge of answers is taught from labels that people gave. Of the answer below it says "
    "something else than it is taught. Find out which label is right by the rubric, whoever gave "
    f"it. {FENCED}\nReply with one JSON object: `reason`, in one to three sentences, and `label`."
)
_OBJECT = (
    "A judge of answers is taught from labels that people gave. A colleague proposes another label "
    "for the answer below. Accept it only where the rubric and the facts bear it out; otherwise "
    f"object, and say why. {FENCED}\nReply with one JSON object: `reason`, in one to three "
    "sentences, and `decision`, which is `accept` or `object`."
)


def _request(panel: Panel, key: str, talk: Dialogue) -> Request:
    speaker, case = len(talk.turns) % 2, talk.case
    adviser = (panel.suggester, panel.objector)[speaker]
    rubric = panel.rubric.only([case.metric])
    (metric,) = rubric.metrics
    about = f"{rubric.instructions}\n\n{metric.prompt_line()}"
    said: dict[str, str] = {}
    for n, turn in enumerate(talk.turns[-2:] if speaker == 0 else talk.turns[-1:]):
        said["objection" if n else "proposal"] = turn.reason
    shown = fenced(case.answer.question, case.answer.text, **said)
    given = f"Label that people gave: {case.taught}\nLabel of the judge: {case.said}"
    if talk.turns:
        given += f"\nLabel that is proposed: {talk.proposal.label}"
    schema = (
        schema_of(_Opinion, decision=["accept", "object"]) if speaker
        else schema_of(_Proposal, label=list(metric.label_texts))
    )  # fmt: skip
    decoding = adviser.config.decoding
    return Request(
        key=key,
        messages=(
            Message("system", f"{(_SUGGEST, _OBJECT)[speaker]}\n\n{about}"),
            Message("user", f"{shown}\n\n{given}"),
        ),
        schema=schema,
        max_tokens=decoding.max_tokens or _TOKENS,
        temperature=decoding.temperature,
        top_p=decoding.top_p,
        seed=decoding.seed,
    )


CHOSEN, BEFORE = "rubric.yaml", "rubric-before.yaml"
_PROPOSALS = "proposals.jsonl"
_HELD, _FEW = 100, 8  # answers that wordings are chosen by, and that a revision is made of
_CHARACTERS = 1500  # of an answer's text that the reviser is shown
_MOST = 2  # times as long as the wording before, and 2,000 characters more
_SYSTEM = f"""You improve the instructions of a judge that labels texts.
Its labels, what they are called, their order and the form of its replies stay as they are. Revise
the wording alone: what to look at, and where the line between two labels lies. State general rules
and no single case. {FENCED}"""


def open_instructions(entry: InstructionsConfig, bench: Bench, folder: Path) -> Instructions:
    """The learner of an entry. Raises SetupError where its judges are no language models."""
    field = f"judges.{entry.name}"
    judge = language_model(bench, entry.source, f"{field}.from")
    if judge.prompt.shows != "answer":
        message, allowed = "is shown several texts at once", "a prompt that shows one answer"
        raise SetupError(
            Problem(message, str(bench.file), None, f"{field}.from", judge.name, allowed)
        )
    writer = language_model(bench, entry.by or entry.source, f"{field}.by")
    return Instructions(entry, judge, writer, lambda one: open_judge(one, bench.file, folder))


class Instructions(Learner):
    """The judge `judge`, by a wording of its rubric that `writer` revised.

    `opened` makes one of them once more, on an engine of its own.
    """

    def __init__(
        self, entry: InstructionsConfig, judge: LLMJudge, writer: LLMJudge,
        opened: Callable[[LLMJudge], LLMJudge],
    ) -> None:  # fmt: skip
        self._entry, self._of, self._by, self._opened = entry, judge, writer, opened
        self.needs = entry.needs
        self.parse_retries, each = judge.parse_retries, judge.calls_an_answer
        self.calls = _most_calls(entry, _HELD, each), each
        self._open: dict[str, LLMJudge] = {}

    def describe(self) -> Mapping[str, Any]:
        entry = self._entry
        return {
            "learn": "instructions",
            "from": self._of.signature,
            "by": self._by.signature,
            "search": {"revisions": entry.revisions, "tries": entry.tries, "seed": entry.seed},
            "asked": content_hash([_SYSTEM, _HELD, _FEW, _CHARACTERS, _MOST]),
        }

    def _engine(self, judge: LLMJudge) -> LLMJudge:
        if judge.name not in self._open:
            self._open[judge.name] = self._opened(judge)
        return self._open[judge.name]

    def fit(self, train: TrainingSet, folder: Path, work: Work) -> Mapping[str, Any]:
        """Searches; the wording chosen is kept as a rubric file, beside the one before."""
        judges = self._engine(self._of), self._engine(self._by)
        search = _Search(self._entry, *judges, train, folder / SEARCH, work)
        found = search.best(np.random.default_rng(self._entry.seed))
        for name, rubric in ((BEFORE, train.rubric), (CHOSEN, found)):
            plain = rubric.as_plain()
            text = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=88)
            write_atomically(folder / name, text.encode())
        return search.facts

    def judge(self, tasks: Iterable[Task], folder: Path) -> Iterator[Verdict]:
        judge = self._engine(self._of)
        rubric = load_rubric(folder / CHOSEN)
        yield from judge.asked_otherwise(judge.name, rubric=rubric).judge(tasks)

    def costs(self, folder: Path) -> Iterator[float]:
        paths = sorted((folder / SEARCH).glob("verdicts-*.jsonl"))
        yield from (verdict.cost or 0.0 for path in paths for verdict in read_verdicts(path))
        yield from (line["cost"] or 0.0 for line in _proposals(folder / SEARCH).values())

    def drain(self) -> None:
        for judge in self._open.values():
            judge.drain()

    def close(self) -> None:
        for judge in self._open.values():
            judge.close()
        self._open = {}


@dataclass
class _Search:
    """One search, in `folder`: a verdict file for each wording, and what was proposed. Whatever
    stands there is not asked again."""

    entry: InstructionsConfig
    judge: LLMJudge
    writer: LLMJudge
    train: TrainingSet
    folder: Path
    work: Work
    facts: dict[str, Any] = field(default_factory=dict)

    def best(self, rng: np.random.Generator) -> Rubric:
        """The wording that is right most often on a nested part, if that is more often than the one
        before by more than a standard error of the difference; else the one before."""
        few, held = self._parts(rng)
        pool, outcomes = [(self.train.rubric, self._right(self.train.rubric, held))], Counter[str]()
        for number in range(self.entry.revisions):
            scores = np.array([right for _, right in pool])
            leads = (scores == scores.max(axis=0)).sum(axis=1)
            parent, _ = pool[rng.choice(len(pool), p=leads / leads.sum())]
            some = np.sort(rng.permutation(few)[:_FEW])
            before = self._right(parent, some)
            if before.min() == 1:
                outcomes["nothing to correct"] += 1
                continue
            for attempt in range(self.entry.tries):
                revised = self._revised(parent, some, [number, attempt])
                if isinstance(revised, str):
                    outcomes[revised] += 1
                elif self._right(revised, some).mean() <= before.mean():
                    outcomes["not better on what it was made of"] += 1
                else:
                    outcomes["kept"] += 1
                    pool.append((revised, self._right(revised, held)))
                    break
        right = np.array([right for _, right in pool])
        gains, means = right - right[0], right.mean(axis=1)
        place = int(means.argmax())
        error = gains[place].std(ddof=1) / len(held) ** 0.5 if len(held) > 1 else np.inf
        place = place if gains[place].mean() > error else 0
        self.facts = {
            "proposals": dict(outcomes), "held": len(held), "right_before": float(means[0]),
            "right_best": float(means.max()),
            "chosen": f"revision {place} of {len(pool) - 1}" if place else "the wording before",
        }  # fmt: skip
        return pool[place][0]

    def _parts(self, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Rows that revisions are made of, and rows that are held back to choose by."""
        row = indexed(self.train.answers).row
        two = next(self.train.folds(3, self.entry.seed))
        few, held = (np.array([row(a.item_id) for a in part.answers], np.int64) for part in two)
        if not len(few) or not len(held):
            raise SetupError("no question is left to choose a wording by: label more questions")
        held = np.sort(rng.permutation(held)[:_HELD])
        self.work.progress.start(self._name, _most_calls(self.entry, len(held), 1), 0)
        return few, held

    @property
    def _name(self) -> str:
        return f"{self.entry.name}, wordings of {self.folder.parent.name}"

    def _right(self, rubric: Rubric, rows: IntArray) -> FloatArray:
        """(rows,): of the labels of each, the share that the judge gives by this wording."""
        truth = np.array([self.train.labels[metric.id][rows] for metric in rubric.metrics])
        there = truth >= 0
        right = (self._said(rubric, rows) == truth) & there
        return np.asarray(right.sum(axis=0) / there.sum(axis=0))

    def _said(self, rubric: Rubric, rows: IntArray) -> IntArray:
        """(metrics, rows): the place of each label that the judge gives, -1 where it gives none.
        What it has said before is read."""
        name, home = f"wording-{rubric.content_hash}", RunFolder(self.folder)
        judge = self.judge.asked_otherwise(name, rubric=rubric)
        self.folder.mkdir(parents=True, exist_ok=True)
        bundles = RequestGroups(judge, indexed(self.train.answers))
        bundles.rows = rows.astype(np.int64)
        shown = _OneBar(self.work.progress, self._name)
        judge_answers(judge, bundles, replace(self.work, folder=home, progress=shown))
        self._check_stopped()
        about = (judge.signature, bundles.answers, rubric.metrics)
        found = FiledVerdicts(home.verdict_path(name), *about)
        every = [found.label_indices(metric, bundles.answers) for metric in rubric.metrics]
        return np.array(every)[:, rows]

    def _check_stopped(self) -> None:
        if self.work.stop.wanted:
            raise Interrupted

    def _revised(self, parent: Rubric, some: IntArray, turn: Sequence[int]) -> Rubric | str:
        """Another wording, or what became of the proposal."""
        shape, metrics = _shape(parent), parent.metrics
        shown = "\n\n".join(map(Metric.prompt_line, metrics))
        said, train = self._said(parent, some), self.train
        cases = [
            "\n".join([
                fenced(train.answers[row].question, train.answers[row].text[:_CHARACTERS]),
                *(_compared(m, said[i, n], train.labels[m.id][row]) for i, m in enumerate(metrics)),
            ])
            for n, row in enumerate(some.tolist())
        ]  # fmt: skip
        keys = "; ".join(shape.model_fields)
        user = "\n\n".join([
            f"The instructions:\n{parent.instructions}", f"The labels:\n{shown}", *cases,
            f"Reply with one JSON object. Its keys are: {keys}. Under the first stand the new "
            "instructions, under each other a new description of that label, in one sentence.",
        ])  # fmt: skip
        seed = int(content_hash([self.entry.seed, *turn]), 16) % 2**31
        tokens = 800 + len(parent.instructions + shown) // 2
        messages = (Message("system", _SYSTEM), Message("user", user))
        asked = Request("", messages, schema_of(shape), tokens, 1.0, None, seed)
        reply = self._asked(content_hash([_SYSTEM, user, seed]), asked)
        if reply is None:
            return "no reply"
        try:
            found = read_shape(reply, shape).model_dump()
        except ValueError:
            refused = reply.finish == "refused" or looks_like_refusal(reply.text)
            return "refused" if refused else "unreadable"
        return _worded(parent, found)

    def _asked(self, key: str, request: Request) -> Reply | None:
        path = self.folder / _PROPOSALS
        drop_torn_line(path)
        known = _proposals(self.folder)

        def keep(_: Request, reply: Reply) -> None:
            line = {"key": key, "text": reply.text, "finish": reply.finish, "cost": reply.cost}
            known[key] = line
            with path.open("ab", buffering=0) as file:
                file.write(to_line(line).encode())

        if key not in known:
            work, of = self.work, self.writer
            terms = WritingTerms(
                self._name, _OneBar(work.progress, self._name), work.stop, work.budget,
                f"judges.{of.name}.settings.price", of.config.decoding.left_out,
            )  # fmt: skip
            asked = {key: replace(request, key=key)}
            write_texts(asked, self.writer.engine, lambda _, one: one, keep, terms, len(known))
            self._check_stopped()
        line = known.get(key)
        return Reply(key, line["text"], line["finish"], cost=line["cost"]) if line else None


def _most_calls(entry: InstructionsConfig, held: int, each: int) -> int:
    """The most calls that a search takes, where an answer takes so many `each`."""
    answers = held * (1 + entry.revisions) + entry.revisions * _FEW * (1 + entry.tries)
    return answers * each + entry.revisions * entry.tries


@dataclass
class _OneBar(NoProgress):
    """All that is asked advances one piece of work."""

    progress: Progress
    name: str

    def advance(self, name: str, what: Verdict | str = "") -> None:
        self.progress.advance(self.name, what)

    def say(self, message: str) -> None:
        self.progress.say(message)


def _proposals(folder: Path) -> dict[str, dict[str, Any]]:
    path = folder / _PROPOSALS
    return {line["key"]: line for _, line in read_lines(path)} if path.is_file() else {}


def _compared(metric: Metric, said: int, truth: int) -> str:
    texts = [*metric.label_texts, "no label"]
    return f'{metric.id}: the judge said "{texts[said]}"; people said "{texts[truth]}".'


def _shape(rubric: Rubric) -> type[BaseModel]:
    """A reply with a new wording: instructions, and a description of each label."""
    names = [f"{m.id}: {label.text}" for m in rubric.metrics for label in m.labels]
    fields: dict[str, Any] = dict.fromkeys(["instructions", *names], (str, ...))
    return create_model("Wording", **fields)


def _worded(parent: Rubric, texts: Mapping[str, str]) -> Rubric | str:
    """The rubric with other words and nothing else; or why there is none."""
    said = {key: disarm(text.strip()) for key, text in texts.items()}
    before = len(parent.instructions + "".join(map(Metric.prompt_line, parent.metrics)))
    if not said["instructions"] or len("".join(said.values())) > _MOST * before + 2000:
        return "empty or too long"
    metrics = []
    for metric in parent.metrics:
        about = [" ".join(said[f"{metric.id}: {label.text}"].split()) for label in metric.labels]
        labels = tuple(
            label.model_copy(update={"description": text or label.description})
            for label, text in zip(metric.labels, about, strict=True)
        )
        metrics.append(metric.model_copy(update={"labels": labels}))
    changes = {"instructions": said["instructions"], "metrics": tuple(metrics)}
    found = parent.model_copy(update=changes)
    return "changes nothing" if found == parent else found
