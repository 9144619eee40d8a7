"""Scorers that read an answer with each of its references in turn, many at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from judgebench.errors import MissingExtra
from judgebench.models.checkpoint import identify
from judgebench.records import Answer
from judgebench.scorers.config import PairsConfig, SacrebleuConfig
from judgebench.scorers.references import about_columns, over_references, references_of
from judgebench.scorers.scorer import EMPTY_ANSWER, NO_REFERENCE, Better, Scored

Pair = tuple[Answer, str]  # with one of its references
_PACKAGES = {"ot": "POT"}  # by the module to import


@dataclass(frozen=True)
class PairScorer:
    """A `Scorer` of pairs. Pairs without a score are passed over where another has one. Where it
    `reads` no reference, each answer is one pair, with an empty text; where all references count
    `joint`, with the first."""

    config: PairsConfig | SacrebleuConfig
    about: Mapping[str, Any]
    scored: Callable[[Sequence[Pair]], Sequence[Scored]]
    close: Callable[[], None]
    better: Better = "higher"
    at_once: int = 64
    reads: Sequence[str] = ("answer", "reference")

    def key(self, answer: Answer) -> Any:
        asked = [answer.question] if "question" in self.reads else []
        return [answer.text, self._references(answer), *asked]

    def score(self, answers: Sequence[Answer]) -> Sequence[Scored]:
        most = 1 if self.config.references == "joint" else None
        places = [
            (row, (answer, reference))
            for row, answer in enumerate(answers)
            if answer.text.strip()
            for reference in self._references(answer)[:most]
        ]
        own: list[list[Scored]] = [[] for _ in answers]
        scored = self.scored([pair for _, pair in places])
        for (row, _), one in zip(places, scored, strict=True):
            own[row].append(one)
        return [self._over(*one) for one in zip(answers, own, strict=True)]

    def _references(self, answer: Answer) -> Sequence[str]:
        if "reference" not in self.reads:
            return ("",)
        return references_of(answer, self.config.reference_columns)

    def _over(self, answer: Answer, scored: Sequence[Scored]) -> Scored:
        if not answer.text.strip():
            return Scored.none(EMPTY_ANSWER)
        had = [(one.value, one.reason) for one in scored if one.value is not None]
        if not had:
            return scored[0] if scored else Scored.none(NO_REFERENCE)
        value = over_references([value for value, _ in had], self.config.references, self.better)
        return Scored(value, reason=max((reason for _, reason in had), key=len))


def about_of(
    config: PairsConfig | SacrebleuConfig, answers: Sequence[Answer], *modules: str
) -> dict[str, Any]:
    """What the scorers of pairs have in common. Raises MissingExtra where one of the `modules` is
    not installed, and SetupError for a column of references that the data lacks."""
    if lacking := [_PACKAGES.get(m, m) for m in modules if find_spec(m) is None]:
        raise MissingExtra(f"the scorer {config.scorer}", "semantic", " and ".join(lacking))
    columns = about_columns(answers, config.reference_columns)
    return {"scorer": config.scorer, "references": config.references, **columns}


def weights_of(folder: Path) -> dict[str, Any]:
    """The weights of a scorer, and the version of what reads texts for them."""
    return identify(str(folder)) | {"transformers": version("transformers")}


def cut_of(answer: bool, reference: bool) -> str:
    """The remark on texts whose tail was not read; the longest one says most."""
    if answer and reference:
        return "the tails of answer and reference are cut"
    which = "answer" if answer else "reference"
    return f"the tail of the {which} is cut" if answer or reference else ""
