"""What a judge gets wrong may be taught otherwise: only its training, and only where that helps."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rounds_case import (
    TONE,
    Words,
    World,
    agreeing,
    objecting,
    panel,
    proposal,
    text_in,
    work_in,
    world,
)

from judgebench.errors import BudgetSpent
from judgebench.judges.judge import Task
from judgebench.learning.learnt import LEARNT, LearntJudge
from judgebench.models.contract import Request
from judgebench.records import content_hash
from judgebench.runs.judging import Interrupted, Work
from judgebench.stats.intervals import LEVEL, clustered_mean
from judgebench.tuning.config import RoundsConfig
from judgebench.tuning.rounds import DECISIONS, Rounds

Script = Callable[[Request], str]


def item_in(request: Request) -> str:
    found = re.search(r"\bn(\d+)\b", text_in(request))
    assert found
    return f"a{found[1]}"


def knowing(world: World) -> Script:
    return lambda request: proposal(world.right[item_in(request)], "it is what was meant")


def at_random(seed: int) -> Script:
    return lambda request: proposal(
        ("Kind", "Rude")[int(content_hash([seed, item_in(request)]), 16) % 2]
    )


class Trial:
    """A judge in rounds, and its baseline of as many passes, in one run folder."""

    def __init__(
        self, world: World, folder: Path, suggester: Script, objector: Script = agreeing,
        decide: str = "agreed",
    ) -> None:  # fmt: skip
        self.world, self.folder = world, folder
        home = folder / "tuning" / "j"
        talks = panel(home, suggester, objector)
        config = RoundsConfig(suggester="expert", objector="second", decide=decide)
        self.words = Words()
        self.rounds = Rounds(self.words, config, talks, home)
        self.said: Mapping[str, str] = {}

    def judged(self, work: Work | None = None, *, revise: bool = True) -> dict[str, str]:
        learner = self.rounds if revise else self.words
        name, material = "j" if revise else "j~unrevised", self.world.material
        self.judge = LearntJudge(name, learner, material, material.cells, self.folder / "tuning")
        self.judge.begin(work or work_in(self.folder))
        return {
            verdict.item_id: verdict.labels[TONE]
            for verdict in self.judge.judge(map(Task, self.world.answers))
        }

    @property
    def facts(self) -> list[Mapping[str, Any]]:
        home = self.folder / "tuning" / self.judge.name / self.judge.signature
        return [json.loads(path.read_text()) for path in sorted(home.glob(f"*/{LEARNT}"))]

    def taught(self, cell: int = 0) -> list[dict[str, Any]]:
        """The proposals that were learnt from."""
        return [one for one in self.facts[cell]["proposals"] if one["taught"]]


def share_right(said: Mapping[str, str], world: World) -> float:
    return float(np.mean([said[item] == label for item, label in world.right.items()]))


@pytest.fixture(scope="module")
def helped(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """A trial whose suggester knows, and which has judged."""
    here = world(seed=5, n=300)
    trial = Trial(here, tmp_path_factory.mktemp("helped"), knowing(here))
    trial.said = trial.judged()
    return trial


def test_revisions_that_are_right_help(helped: Trial) -> None:
    assert all(fact["revised"] > 20 for fact in helped.facts)
    other = Trial(helped.world, helped.folder, knowing(helped.world))
    plain = other.judged(revise=False)
    assert share_right(helped.said, helped.world) > share_right(plain, helped.world) + 0.05


def test_only_the_target_is_revised_and_it_says_by_whom(helped: Trial) -> None:
    here = helped.world
    rows = here.material.training(np.arange(len(here.answers)))
    given = dict(zip([a.item_id for a in rows.answers], rows.labels[TONE].tolist(), strict=True))
    helped.judged()
    lines = helped.taught()
    assert len(lines) == helped.facts[0]["revised"]
    for line in lines:
        assert line["now"] == here.right[line["item_id"]] != line["was"]
        assert line["reason"] == "it is what was meant"
        assert (line["outcome"], line["decision"]) == ("agreed", "accept")
        assert [turn["by"] for turn in line["transcript"]] == ["expert", "second"]
        # The truth is what people said, as it was.
        assert ("Kind", "Rude")[given[line["item_id"]]] == line["was"]


def test_no_talk_is_about_what_is_then_judged(tmp_path: Path) -> None:
    here = world(seed=1, n=90)
    for number, cell in enumerate(here.material.cells):
        asked: list[str] = []

        def suggest(request: Request, asked: list[str] = asked) -> str:
            asked.append(item_in(request))
            return knowing(here)(request)

        trial = Trial(here, tmp_path / str(number), suggest)
        material = here.material
        train = material.training(cell.train, cell.judged)
        (tmp_path / str(number) / "cell").mkdir(parents=True)
        trial.rounds.fit(train, tmp_path / str(number) / "cell", work_in(tmp_path))
        judged = {here.answers[row].item_id for row in cell.judged}
        assert asked
        assert not judged & set(asked)
        learnt = {a.item_id for fit in trial.words.fits for a in fit.answers}
        assert not judged & learnt


def gain(trial: Trial) -> tuple[float, float | None]:
    """By how much more labels of people it says than the baseline, and the lower bound of that."""
    train = trial.world.material.training(np.arange(len(trial.world.answers)))
    given = [("Kind", "Rude")[code] for code in train.labels[TONE].tolist()]
    said = [trial.judged(), trial.judged(revise=False)]
    right = [
        np.array([s[a.item_id] == g for a, g in zip(train.answers, given, strict=True)], int)
        for s in said
    ]
    each = np.arange(len(given))
    found = clustered_mean(1.0 * right[0] - right[1], each, "", LEVEL, kind="difference")
    assert found.value is not None
    return found.value, found.low


@pytest.mark.parametrize("noise", ["revisions", "labels"])
def test_no_gain_is_shown_of_noise(tmp_path: Path, noise: str) -> None:
    shown, gains = 0, []
    for seed in range(10):
        here = world(seed, n=90, wrong=0.5 if noise == "labels" else 0.3)
        suggest = at_random(seed) if noise == "revisions" else knowing(here)
        value, low = gain(Trial(here, tmp_path / str(seed), suggest))
        gains.append(value)
        shown += low is not None and low > 0
    assert shown <= 1  # of ten at 2.5 % each, two or more come by chance once in forty times
    assert np.mean(gains) < 0.02


def waiting_in(fact: Mapping[str, Any]) -> list[str]:
    return [line["key"] for line in fact["proposals"] if not line["decision"]]


def decide(trial: Trial, accept: Callable[[str], bool]) -> int:
    """Decide all that waits, as people do."""
    waiting = sorted({key for fact in trial.facts for key in waiting_in(fact)})
    words = {key: "accept" if accept(key) else "reject" for key in waiting}
    (trial.folder / "tuning" / "j" / DECISIONS).write_text(json.dumps(words))
    return len(waiting)


def test_rejected_proposals_change_nothing(tmp_path: Path) -> None:
    here = world(seed=5, n=90)
    first = Trial(here, tmp_path, knowing(here), decide="people")
    before = first.judged()
    decide(first, lambda key: False)
    second = Trial(here, tmp_path, knowing(here), decide="people")
    assert second.judged() == before
    assert all(fact["revised"] == len(waiting_in(fact)) == 0 for fact in second.facts)


def test_people_are_the_jury_where_the_two_disagree(tmp_path: Path) -> None:
    here = world(seed=5, n=90)
    trial = Trial(here, tmp_path, knowing(here), objecting)
    trial.judged()
    for fact in trial.facts:
        about = fact["rounds"][0]
        assert about["revised"] == 0
        assert len(waiting_in(fact)) == about["outcomes"]["disputed"] > 0


@pytest.mark.parametrize("after", [3, 40])
def test_interrupted_rounds_go_on(tmp_path: Path, after: int) -> None:
    here = world(seed=5, n=90)
    whole = Trial(here, tmp_path / "whole", knowing(here))
    expected, asked = whole.judged(), 0

    def cut(request: Request) -> str:
        nonlocal asked
        asked += 1
        if asked == after:
            raise Interrupted
        return knowing(here)(request)

    trial = Trial(here, tmp_path / "cut", cut)
    with pytest.raises(Interrupted):
        trial.judged()
    assert trial.judge.ahead.endswith(" judges 90 answers")
    assert trial.judged() == expected
    assert trial.judge.ahead == "j: learns 0 times, judges 90 answers"
    turns = [json.loads(x) for x in (tmp_path / "cut/tuning/j/exchanges.jsonl").open()]
    assert asked == 1 + sum("meant" in turn["text"] for turn in turns)
    hashes = [fit.hash for fit in trial.words.fits]
    assert len(hashes) <= len(whole.words.fits) + 1  # what was learnt is not learnt again


def test_all_is_paid_from_the_budget(tmp_path: Path) -> None:
    here = world(seed=5, n=90)
    trial = Trial(here, tmp_path, knowing(here))
    with pytest.raises(BudgetSpent, match="is used up"):
        trial.judged(work_in(tmp_path, budget=0.1))
    assert 0 < trial.rounds.spent <= 0.1
    trial.judged()
    turns = (tmp_path / "tuning" / "j" / "exchanges.jsonl").read_text().splitlines()
    assert trial.rounds.spent == pytest.approx(0.01 * len(turns))
    assert trial.judge.spent == trial.rounds.spent
