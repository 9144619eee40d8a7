"""A tuned language model elsewhere: as an adapter, a whole model, and trained by others."""

from __future__ import annotations

import json
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from learning_case import write_bench
from tiny_model import write_tiny_model

import judgebench as jb
from judgebench.errors import SetupError
from judgebench.progress import NoProgress
from judgebench.runs.bench import load_bench
from judgebench.runs.folder import RunFolder
from judgebench.runs.judging import Work
from judgebench.runs.stop import Budget, Stop
from judgebench.tuning.export import export_judge
from judgebench.tuning.other_tools import Tool, write_for

pytestmark = [
    pytest.mark.transformers,
    pytest.mark.skipif(
        not all(map(find_spec, ("torch", "transformers", "outlines", "peft"))),
        reason="needs torch, transformers, outlines and peft",
    ),
]
JUDGES = (
    "  - {name: tuned, learn: lora, model: BASE, rank: 4, epochs: 2, batch: 8,"
    " learning_rate: 0.01, probabilities: independent}"
)
MORE = "tuning: {folds: 2}\ncontrols: false\nreport: {resamples: 100}"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, a run, and the judge as an adapter and as a whole model."""
    home = tmp_path_factory.mktemp("lora")
    write_tiny_model(home / "tiny")
    judges = JUDGES.replace("BASE", str(home / "tiny"))
    bench = write_bench(home / "a", judges, 6, MORE)
    jb.run(bench, home / "run")
    with closing(load_bench(bench, run_folder=home / "run")) as loaded:
        work = Work(RunFolder(home / "run"), NoProgress(), Budget(None), Stop())
        export_judge(loaded, "tuned", home / "adapter", work)
        export_judge(loaded, "tuned", home / "merged", work, merged=True)
    return home


def test_adapter_and_whole_model_say_the_same(home: Path) -> None:
    judges = (
        f"  - {{name: adapter, tuned: ../adapter, base: {home / 'tiny'}}}\n"
        "  - {name: merged, tuned: ../merged}"
    )
    bench = write_bench(home / "b", judges, 4, "controls: false")
    labels = (home / "b" / "labels.csv").read_text()
    labels = labels.replace("Question ", "What of ").replace("words number", "remarks upon")
    (home / "b" / "labels.csv").write_text(labels)
    study = jb.run(bench, home / "run-b")
    adapter, merged = (
        next(judge.verdicts for judge in study.judges if judge.name == name)
        for name in ("adapter", "merged")
    )
    assert len(adapter) == len(merged) == 8
    for item in adapter:
        assert adapter[item].status == "ok"
        assert adapter[item].labels == merged[item].labels
        said, same = adapter[item].probabilities, merged[item].probabilities
        assert said is not None
        assert same is not None
        assert same["tone"] == pytest.approx(said["tone"], abs=1e-4)
    weights = home / "merged" / "model" / "model" / "model.safetensors"
    assert weights.is_file()
    assert (home / "adapter" / "model" / "adapter" / "adapter_model.safetensors").is_file()
    card = (home / "adapter" / "README.md").read_text()
    assert "A language model can repeat some of what it was trained on." in card
    assert "Of what it needs, its base has the sum `" in card


def test_an_adapter_for_another_base(home: Path) -> None:
    write_tiny_model(home / "other", seed=1)
    judges = f"  - {{name: adapter, tuned: ../adapter, base: {home / 'other'}}}"
    bench = write_bench(home / "c", judges, 4, "controls: false")
    why = r"adapter: base: is for another base; found [0-9a-f]{16}; allowed: [0-9a-f]{16}"
    with pytest.raises(SetupError, match=why):
        jb.run(bench, home / "run-c")


def written(home: Path, tool: Tool) -> Path:
    to = home / tool
    with closing(load_bench(home / "a", run_folder=home / "run")) as loaded:
        write_for(tool, loaded, "tuned", to, RunFolder(home / "run"))
    folds = json.loads((to / "folds.json").read_text())
    assert sorted(folds) == ["all", "fold-1", "fold-2"]
    assert sorted(folds["fold-1"]["learns_from"]) == sorted(folds["fold-2"]["judges"])
    for name, fold in folds.items():
        lines = [json.loads(line) for line in (to / f"{name}.jsonl").open()]
        assert [line["item_id"] for line in lines] == fold["learns_from"]
    return to


def test_trl_trains_on_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trl = pytest.importorskip("trl")
    from trl.scripts import sft

    to = written(home, "trl")
    line: dict[str, Any] = json.loads((to / "all.jsonl").open().readline())
    assert [m["role"] for m in line["prompt"]] == ["system", "user"]
    assert line["completion"] == [{"role": "assistant", "content": '{"tone":"Friendly"}'}]
    monkeypatch.chdir(to)
    parser = trl.TrlParser(
        (trl.ScriptArguments, trl.SFTConfig, trl.ModelConfig, trl.DatasetMixtureConfig)
    )
    given = ["--config", "fold-1.yaml", "--use_cpu", "true", "--bf16", "false"]
    parsed = parser.parse_args_and_config(given, fail_with_unknown_args=True)
    script, training, model, data = parsed
    assert (model.use_peft, model.lora_r, model.lora_target_modules) == (True, 4, "all-linear")
    assert (training.learning_rate, training.num_train_epochs) == (0.01, 2)
    assert (training.completion_only_loss, training.packing) == (True, False)
    sft.main(script, training, model, data)
    assert (to / "trained-fold-1" / "adapter_model.safetensors").is_file()


def test_what_axolotl_reads(home: Path) -> None:
    to = written(home, "axolotl")
    line = json.loads((to / "all.jsonl").open().readline())
    assert [m["role"] for m in line["messages"]] == ["system", "user", "assistant"]
    config = yaml.safe_load((to / "all.yaml").read_text())
    assert config["datasets"] == [
        {
            "path": "all.jsonl", "ds_type": "json", "type": "chat_template",
            "roles_to_train": ["assistant"], "train_on_eos": "turn",
        }
    ]  # fmt: skip
    assert (config["adapter"], config["lora_r"], config["num_epochs"]) == ("lora", 4, 2)
    assert (to / "all.yaml").read_text().startswith("# In this folder: axolotl train all.yaml\n")


def test_stages_are_kept_in_their_order(home: Path) -> None:
    """Each block in all of its passes, then the next."""
    silver = [
        {"item_id": f"s{n}", "text": f"Rude remark {n}", "question": f"Why {n}?",
         "labels": {"tone": "Rude"}, "system": "model-x"}
        for n in range(3)
    ]  # fmt: skip
    (home / "a" / "silver.jsonl").write_text("".join(json.dumps(line) + "\n" for line in silver))
    staged = "stages: [{data: silver.jsonl}, {data: human}]}"
    judges = JUDGES.replace("BASE", str(home / "tiny")).removesuffix("}") + f", {staged}"
    bench = home / "a" / "staged.yaml"
    bench.write_text((home / "a" / "bench.yaml").read_text().split("judges:")[0])
    with bench.open("a") as file:
        file.write(f"judges:\n{judges}\n{MORE}\n")
    with closing(load_bench(bench)) as loaded:
        write_for("trl", loaded, "tuned", home / "staged", RunFolder(home / "none"))
    ids = [json.loads(line)["item_id"] for line in (home / "staged" / "all.jsonl").open()]
    assert ids[:6] == ["s0", "s1", "s2"] * 2
    assert len(ids) == 6 + 2 * 12
    config = yaml.safe_load((home / "staged" / "all.yaml").read_text())
    assert (config["num_train_epochs"], config["train_sampling_strategy"]) == (1, "sequential")


def test_what_no_other_program_trains(home: Path, call: Any) -> None:
    bench = write_bench(home / "d", "  - {name: who, learn: by-system}")
    code, _, err = call("tune", "export", "who", home / "e", "--bench", bench, "--to", "trl")
    assert code != 0
    assert "who: is no language model that is trained; found by-system; allowed: learn: lora" in err
    assert not (home / "e").exists()
