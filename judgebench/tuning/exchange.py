"""Two language models talk about a label: one proposes a revision, the other accepts or objects.

After section 3.3 and Algorithm 2 of AutoMedEval. Each turn is on disk before the next is asked for,
and none is asked for twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from judgebench.files import drop_torn_line, to_line
from judgebench.judges.config import JudgeConfig
from judgebench.judges.replies import looks_like_refusal
from judgebench.models.contract import Backend, Message, Reply, Request
from judgebench.records import Answer, content_hash
from judgebench.rubric import Rubric
from judgebench.runs.judging import Interrupted, Work
from judgebench.runs.run_bench import now
from judgebench.writer import FENCED, WritingTerms, fenced, read_shape, schema_of, write_texts
from judgebench.yaml_file import read_models

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
class Talk:
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


def discuss(cases: Sequence[Case], panel: Panel, work: Work) -> Mapping[str, Talk]:
    """Every case until both agree, or for so many exchanges; the talks by their keys.

    Raises BudgetSpent, Interrupted, and what an engine raises; what was said is kept.
    """
    talks = {panel.key(case): Talk(case) for case in cases}
    panel.path.parent.mkdir(parents=True, exist_ok=True)
    drop_torn_line(panel.path)
    for turn in read_turns(panel.path):
        if turn.key in talks:
            talks[turn.key].turns.append(turn)
    with panel.path.open("ab", buffering=0) as file, ExitStack() as engines:
        opened: dict[int, Backend] = {}

        def keep(talk: Talk, reply: Reply) -> None:
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


def _turn(panel: Panel, talk: Talk, reply: Reply) -> Turn:
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


def _request(panel: Panel, key: str, talk: Talk) -> Request:
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
