"""The steps of a ranking run, without torch: who writes, what is kept, who may stop it."""

import json
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from rank_bench_case import model, write
from scripted_judges import Listener

import judgebench.models.checkpoints as encoder
import judgebench.ranking.rank_bench as running
from judgebench.errors import BudgetSpent, DamagedRun
from judgebench.files import read_lines
from judgebench.judges.judge import Task
from judgebench.progress import NoProgress, Progress
from judgebench.ranking.examples import EvaluatorPlan
from judgebench.ranking.rank_bench import (
    RankBench,
    evaluate_all,
    judge_all,
    load_rank_bench,
    write_arguments_of_all,
)
from judgebench.ranking.rankers import files_of, read_ranking, read_tasks
from judgebench.records import Status, Verdict
from judgebench.rubric import load_rubric
from judgebench.runs.folder import RunFolder
from judgebench.runs.judging import Interrupted, Stop


@pytest.fixture
def run(here: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    monkeypatch.setattr(encoder, "import_torch", lambda: None)
    return RunFolder(here / "run")


def baseline_only(here: Path, **more: object) -> RankBench:
    kinds = {"encoder": "encoder", "kinds": ["baseline"], "draws": 1}
    return load_rank_bench(write(here, {"evaluators": kinds, **more}))


def test_arguments_controls_split_and_ranking_are_written(here: Path, run: RunFolder) -> None:
    bench = baseline_only(here, generators=[model("one"), model("two")])
    assert write_arguments_of_all(bench, run, NoProgress()) == 0
    (task,) = read_tasks(run.path)
    ranked = [i.item_id for i in bench.tasks[0].ranked]
    assert [i.item_id for i in task.instances] == ranked
    systems = ["gold", "one", "two", "no-argument", "label-only", "noise"]
    assert list(task.arguments) == systems
    assert all(list(task.arguments[system]) == ranked for system in systems)
    assert {a.text for a in task.arguments["no-argument"].values()} == {""}
    labels = {i.item_id: i.label_text for i in task.instances}
    assert {k: a.text for k, a in task.arguments["label-only"].items()} == labels
    for item, argument in task.arguments["noise"].items():
        assert argument.text != task.arguments["gold"][item].text
    assert str(here) not in (run.path / "proxy" / "ranking.json").read_text()


def test_a_generator_may_refuse_every_item(here: Path, run: RunFolder) -> None:
    path = write(here, {"evaluators": {"encoder": "encoder", "kinds": ["baseline"]}})
    (here / "replies.jsonl").write_text('{"text": "", "finish": "refused"}\n')
    bench = load_rank_bench(path)
    write_arguments_of_all(bench, run, NoProgress())
    (task,) = read_tasks(run.path)
    assert "one" not in task.arguments


def test_arguments_of_a_larger_sample_are_kept_and_not_read(here: Path, run: RunFolder) -> None:
    kinds = {"encoder": "encoder", "kinds": ["llm-trained"]}
    whole = load_rank_bench(write(here, {"evaluators": kinds}))
    write_arguments_of_all(whole, run, NoProgress())
    path = run.path / "proxy" / "arguments-one.jsonl"
    assert len(list(read_lines(path))) == 40
    sample = {"train": 4, "development": 2}
    part = load_rank_bench(write(here, {"evaluators": kinds, "sample": sample}))
    write_arguments_of_all(part, run, NoProgress())
    assert len(list(read_lines(path))) == 10 + 4 + 2
    assert len(list(read_lines(run.path / "proxy" / "replies-one.jsonl"))) == 40


def test_judges_are_asked_about_every_argument_and_control_case(here: Path, run: RunFolder) -> None:
    rubric = load_rubric("argument-quality")
    labels = {m.id: m.label_texts[0] for m in rubric.metrics}
    (here / "judge.jsonl").write_text(json.dumps({"text": labels}) + "\n")
    kinds = {"encoder": "encoder", "kinds": ["baseline"]}
    judges = [{"name": "j", "backend": "scripted:judge.jsonl"}]
    bench = load_rank_bench(write(here, {"evaluators": kinds}, judges=judges))
    write_arguments_of_all(bench, run, NoProgress())
    judge_all(bench, run)
    found = {v.item_id for v in run.verdicts("j") if v.labels}
    systems = ("gold", "one", "no-argument", "label-only", "noise")
    assert found == {f"claims/{i.item_id}/{s}" for i in bench.tasks[0].ranked for s in systems}


def test_ctrl_c_while_passages_are_sought(here, run, monkeypatch) -> None:
    def interrupted(*about: object) -> dict[str, object]:
        signal.raise_signal(signal.SIGINT)
        return {}

    monkeypatch.setattr(running, "make_control_cases", interrupted)
    with pytest.raises(Interrupted):
        write_arguments_of_all(baseline_only(here), run, NoProgress())
    assert len(list(read_lines(run.path / "proxy" / "arguments-one.jsonl"))) == 10


def test_a_budget_counts_all_generators_and_earlier_runs(here: Path, run: RunFolder) -> None:
    bench = baseline_only(here, generators=[model("one"), model("two")])
    (run.path / "proxy").mkdir(parents=True)
    spent = {"key": "s", "text": "So.", "finish": "stop", "error": "", "cost": 3.0}
    (run.path / "proxy" / "replies-two.jsonl").write_text((json.dumps(spent) + "\n") * 2)
    with pytest.raises(BudgetSpent, match=r"budget of \$2\.5 is used up: \$3\.0000"):
        write_arguments_of_all(bench, run, NoProgress(), 2.5)


def test_damaged_arguments_are_made_again(here: Path, run: RunFolder) -> None:
    kinds = {"encoder": "encoder", "kinds": ["baseline"]}
    judges = [{"name": "j", "backend": "scripted:judge.jsonl"}]
    labels = {m.id: m.label_texts[0] for m in load_rubric("argument-quality").metrics}
    (here / "judge.jsonl").write_text(json.dumps({"text": labels}) + "\n")
    bench = load_rank_bench(write(here, {"evaluators": kinds}, judges=judges))
    write_arguments_of_all(bench, run, NoProgress())
    judge_all(bench, run)
    run.write_manifest(run.manifest(), "finished", files_of(run.path))  # as `rank_all` ends
    RunFolder.existing(run.path)
    path = run.path / "proxy" / "arguments-one.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:4]))
    with pytest.raises(DamagedRun, match=r"arguments-one\.jsonl: was changed after"):
        RunFolder.existing(run.path)

    told = Listener()
    write_arguments_of_all(bench, run, told)
    message = "was changed after the run; the run wrote 10 lines, it holds 4"
    assert f"{path}: {message}; what it lacks is made again" in told.heard
    assert len(list(read_lines(path))) == 10
    assert run.manifest()["state"] == "running"  # until all steps are done
    RunFolder.existing(run.path)  # is as the manifest says


def test_training_names_the_evaluator(here, run, monkeypatch) -> None:
    """Trainings and decisions are scripted: what is told of them is not."""
    trained: list[str] = []

    def train(plan: EvaluatorPlan, folder: Path, progress: Progress, stop: Stop) -> None:
        trained.append(plan.name)
        if len(trained) == 3:
            signal.raise_signal(signal.SIGINT)
            raise Interrupted

    evaluator = ModuleType("evaluator")
    evaluator.train = train  # type: ignore[attr-defined]
    evaluator.ProxyEvaluator = SimpleNamespace(load=lambda *about: None)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "judgebench.ranking.evaluator", evaluator)
    monkeypatch.setattr(running, "judge_answers", lambda *about: None)
    monkeypatch.setattr(running, "RequestGroups", lambda *about: None)
    kinds = {"encoder": "encoder", "kinds": ["baseline", "expert-trained"], "draws": 2}
    bench = load_rank_bench(write(here, {"evaluators": kinds}))
    write_arguments_of_all(bench, run, NoProgress())
    told = Listener()
    with pytest.raises(Interrupted):
        evaluate_all(bench, run, told)
    assert trained == ["claims-baseline", "claims-baseline-1", "claims-expert-trained"]
    assert "claims-expert-trained: evaluator 3 of 4 of claims" in told.heard
    assert told.heard[-1].startswith("Finishing the batch in training or the decisions in hand")
    assert len(read_ranking(run.path).evaluators("claims")) == 4


