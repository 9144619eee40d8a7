"""A bench.yaml with `proxy`: what is wrong in it is told whole, before anything is asked."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rank_bench_case import model, write

import judgebench.models.checkpoints as encoder
from judgebench.errors import MissingExtra, Problem, SetupError
from judgebench.files import shipped_folder
from judgebench.ranking.rank_bench import load_rank_bench
from judgebench.ranking.rankers import argument_answer
from judgebench.ranking.task import TaskInstance
from judgebench.runs.load import load_bench
from judgebench.setup_files import check

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def extras(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch counts as installed: nothing here calls it."""
    monkeypatch.setattr(encoder, "import_torch", lambda: None)


def given(folder: Path, *rows: dict[str, str]) -> str:
    lines = [{"task": "claims", "system": "mine", "text": "So."} | row for row in rows]
    (folder / "given.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return "given.jsonl"


def problems(folder: Path, proxy: dict[str, Any] | None = None, **more: Any) -> list[Problem]:
    with pytest.raises(SetupError) as raised:
        load_rank_bench(write(folder, proxy, **more))
    return list(raised.value.problems)


def places(found: list[Problem]) -> list[tuple[str, str, str]]:
    return [(Path(p.file).name, p.field, p.found) for p in found]


def test_a_sound_file_gives_tasks_with_their_generators_and_evaluators(here: Path) -> None:
    evaluators = {"encoder": "encoder", "kinds": ["baseline"], "training": {"epochs": 1}}
    settings = {"generators": [model("a"), model("b")], "evaluators": evaluators}
    bench = load_rank_bench(write(here, settings))
    (task,) = bench.tasks
    assert bench.systems == ["gold", "a", "b"]
    assert bench.proxy.evaluators.training.epochs == 1
    assert Path(bench.proxy.evaluators.encoder) == here / "encoder"
    assert {split: len(task.of(split)) for split in ("train", "development", "test")} == {  # type: ignore[arg-type]
        "train": 20, "development": 10, "test": 10,
    }  # fmt: skip


def test_given_arguments_belong_to_their_task(here: Path) -> None:
    name = given(here, {"item_id": "q0"}, {"item_id": "q1"})
    bench = load_rank_bench(write(here, {"arguments": [name]}))
    assert [(a.system, a.item_id) for a in bench.given] == [("mine", "q0"), ("mine", "q1")]


def test_what_a_judge_reads_holds_the_document_and_never_the_label(here: Path) -> None:
    instance = TaskInstance(
        "q0", "Which?", "2", "why", "test", ("red", "green"), context="A trial.", group="g"
    )
    (task,) = load_rank_bench(write(here)).tasks
    answer = argument_answer(task.name, instance, "one", "Since it is so.")
    assert answer.question == "Which?\n1. red\n2. green\n\nDocument:\nA trial."
    assert (answer.text, answer.reference, answer.system) == ("Since it is so.", None, "one")
    assert (answer.item_id, answer.group) == ("claims/q0/one", "claims/g")
    assert "2" not in answer.metadata.values()


def test_everything_wrong_is_told_at_once(here: Path) -> None:
    (here / "empty").mkdir()
    found = problems(
        here,
        {
            "tasks": ["task.yaml", "no-such-task"],
            "generators": [model("one"), model("one"), {**model("two"), "backend": "scripted:no"}],
            "evaluators": {"encoder": "empty"},
            "corpus": "nothing.jsonl",
        },
        rubric="no-such-rubric",
        judges=[{"name": "j", "backend": "scripted:gone.jsonl", "prompt": "no-such-prompt"}],
    )
    told = "\n".join(map(str, found))
    for part in (
        "no-such-task", "two generators have this name", "no: cannot be read", "holds no weights",
        "nothing.jsonl", "no-such-rubric",
    ):  # fmt: skip
        assert told.count(part) >= 1, (part, told)
    assert len(set(found)) == len(found)
    assert all(p.file for p in found)


ONE_AT_A_TIME: dict[str, tuple[dict[str, Any], tuple[str, str, str]]] = {
    "two generators of a name": (
        {"generators": [model("one"), model("one")]},
        ("bench.yaml", "proxy.generators", "one"),
    ),
    "two tasks of a name": (
        {"tasks": ["task.yaml", "task.yaml"]}, ("bench.yaml", "proxy.tasks", "claims"),
    ),
    "nobody to learn from": (
        {"generators": [], "evaluators": {"encoder": "encoder", "kinds": ["llm-trained"]}},
        ("bench.yaml", "proxy.tasks.0.kinds", "llm-trained"),
    ),
}  # fmt: skip


def test_families_hold_generators_and_judges(here: Path) -> None:
    judges = [{"name": "j", "backend": "scripted:replies.jsonl"}]
    families = {"fam": ["one", "j"], "mine": ["mine"]}
    name = given(here, {"item_id": "q0"})
    assert load_rank_bench(write(here, {"families": families, "arguments": [name]}, judges=judges))
    (problem,) = problems(here, {"families": {"fam": ["onne"]}}, judges=judges)
    assert "is no generator and no judge; did you mean 'one'?" in problem.message
    assert problem.allowed == "one, j"


@pytest.mark.parametrize("case", ONE_AT_A_TIME)
def test_a_problem_names_its_place(case: str, here: Path) -> None:
    proxy, place = ONE_AT_A_TIME[case]
    assert place in places(problems(here, proxy))


@pytest.mark.parametrize("name", ["noise", "gold", "no-argument"])
def test_a_generator_is_not_called_like_a_control_case(name: str, here: Path) -> None:
    (problem,) = problems(here, {"generators": [model(name)]})
    assert problem.field == "proxy.generators.0.name"
    assert problem.line is not None
    assert f"is kept for the {name} arguments" in problem.message


def test_a_sample_that_lacks_a_class_is_told(here: Path) -> None:
    rows = "".join(f"x{n},Odd {n},{'no' if n else 'yes'},Reason,h{n}\n" for n in range(1, 60))
    path = write(here, {"sample": {"train": 2}})
    with (here / "claims.csv").open("a") as file:
        file.write(rows)
    with pytest.raises(SetupError, match="the train split lacks the class 'yes'"):
        load_rank_bench(path)


def test_a_task_that_fails_does_not_make_its_arguments_unknown(here: Path) -> None:
    path = write(here, {"arguments": [given(here, {"item_id": "q0"})]})
    (here / "claims.csv").unlink()
    with pytest.raises(SetupError) as raised:
        load_rank_bench(path)
    assert "given.jsonl" not in str(raised.value)


@pytest.mark.parametrize("system", ["one", "gold", "noise"])
def test_a_given_system_is_not_called_like_another(system: str, here: Path) -> None:
    name = given(here, {"item_id": "q0", "system": system})
    assert ("bench.yaml", "proxy.arguments.system", system) in places(
        problems(here, {"arguments": [name]})
    )


def test_given_arguments_must_reach_both_splits_that_are_learnt_from(here: Path) -> None:
    entry = load_rank_bench(write(here)).tasks[0]
    name = given(here, *({"item_id": i.item_id} for i in entry.of("train")))
    (problem,) = problems(here, {"generators": [], "arguments": [name]})
    assert "needs arguments of a model in the development split" in problem.message


def test_passages_need_a_corpus_that_is_not_empty(here: Path) -> None:
    (here / "empty.jsonl").write_text("")
    (problem,) = problems(here, {"corpus": "empty.jsonl", "retriever": "encoder"})
    assert Path(problem.file).name == "empty.jsonl"


def test_an_encoder_folder_without_weights_is_told(here: Path) -> None:
    path = write(here)
    (here / "encoder" / "model.safetensors").unlink()
    with pytest.raises(SetupError, match="weights") as raised:
        load_rank_bench(path)
    (problem,) = raised.value.problems
    assert str(here / "encoder") in str(problem)


def test_a_missing_extra_names_the_pip_line(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise MissingExtra("proxy evaluators", "proxy", "torch")

    monkeypatch.setattr(encoder, "import_torch", missing)
    with pytest.raises(SetupError, match=r"\[proxy\]'"):
        load_rank_bench(write(here))


def test_judgebench_run_sends_a_ranking_to_its_own_verb(call: Call, here: Path) -> None:
    code, _, err = call("run", write(here))
    assert code == 2
    assert "judgebench rank run" in err


def test_a_bench_without_proxy_is_no_ranking(call: Call, here: Path) -> None:
    (here / "bench.yaml").write_text("name: b\nrubric: argument-quality\n")
    code, _, err = call("rank", "run", here / "bench.yaml")
    assert code == 2
    assert "bench.yaml: proxy: must be there in a ranking" in err


def test_a_ranking_can_be_checked_before_it_runs(call: Call, here: Path) -> None:
    path = write(here)
    code, out, _ = call("check", path, here / "task.yaml", _argument_prompt(here))
    assert code == 0
    assert "bench.yaml: a ranking of arguments on 1 tasks (instances ranked: claims 10)" in out
    assert "task.yaml: the task claims: yes, no; train 20, development 10, test 10" in out
    assert "why.jinja: a prompt that asks for argument" in out


def _argument_prompt(folder: Path) -> Path:
    path = folder / "why.jinja"
    path.write_text(
        "---\nwrites: argument\n---\n{% block system %}Give reasons.{% endblock %}\n"
        "{% block user %}{{ question }}{% endblock %}\n"
    )
    return path


def test_every_shipped_prompt_for_arguments_passes_its_check() -> None:
    files = sorted(shipped_folder("prompts/arguments").glob("*.jinja"))
    found = check(files, "support-tone")
    assert found.errors == []
    assert len(found.facts) == len(files) >= 3


def test_a_check_tells_what_is_wrong_with_a_ranking(here: Path) -> None:
    path = write(here, {"tasks": ["no-such-task"]})
    (problem,) = check([path], "argument-quality").errors
    assert "no-such-task" in str(problem)
    assert "misinformation" in str(problem)


def test_judges_of_a_ranking_are_asked_about_arguments_alone(here: Path) -> None:
    from judgebench.records import Answer, Dataset

    path = write(here, judges=[{"name": "j", "backend": "scripted:replies.jsonl"}])
    bench = load_bench(path, arguments=Dataset([Answer("claims/q0/gold", "So.")], ()))
    assert [judge.name for judge in bench.judges] == ["j"]
    assert bench.controls == (), "baselines learn from human labels"
    bench.close()
