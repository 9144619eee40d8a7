"""A generator that is tuned on gold arguments writes in a ranking, beside the untuned one."""

import json
from collections.abc import Callable
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest
from learning_case import write_bench
from tiny_model import write_tiny_model

import judgebench as jb
from judgebench.errors import SetupError
from judgebench.learning.trainer import Watch
from judgebench.models import open_backend
from judgebench.models.contract import Message, Request
from judgebench.models.settings import BackendSettings
from judgebench.progress import NoProgress
from judgebench.runs.folder import RunFolder
from judgebench.runs.judging import Interrupted, Stop
from judgebench.runs.load import load_bench
from judgebench.tuning.config import LoraConfig
from judgebench.tuning.generator import tune_generator
from judgebench.tuning.judges import TuningExtension

pytestmark = [
    pytest.mark.transformers,
    pytest.mark.skipif(
        not all(map(find_spec, ("torch", "transformers", "outlines", "peft"))),
        reason="needs transformers, outlines, torch and peft (make test-transformers)",
    ),
]
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch

    torch.set_num_threads(1)
    # The whole prompt of a shipped task has to fit. An adapter leaves the last layer as it is, and
    # its weights have to be large for any word to be likely.
    larger = {"max_position_embeddings": 2048, "initializer_range": 0.5}
    return write_tiny_model(tmp_path_factory.mktemp("tiny") / "base", **larger)


def test_a_tuned_generator_enters_a_ranking(tmp_path: Path, tiny: Path, call: Call) -> None:
    pytest.importorskip("judgebench.ranking.rank_bench", reason="needs the feature `ranking`")
    from rank_bench_case import write

    from judgebench.ranking.rank_bench import load_rank_bench, write_arguments_of_all
    from judgebench.ranking.task import arguments_path, read_arguments

    write(tmp_path)
    rows = (tmp_path / "claims.csv").read_text().splitlines()
    gold = [",".join([*row.split(",")[:3], "few words", row.split(",")[4]]) for row in rows[1:]]
    (tmp_path / "claims.csv").write_text("\n".join([rows[0], *gold]) + "\n")
    tuned = tmp_path / "tuned"
    code, out, err = call(
        "tune", "generator", tmp_path / "task.yaml", "--model", tiny, "--to", tuned,
        "--recipe", "epochs=15", "--recipe", "learning_rate=0.01",
    )  # fmt: skip
    assert code == 0, err
    assert f"backend: transformers:{tuned}" in out
    about = json.loads((tuned / "generator.json").read_text())
    assert about["pairs"] == 20
    assert about["last_loss"] < 0.5 < about["first_loss"]
    # Merged: an ordinary model, which needs no other folder.
    assert {"config.json", "tokenizer.json"} <= {path.name for path in tuned.iterdir()}
    generators = [
        {"name": name, "backend": f"transformers:{folder}", "max_tokens": 12}
        for name, folder in (("untuned", tiny), ("tuned", tuned))
    ]
    bench = load_rank_bench(write(tmp_path, {"generators": generators}))
    run = RunFolder(tmp_path / "run")
    write_arguments_of_all(bench, run, NoProgress())
    said = {
        name: [a.text for a in read_arguments(arguments_path(run.path, name))]
        for name in ("untuned", "tuned")
    }
    assert len(said["tuned"]) == len(said["untuned"]) > 0
    assert sum(text == "few words" for text in said["tuned"]) > 0.8 * len(said["tuned"])
    assert "few words" not in said["untuned"]


def test_an_interrupted_tuning_goes_on(tmp_path: Path, tiny: Path) -> None:
    lines = [
        {"messages": [{"role": "user", "content": f"Matter {n}?"}], "target": "about matter"}
        for n in range(12)
    ]
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text("".join(json.dumps(line) + "\n" for line in lines))
    recipe = LoraConfig(
        name="generator", learn="lora", model=str(tiny), rank=4, learning_rate=1e-2, epochs=2,
        batch=4,
    )  # fmt: skip
    whole = tune_generator(pairs, recipe, tmp_path / "whole", Watch())
    stop = Stop()

    class After(NoProgress):
        def advance(self, *told: object) -> None:
            stop()

    with pytest.raises(Interrupted):
        tune_generator(pairs, recipe, tmp_path / "cut", Watch("t", After(), stop))
    assert not (tmp_path / "cut").exists()
    found = tune_generator(pairs, recipe, tmp_path / "cut", Watch())
    assert found["last_loss"] == whole["last_loss"]
    one, two = ((tmp_path / n / "model.safetensors").read_bytes() for n in ("whole", "cut"))
    assert one == two
    with pytest.raises(SetupError, match="is there already, and is not overwritten"):
        tune_generator(pairs, recipe, tmp_path / "cut", Watch())
    request = Request("k", (Message("user", "Matter 1?"),), max_tokens=4)
    with closing(open_backend(f"transformers:{tmp_path / 'cut'}", BackendSettings())) as backend:
        assert [reply.key for reply in backend.complete([request])] == ["k"]


def test_three_stages_and_their_shuffled_baseline(tmp_path: Path, tiny: Path) -> None:
    judges = (
        f"  - name: lora\n    learn: lora\n"
        f"    model: {tiny}\n    rank: 4\n    epochs: 1\n"
        "    stages: [silver.jsonl, mixed, human]"
    )
    bench = write_bench(tmp_path, judges, questions=8, more="tuning: {folds: 2}")
    silver = [
        {"item_id": f"s{n}", "question": f"Question {n}?", "text": f"silver words {n} of matter",
         "labels": {"tone": "Rude"}, "rationale": "so"}
        for n in range(16)
    ]  # fmt: skip
    text = "".join(json.dumps(line) + "\n" for line in silver)
    (tmp_path / "silver.jsonl").write_text(text)
    run = tmp_path / "run"
    loaded = load_bench(bench, run_folder=run, extend=TuningExtension())
    jb.run(loaded, run)
    manifest = json.loads((run / "run.json").read_text())["judges"]
    facts = {}
    for name in ("lora", "lora~shuffled"):
        home = run / "tuning" / name / manifest[name]["signature"]
        facts[name] = [json.loads((home / f"fold-{n}" / "learnt.json").read_text()) for n in (1, 2)]
    for one in facts["lora"]:
        # Of 16 silver answers 8 are to questions of the data, half of which are in the fold.
        assert one["silver"] == {"silver.jsonl": {"n": 12, "left_out": 4}}
        assert one["stages"] == [
            {"data": "silver.jsonl", "n": 6}, {"data": "mixed", "n": 10}, {"data": "human", "n": 4},
        ]  # fmt: skip
        assert one["blocks"] == [6, 10, 4]
    assert [one["blocks"] for one in facts["lora~shuffled"]] == [[20], [20]]
    assert manifest["lora~shuffled"]["kind"] == "tuning"
