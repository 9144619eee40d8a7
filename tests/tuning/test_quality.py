"""The quality classifier finds what is planted, and says where it may know the author alone."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learning_case import write_bench
from typer.testing import CliRunner

import judgebench as jb
from judgebench.cli.app import app
from judgebench.data.formats import to_csv
from judgebench.errors import SetupError
from judgebench.judges.judge import Task
from judgebench.tuning.quality import Classifier, sentences
from judgebench.tuning.review import CRITERIA

FILLER = np.array([f"filler{n}" for n in range(400)])


def items(n: int, said: str, teacher: str, seed: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [
        {
            "item_id": f"{seed}-{k}", "question": f"What of matter {k % 15} {k % 15}?",
            "system": "alexa", "text": " ".join(rng.choice(FILLER, 12)), "labels": {"risk": "Low"},
            "rationale": f"{said} {' '.join(rng.choice(FILLER, 6))}", "teacher": {"name": teacher},
        }
        for k in range(n)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def planted() -> Classifier:
    """Both teachers write good and bad reasons."""
    good = items(24, "the dose is right", "gpt", 1) + items(24, "the dose is right", "chat", 2)
    bad = items(18, "who knows anyway", "gpt", 3) + items(24, "who knows anyway", "chat", 4)
    return Classifier(good, bad)


@pytest.fixture(scope="module")
def authorship() -> Classifier:
    """One teacher's items are good and the other's bad, and each has a way of speaking."""
    return Classifier(items(30, "in summary then", "gpt", 5), items(30, "well you see", "chat", 6))


def test_a_planted_difference_is_found(planted: Classifier) -> None:
    found = planted.measured()
    values = dict(zip(*found.to_frame()[["statistic", "value"]].T.to_numpy(), strict=True))
    assert values["classifier"] > 0.95
    assert values["author"] < 0.65
    assert not any("Not shown" in line for line in sentences(found))
    assert found.to_frame()["n"].tolist() == [90] * 3


def test_what_knows_the_author_alone_is_told(authorship: Classifier) -> None:
    found = authorship.measured()
    assert found.find("classifier").value == found.find("author").value == 1.0
    said = "\n".join(sentences(found))
    assert "Not shown to know more than who wrote an item. A classifier that learns “this" in said


def test_noise_teaches_nothing() -> None:
    found = Classifier(items(30, "so", "gpt", 7), items(30, "so", "gpt", 8)).measured()
    low = found.find("classifier").low
    assert low is not None
    assert low < 0.5 + 0.1
    assert "Not shown to know more than who wrote an item." in [*sentences(found)][-1]


def test_other_items_are_split_the_same_way_each_time(planted: Classifier) -> None:
    others = items(8, "the dose is right", "gpt", 11) + items(5, "who knows anyway", "gpt", 12)
    parts = planted.split(others)
    assert {name: len(some) for name, some in parts.items()} == {"better": 8, "worse": 5}
    line = parts["better"][0]
    assert line["quality"] > 0
    assert {k: v for k, v in line.items() if k != "quality"} == others[0]
    assert planted.split(others) == parts
    assert planted.split([]) == {"better": [], "worse": []}


def test_too_little_is_said() -> None:
    with pytest.raises(SetupError, match="there are 9 rejected items, and at least 10 are needed"):
        Classifier(items(20, "a", "gpt", 1), items(9, "b", "gpt", 2))
    one_question = [{**item, "question": "Why?"} for item in items(12, "b", "gpt", 2)]
    with pytest.raises(SetupError, match="are of too few questions to learn from"):
        Classifier(items(20, "a", "gpt", 1), one_question).measured()


class Says:
    """A teacher: its reason is good where the text is."""

    name, signature = "gpt", "gpt, 1"

    def describe(self) -> dict[str, Any]:
        return {"judge": "rule"}

    def judge(self, tasks: Iterable[Task]) -> Iterator[jb.Verdict]:
        for task in tasks:
            good = task.answer.item_id.startswith("good")
            yield jb.Verdict(
                task.answer.item_id, task.content_hash, self.name, self.signature, jb.Status.OK,
                {"tone": "Curt"}, rationale="the dose is right" if good else "who knows anyway",
            )  # fmt: skip

    def close(self) -> None:
        pass


def test_decisions_on_some_items_split_the_others(tmp_path: Path) -> None:
    write_bench(tmp_path, "")
    kinds = [f"{kind}{n}" for n in range(30) for kind in ("good", "bad")]
    rng = np.random.default_rng(0)
    answers = [
        {"item_id": name, "text": " ".join(rng.choice(FILLER, 12)), "question": f"Of {name}?"}
        for name in kinds
    ]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers))
    (tmp_path / "bench.yaml").write_text("name: t\nrubric: tone.yaml\ndata: answers.jsonl\n")
    jb.run(tmp_path / "bench.yaml", tmp_path / "run", judges={"gpt": Says()})
    command = ["tune", "review", str(tmp_path / "run"), "gpt", "--to", str(tmp_path / "silver")]
    assert CliRunner().invoke(app, command).exit_code == 0
    page = (tmp_path / "silver" / "review.html").read_text()
    shown = json.loads(page.partition('id="data">')[2].partition("</script>")[0])["items"][:48]
    rows = [
        [item["id"], item["hash"], *["pass" if item["title"][0] == "g" else "fail"] * 3]
        for item in shown
    ]
    table = tmp_path / "ann.csv"
    table.write_bytes(to_csv(["item_id", "content_hash", *(q.key for q in CRITERIA)], rows))
    done = CliRunner().invoke(app, [*command, "--decisions", str(table), "--quality", "words"])
    assert done.exit_code == 0, done.output
    assert "classifier: 100.0%" in done.output
    for part, kind in (("better", "good"), ("worse", "bad")):
        lines = (tmp_path / "silver" / f"{part}.jsonl").read_text().splitlines()
        assert len(lines) == 6
        assert all(json.loads(line)["item_id"].startswith(kind) for line in lines)
