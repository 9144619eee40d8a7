"""What a generator is tuned on: what the ranking asks, word for word, and gold arguments."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rank_bench_case import write
from scripted_judges import ScriptedBackend

from judgebench.errors import SetupError
from judgebench.ranking.proxy.arguments import ArgumentWriter, write_pairs
from judgebench.ranking.proxy.task import GeneratorConfig
from judgebench.ranking.proxy.task_file import load_task
from judgebench.writer import WritingTerms

Call = Callable[..., tuple[int, str, str]]


def test_pairs_are_the_training_split_as_the_ranking_asks(tmp_path: Path, call: Call) -> None:
    write(tmp_path)
    to = tmp_path / "pairs.jsonl"
    code, out, err = call("rank", "pairs", tmp_path / "task.yaml", "--to", to, "--seed", 3)
    assert code == 0, err
    assert out == f"20 training instances with a gold argument: {to}\n"
    lines = [json.loads(line) for line in to.open()]
    task = load_task(str(tmp_path / "task.yaml"), seed=3)
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