def test_damaged_decisions_are_made_again(here, run, monkeypatch) -> None:
    """The evaluator is scripted; its verdicts pass through the log that every judge writes."""
    bench = baseline_only(here)
    write_arguments_of_all(bench, run, NoProgress())
    name, asked = "claims-baseline", list[str]()

    def judge(tasks: Iterable[Task]) -> Iterator[Verdict]:
        for task in tasks:
            asked.append(task.answer.item_id)
            yield Verdict(asked[-1], task.content_hash, name, "s", Status.OK, {"claims": "yes"})

    scripted = SimpleNamespace(name=name, signature="s", judge=judge)
    evaluator = ModuleType("evaluator")
    evaluator.train = lambda *about: None  # type: ignore[attr-defined]
    evaluator.ProxyEvaluator = SimpleNamespace(load=lambda *about: scripted)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "judgebench.ranking.evaluator", evaluator)
    evaluate_all(bench, run, NoProgress())
    path = run.verdict_path(name)
    whole = path.read_bytes()
    assert len(asked) == 5 * len(bench.tasks[0].ranked)
    first, rest = whole.split(b"\n", 1)
    path.write_bytes(first.replace(b"yes", b"no!") + b"\n" + rest)
    asked.clear()
    evaluate_all(bench, run, told := Listener())
    said = (
        f"{path.name}: 1 damaged line is now in {path.name}.damaged; what it judged is asked again"
    )
    assert said in told.heard
    assert asked == [json.loads(first)["item_id"]]
    assert path.with_name(f"{path.name}.damaged").read_bytes().startswith(first[:20])
    assert sorted(path.read_bytes().splitlines()) == sorted(whole.splitlines())
