"""`judgebench rank init`: from a table of questions to a ranking that can run."""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from rank_bench_case import ENCODER

import judgebench.models.checkpoints as encoder
from judgebench.ranking.rank_bench import load_rank_bench
from judgebench.ranking.task import SPLITS
from judgebench.ranking.task_file import load_task

Call = Callable[..., tuple[int, str, str]]


def exam(
    columns: Sequence[str] = ("id", "Question", "A", "B", "C", "Answer", "Explanation"),
) -> None:
    """Thirty questions, twelve of which begin alike, with letters as key."""
    with Path("questions.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for i in range(30):
            stem = "Which of these is true?" if i < 12 else f"What is fact {i}?"
            row = [f"q{i}", stem, f"one {i}", f"two {i}", f"three {i}", "ABC"[i % 3], f"Since {i}."]
            writer.writerow(row[: len(columns)])


def test_a_table_becomes_a_ranking(call: Call, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exam()
    code, out, err = call("rank", "init", "questions.csv", "--to", "mine")
    assert code == 0, err
    for said in ("text: Question", "label: Answer", "options: A, B, C", "argument: Explanation",
                 "the test split holds 6 groups: fewer than 10 show little; add questions",
                 "Next: judgebench rank run mine"):  # fmt: skip
        assert said in out
    task = load_task("mine/task.yaml", relative_to=Path())
    counts = [len([i for i in task.of(split) if not i.version]) for split in SPLITS]
    assert counts == [18, 6, 6]
    assert {i.version for i in task.of("train")} == {0, 1, 2}
    assert task.ranked[0].argument
    # What it starts is whole, but for the weights that the first of its steps fetches.
    monkeypatch.setattr(encoder, "import_torch", lambda: None)
    for name in ENCODER:
        (here / "mine" / "minilm").mkdir(exist_ok=True)
        (here / "mine" / "minilm" / name).write_text("{}")
    text = Path("mine/bench.yaml").read_text().replace("llamacpp:smollm2", "scripted:replies.jsonl")
    Path("mine/bench.yaml").write_text(text.replace("encoder: minilm", "encoder: ./minilm"))
    Path("mine/replies.jsonl").write_text('{"text": "So."}\n')
    Path("replies.jsonl").write_text('{"text": "So."}\n')
    bench = load_rank_bench(Path("mine/bench.yaml"))
    assert (bench.proxy.evaluators.draws, len(bench.proxy.evaluators.kinds)) == (3, 3)


def test_without_explanations_nothing_is_expert_trained(call: Call, here: Path) -> None:
    exam(("id", "stem", "option_1", "option_2", "option_3", "key"))
    code, out, _ = call("rank", "init", "questions.csv")
    assert code == 0
    assert "no column of gold arguments" in out
    assert "expert-trained" not in Path("bench.yaml").read_text()
    assert not any(i.argument for i in load_task("task.yaml", relative_to=Path()).instances)


def test_classes_are_read_from_the_labels(call: Call, here: Path) -> None:
    rows = [f"Claim {i},{'no' if i % 3 else 'yes'},Since {i}" for i in range(30)]
    Path("claims.csv").write_text("\n".join(["claim,verdict,why", *rows]))
    assert call("rank", "init", "claims.csv")[0] == 0
    assert load_task("task.yaml", relative_to=Path()).labels == ("no", "yes")


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (
            "a1,a2",
            "text: no column is known to hold the questions; found a1, a2; allowed: one named",
        ),
        (
            "question,answer",
            "answer: holds 30 different labels, and there are no columns of options",
        ),
    ],
)
def test_an_unclear_table_is_refused(call: Call, here: Path, head: str, message: str) -> None:
    Path("t.csv").write_text("\n".join([head, *(f"Q{i},A{i}" for i in range(30))]))
    code, _, err = call("rank", "init", "t.csv", "--to", "mine")
    assert code == 2
    assert message in " ".join(err.split())
    assert not Path("mine").exists()


def test_nothing_is_overwritten(call: Call, here: Path) -> None:
    exam()
    Path("task.yaml").write_text("mine")
    code, _, err = call("rank", "init", "questions.csv")
    assert (code, Path("task.yaml").read_text()) == (2, "mine")
    assert "exists and is not overwritten" in err
    Path("questions.csv").write_text("question,A,B,key\nQ,x,y,E\n")
    code, _, err = call("rank", "init", "questions.csv", "--to", "new")
    assert code == 2
    assert "names no option" in err
    assert not Path("new").exists()
