"""What is kept of scores, whichever scorer they come from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from judgebench.records import Answer
from judgebench.scorers.judges import Scoring
from judgebench.scorers.scorer import Better, KeptScores, Scored


class ByName:
    """A `Scorer` that gives the number that a text spells."""

    better: Better = "lower"

    def __init__(self, at_once: int = 2) -> None:
        self.at_once = at_once
        self.about = {"scorer": "by-name"}

    def key(self, answer: Answer) -> str:
        return answer.text

    def score(self, answers: Sequence[Answer]) -> Sequence[Scored]:
        return [Scored(float(answer.text)) for answer in answers]

    def close(self) -> None:
        """Nothing to give back."""


def test_an_infinite_score_is_none_and_says_so_also_once_it_is_kept(tmp_path: Path) -> None:
    texts = ("1.5", "inf", "nan", "-inf", "-2")
    answers = [Answer(text, text) for text in texts]
    found = KeptScores(ByName(), tmp_path).of(answers)
    values = [float(text) for text in texts]
    assert [one.value for one in found] == [x if math.isfinite(x) else None for x in values]
    assert {one.reason for one in found if one.value is None} == {"its score is no finite number"}
    assert KeptScores(ByName(), tmp_path).of(answers) == found


def test_how_a_run_will_score_is_said_before_it() -> None:
    said = [Scoring("n", KeptScores(ByName(n), None)).ahead for n in (1, 4096)]
    assert said == ["n: scores answers, 1 at a time", "n: scores answers, 4,096 at a time"]
