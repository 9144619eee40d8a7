"""A tuned language model elsewhere: as transformers and peft read it."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from learning_case import write_bench
from tiny_model import write_tiny_model

import judgebench as jb
from judgebench.errors import SetupError
from judgebench.models.checkpoints import ChatEncoder
from judgebench.models.token_scoring import CLOSE, ReplyTokens, common_prefix, label_texts
from judgebench.prompt import load_prompt
from judgebench.records import Answer
from judgebench.rubric import load_rubric
from judgebench.tuning.config import LoraConfig
from judgebench.tuning.train import Lora

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
MORE = "tuning: {folds: 2}\ncontrols: false"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, a run, and the judge that was exported."""
    home = tmp_path_factory.mktemp("lora")
    write_tiny_model(home / "tiny")
    judges = JUDGES.replace("BASE", str(home / "tiny"))
    bench = write_bench(home / "a", judges, 6, MORE)
    jb.tune(bench, home / "run")
    jb.export_judge(bench, "tuned", home / "adapter", folder=home / "run")
    return home


def plain_probabilities(home: Path, answer: Answer) -> list[float]:
    """Of the labels, by transformers and peft alone."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    base = AutoModelForCausalLM.from_pretrained(home / "tiny", dtype="float32")
    model = PeftModel.from_pretrained(base, home / "adapter").eval()
    entry = LoraConfig(
        name="a", learn="lora", model=str(home / "tiny"), probabilities="independent"
    )
    learner = Lora(entry, load_rubric(home / "a" / "tone.yaml"), load_prompt("structured"))
    ((request, _),) = learner.written(answer, {"tone": "Friendly"})
    encoder = ChatEncoder(AutoTokenizer.from_pretrained(home / "adapter"), str(home / "tiny"))
    assert request.labels_asked is not None
    (fields,) = label_texts(request.labels_asked, {"tone": [1.0, 0.0, 0.0]})
    replies = ReplyTokens(encoder)
    (labels,) = replies.branches(encoder.chat(request.messages), fields)
    begin, logs = len(common_prefix(labels)), []
    for ids in labels:
        read = ids[:-1] if ids[-1] == CLOSE else ids
        with torch.inference_mode():
            by_token = model(input_ids=torch.tensor([read])).logits[0].log_softmax(-1)
        log = sum(by_token[n - 1, read[n]] for n in range(begin, len(read)))
        if ids[-1] == CLOSE:
            log = log + by_token[-1, replies.closing].logsumexp(0)
        logs.append(log)
    shares: list[float] = torch.stack(logs).softmax(-1).tolist()
    return shares


def test_an_exported_adapter_is_what_transformers_and_peft_read(home: Path) -> None:
    judge = f"  - {{name: adapter, tuned: ../adapter, model: {home / 'tiny'}}}"
    bench = write_bench(home / "b", judge, 4, "controls: false")
    labels = (home / "b" / "labels.csv").read_text()
    labels = labels.replace("Question ", "What of ").replace("words number", "remarks upon")
    (home / "b" / "labels.csv").write_text(labels)
    study = jb.run(bench, home / "run-b")
    verdicts = next(judge.verdicts for judge in study.judges if judge.name == "adapter")
    assert {verdict.status for verdict in verdicts.values()} == {"ok"}
    assert len(verdicts) == 8
    plain = plain_probabilities(home, study.answers[study.answers.row("model-x-0")])
    probabilities = verdicts["model-x-0"].probabilities
    assert probabilities is not None
    assert [*probabilities["tone"].values()] == pytest.approx(plain, abs=1e-3)
    card = (home / "adapter" / "README.md").read_text()
    assert "A language model can repeat some of what it was trained on." in card
    assert {path.name for path in (home / "adapter").iterdir()} == {
        "adapter_config.json", "adapter_model.safetensors", "tokenizer.json",
        "tokenizer_config.json", "chat_template.jinja", "judgebench.json", "README.md",
    }  # fmt: skip


def test_an_adapter_for_another_base(home: Path) -> None:
    write_tiny_model(home / "other", seed=1)
    judges = f"  - {{name: adapter, tuned: ../adapter, model: {home / 'other'}}}"
    bench = write_bench(home / "c", judges, 4, "controls: false")
    why = "adapter: stands on other weights, another encoder or another prompt"
    with pytest.raises(SetupError, match=why):
        jb.run(bench, home / "run-c")
