"""Arguments on disk: read back, told apart by system, and checked where a user brings them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rank_bench_case import write
from scripted_judges import ScriptedBackend

from judgebench.errors import SetupError
from judgebench.ranking.task import (
    Argument,
    ArgumentWriter,
    GeneratorConfig,
    ProxyTask,
    TaskInstance,
    argument_line,
    given_arguments,
    last_arguments,
    read_arguments,
    write_pairs,
)
from judgebench.ranking.task_file import load_task
from judgebench.writer import WritingTerms

PROMPT: Any = None  # nobody is asked


def task(name: str = "claims") -> ProxyTask:
    instances = [TaskInstance(f"i{n}", f"Claim {n}", "yes", "why", "test") for n in range(3)]
    return ProxyTask(name, name, ("yes", "no"), instances, PROMPT)


def lines(path: Path, *rows: dict[str, Any] | str) -> Path:
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows))
    return path


def row(item: str = "i0", system: str = "mine", **more: Any) -> dict[str, Any]:
    return {"task": "claims", "item_id": item, "system": system, "text": "Since.", **more}


def test_an_argument_comes_back_from_its_line_as_it_was(tmp_path: Path) -> None:
    made = [
        Argument("t", "i", "s", "", "signature", "refused"),
        Argument("t", "i", "s", "Text\nof two lines ✓"),
        Argument("t", "i", "s", "half a \ud83d pair"),
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(map(argument_line, made)))
    assert list(read_arguments(path)) == made
    assert json.loads(argument_line(Argument("t", "i", "s", ""))) == {
        "task": "t", "item_id": "i", "system": "s", "text": "", "finish": "stop",
    }  # fmt: skip


def last_texts(arguments: list[Argument]) -> dict[str, dict[str, str]]:
    found = last_arguments(arguments, "claims")
    return {s: {item: a.text for item, a in by_item.items()} for s, by_item in found.items()}


def test_the_last_argument_on_an_item_counts_and_a_blank_one_takes_it_away() -> None:
    made = [
        Argument("claims", "i0", "mine", "first"),
        Argument("claims", "i1", "mine", "kept"),
        Argument("other", "i2", "mine", "of another task"),
        Argument("claims", "i0", "mine", " \n"),
        Argument("claims", "i0", "no-argument", ""),
    ]
    assert last_texts(made) == {"mine": {"i1": "kept"}, "no-argument": {"i0": ""}}
    again = [*made, Argument("claims", "i0", "mine", "last")]
    assert last_texts(again)["mine"] == {"i1": "kept", "i0": "last"}


def test_every_line_that_fits_no_task_or_item_or_stands_twice_is_told(tmp_path: Path) -> None:
    one = lines(tmp_path / "one.jsonl", row("i9"), row(), row(task="cliams"), row("i8"))
    two = lines(tmp_path / "two.jsonl", row(), row("i1"))
    with pytest.raises(SetupError) as raised:
        given_arguments([one, two], [task()])
    told = [(Path(p.file).name, p.line, p.field, p.found) for p in raised.value.problems]
    assert told == [
        ("one.jsonl", 1, "item_id", "claims/i9, cliams/i0, claims/i8"),
        ("two.jsonl", 1, "item_id", "claims/i0"),
    ]
    assert "has an argument of mine before" in str(raised.value)


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ("not json", "bad.jsonl:2: is not JSON"),
        ('{"task": "claims"}', "bad.jsonl:2: is no argument"),
        (row(colour="red"), "bad.jsonl:2: is no argument"),
        (row(text=None), "bad.jsonl:2: text: must be a text; found None"),
        (row(item=7), "bad.jsonl:2: item_id: must be a text that is not blank; found 7"),
        (row(system=" "), "bad.jsonl:2: system: must be a text that is not blank; found ' '"),
    ],
)
def test_a_damaged_line_is_told_with_its_number(bad: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(SetupError) as raised:
        given_arguments([lines(tmp_path / "bad.jsonl", row(), bad)], [task()])
    assert told in str(raised.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"none\.jsonl: no such file"):
        given_arguments([tmp_path / "none.jsonl"], [task()])


def test_pairs_are_the_training_split_as_the_ranking_asks(tmp_path: Path) -> None:
    write(tmp_path)
    to = tmp_path / "pairs.jsonl"
    task = load_task(str(tmp_path / "task.yaml"), seed=3)
    assert write_pairs(task, to) == 20
    lines = [json.loads(line) for line in to.open()]
    train = {i.item_id: i for i in task.of("train")}
    assert {line["item_id"]: line["target"] for line in lines} == {
        item: i.argument for item, i in train.items()
    }
    backend = ScriptedBackend(lambda request: "x")
    generator = GeneratorConfig(name="g", backend="llamacpp:smollm2")
    writer = ArgumentWriter(generator, backend, tmp_path / "written.jsonl", 0)
    writer.write(task, list(train.values()), WritingTerms())
    asked = [
        [{"role": message.role, "content": message.content} for message in request.messages]
        for request in backend.requests
    ]
    assert [line["messages"] for line in lines] == asked


def test_instances_without_an_argument_are_left_out(tmp_path: Path) -> None:
    write(tmp_path)
    task = load_task(str(tmp_path / "task.yaml"))
    blank = [replace(i, argument=" ") if n % 2 else i for n, i in enumerate(task.instances)]
    given = [i.item_id for i in blank if i.split == "train" and i.argument.strip()]
    assert write_pairs(replace(task, instances=blank), tmp_path / "pairs.jsonl") == len(given)
    lines = [json.loads(line) for line in (tmp_path / "pairs.jsonl").open()]
    assert [line["item_id"] for line in lines] == given
    none = replace(task, instances=[replace(i, argument="") for i in task.instances])
    with pytest.raises(SetupError, match="task claims: has no gold argument in its training split"):
        write_pairs(none, tmp_path / "none.jsonl")
    assert not (tmp_path / "none.jsonl").exists()
