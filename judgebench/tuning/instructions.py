"""The wording of a rubric, revised by a model on the answers that a judge may learn from.

A small search after GEPA (Agrawal et al. 2025, arXiv:2507.19457, algorithms 1 and 2): a model reads
what the judge got wrong on a few answers and proposes another wording, which is kept if it does
better on these. What is kept is scored on a nested part, and each next round begins with one that
is best on some answer of it. Labels, their order and the form of replies never change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from pydantic import BaseModel, create_model

from judgebench.errors import Problem, SetupError
from judgebench.files import drop_torn_line, read_lines, to_line, write_atomically
from judgebench.judges.judge import Task
from judgebench.judges.llm import LLMJudge
from judgebench.judges.replies import looks_like_refusal
from judgebench.learning.learnt import SEARCH, Learner, TrainingSet
from judgebench.models.contract import Message, Reply, Request
from judgebench.progress import NoProgress, Progress
from judgebench.prompt import disarm
from judgebench.records import Verdict, content_hash
from judgebench.rubric import Metric, Rubric, load_rubric
from judgebench.runs.bench import Bench
from judgebench.runs.folder import RunFolder
from judgebench.runs.judging import Bundles, Interrupted, Work, judge_answers
from judgebench.runs.load import open_judge
from judgebench.runs.verdict_log import FiledVerdicts, read_verdicts
from judgebench.stats.arrays import FloatArray, IntArray
from judgebench.studies.answers import indexed
from judgebench.tuning.config import InstructionsConfig
from judgebench.tuning.examples import language_model
from judgebench.writer import FENCED, WritingTerms, fenced, read_shape, schema_of, write_texts

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
        bundles = Bundles(judge, indexed(self.train.answers))
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
