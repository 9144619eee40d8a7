"""What a decision model is asked and answers, by the types of the package openai 3.57
(`types/decision_create_params.py`, `types/decision.py`) and of https://docs.typesafe.ai/api.

    def script(body: Body, count: int) -> Play:
        return raw(decision(body, {"tone": {"Kind": 0.75, "Rude": 0.25}}))

Whoever is asked what the types forbid raises, so that the call gets a 500.
"""

from typing import Annotated, Any, Literal

from loopback import Body
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter


class _Type(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Turn(_Type):
    role: Literal["system", "user", "assistant"]
    content: str


class _Choice(_Type):
    value: str
    description: str = ""


class _Level(_Type):
    label: str
    description: str = ""


class _Question(_Type):
    name: str
    instructions: str = Field(min_length=1)


class _PredicateQuestion(_Question):
    type: Literal["predicate"]


class _ChoiceQuestion(_Question):
    type: Literal["choice"]
    choices: list[_Choice] = Field(min_length=2, max_length=255)


class _ScoreQuestion(_Question):
    type: Literal["score"]
    levels: list[_Level] = Field(min_length=2)


class DecisionParams(_Type):
    model: str
    input: list[_Turn] = Field(min_length=1)
    questions: list[
        Annotated[
            _PredicateQuestion | _ChoiceQuestion | _ScoreQuestion, Field(discriminator="type")
        ]
    ] = Field(min_length=1, max_length=400)


class _Noul(_Type):
    type: Literal["noul"]
    instructions: str


class _Criteria(_Type):
    type: Literal["choice"]
    instructions: str
    criteria: dict[str, str] = Field(min_length=2)


class _Levels(_Type):
    type: Literal["score"]
    instructions: str
    criteria: list[str] = Field(min_length=2)


class SystemOneParams(_Type):
    model: str
    state: str
    questions: dict[str, Annotated[_Noul | _Criteria | _Levels, Field(discriminator="type")]]


USAGE = {
    "input_tokens": 90, "output_tokens": 0, "total_tokens": 90,
    "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 0},
}  # fmt: skip

Shares = dict[str, float]  # of each label; of a predicate {"": the probability of yes}


def decision(body: Body, shares: list[Shares | None]) -> dict[str, Any]:
    """The answers to the questions in their order; None is a refusal."""
    asked = TypeAdapter(DecisionParams).validate_python(body)
    assert len(asked.questions) == len(shares), "a share for each question"
    answers = [_answer(q, share) for q, share in zip(body["questions"], shares, strict=True)]
    return {"answers": answers, "model": "luna-1", "usage": USAGE}


def _answer(question: Body, shares: Shares | None) -> dict[str, Any]:
    head = {"type": question["type"], "name": question["name"]}
    if shares is None:
        return {**head, "type": "refusal"}
    if question["type"] == "predicate":
        return {**head, "probability": shares[""]}
    sure = {"confidence": max(shares.values())}
    if question["type"] == "choice":
        listed = [{"value": label, "probability": p} for label, p in shares.items()]
        return {
            **head,
            **sure,
            "choice": max(shares, key=shares.__getitem__),
            "probabilities": listed,
        }
    levels = [level["label"] for level in question["levels"]]
    listed = [
        {"label": label, "value": levels.index(label), "probability": p}
        for label, p in shares.items()
    ]
    score = sum(one["value"] * one["probability"] for one in listed)
    return {**head, **sure, "score": score, "probabilities": listed}


def system_one(body: Body, shares: list[Shares]) -> dict[str, Any]:
    """The same in TypeSafe's types: levels are counted from 0."""
    SystemOneParams.model_validate(body)
    answers: dict[str, Any] = {}
    for (name, question), share in zip(body["questions"].items(), shares, strict=True):
        best = max(share, key=share.__getitem__)
        match question["type"]:
            case "noul":
                answers[name] = {"type": "noul", "noul": share[""]}
            case "choice":
                answers[name] = {
                    "type": "choice", "choice": best, "confidence": share[best],
                    "probabilities": share,
                }  # fmt: skip
            case "score":
                levels = dict(enumerate(question["criteria"]))
                by_level = {str(i): p for i, p in enumerate(share.values())}
                score = sum(i * p for i, p in enumerate(share.values()))
                answers[name] = {
                    "type": "score", "score": score, "confidence": share[best],
                    "legend": {str(i): text for i, text in levels.items()},
                    "probabilities": by_level,
                }  # fmt: skip
    return {
        "model": "jev-1.14",
        "answers": answers,
        "usage": {"input_tokens": 90, "output_tokens": 0},
    }
