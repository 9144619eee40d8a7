"""Evaluators are trained, resumed, loaded and asked. A tiny random BERT reads a planted world:

each claim holds a cue that fits its class in seven of ten cases, and words of evidence that mean
nothing there. The gold argument holds evidence of the right class. Names of classes stand in all
arguments at random, so a name alone says nothing; the noise is the evidence for another claim.
"""

import itertools
import json
import random
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Template
from tiny_encoder import tiny_bert

from judgebench.errors import RunError, SetupError
from judgebench.judges.judge import Task as Judged
from judgebench.models.checkpoints import open_encoder, token_limit
from judgebench.progress import NoProgress, Progress
from judgebench.prompt import Prompt
from judgebench.ranking.evaluator import ProxyEvaluator, read_manifest, train
from judgebench.ranking.examples import EvaluatorPlan, InputMaker, Second, control_case
from judgebench.ranking.rankers import argument_answer
from judgebench.ranking.task import (
    CONTROL_CASES,
    GOLD,
    EvaluatorConfig,
    EvaluatorKind,
    ProxyTask,
    TaskInstance,
    TrainingConfig,
    argument_id,
)
from judgebench.records import Status, Verdict, content_hash
from judgebench.runs.judging import Interrupted, Stop

pytestmark = [
    pytest.mark.transformers,
    pytest.mark.skipif(
        not all(map(find_spec, ("torch", "transformers", "safetensors"))),
        reason="needs the extra `proxy` (make test-transformers)",
    ),
]

LABELS = ("supported", "refuted", "open")
EVIDENCE = {label: [f"{label[0]}sign{n}" for n in range(6)] for label in LABELS}
FILLERS = [f"word{n}" for n in range(40)]
PROMPT = Prompt("p", "", "argument", "", Template(""))
N_TRAIN, N_DEVELOPMENT, N_TEST = 400, 60, 240


def planted(counts: tuple[int, int, int] = (N_TRAIN, N_DEVELOPMENT, N_TEST)) -> ProxyTask:
    chance = random.Random(0)
    splits = ["train"] * counts[0] + ["development"] * counts[1] + ["test"] * counts[2]
    instances = [_claim(n, LABELS[n % 3], split, chance) for n, split in enumerate(splits)]
    return ProxyTask("world", "Planted", LABELS, instances, PROMPT)


def _claim(n: int, label: str, split: Any, chance: random.Random) -> TaskInstance:
    cued = label if chance.random() < 0.7 else chance.choice(LABELS)

    def text(*words: str, any_evidence: int = 0, names: int = 1, fillers: int = 2) -> str:
        found = [*words, *chance.sample(FILLERS, fillers)]
        found += [chance.choice(EVIDENCE[chance.choice(LABELS)]) for _ in range(any_evidence)]
        found += [chance.choice(LABELS) for _ in range(names)]
        chance.shuffle(found)
        return " ".join(found)

    return TaskInstance(
        item_id=f"i{n}",
        text=text(*[f"cue{cued}"] * 3, any_evidence=2, fillers=4),
        label=label,
        argument=text(*chance.sample(EVIDENCE[label], 4), names=2),
        split=split,
        context=text(any_evidence=4, names=2),
    )


def quiz() -> ProxyTask:
    """Questions with two or three options; the argument names the right one."""
    chance = random.Random(0)
    found = []
    for n in range(30):
        options = chance.sample(FILLERS, 3 - n % 2)
        split: Any = "train" if n < 20 else "development" if n < 24 else "test"
        for version in range(len(options)):
            turned = (*options[version:], *options[:version])
            found.append(
                TaskInstance(
                    f"q{n}-{version}", f"which cue{LABELS[n % 3]} {FILLERS[n]}",
                    str(turned.index(options[0]) + 1), f"it is {options[0]}", split, turned,
                    version=version,
                )
            )  # fmt: skip
    return ProxyTask("quiz", "Quiz", ("1", "2", "3"), found, PROMPT)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = {*FILLERS, *LABELS, *(f"cue{label}" for label in LABELS), "which", "it", "is", "1", "2"}
    words |= {"3", ".", *(sign for signs in EVIDENCE.values() for sign in signs)}
    return tiny_bert(tmp_path_factory.mktemp("encoder") / "tiny", words)


def config(encoder: Path, **training: Any) -> EvaluatorConfig:
    settings = {"epochs": 5, "patience": 2, "learning_rate": 3e-3} | training
    return EvaluatorConfig(encoder=str(encoder), training=TrainingConfig(**settings))


def short(encoder: Path) -> EvaluatorConfig:
    return config(encoder, epochs=3, batch_size=8)


@pytest.fixture(scope="module")
def world() -> ProxyTask:
    return planted()


@pytest.fixture(scope="module")
def small() -> ProxyTask:
    return planted((40, 10, 10))


def fit(
    task: ProxyTask,
    kind: EvaluatorKind,
    config: EvaluatorConfig,
    folder: Path,
    *,
    progress: Progress | None = None,
    **more: Any,
) -> None:
    train(EvaluatorPlan(task, kind, config, **({"seed": 0} | more)), folder, progress)


def judged(folder: Path, task: ProxyTask, system: str, texts: Sequence[str]) -> list[Verdict]:
    """What the evaluator of that folder decides with these arguments on the first instances."""
    asked = [
        Judged(argument_answer(task.name, i, system, text, document=False))
        for i, text in zip(task.ranked, texts, strict=False)
    ]
    return list(ProxyEvaluator.load(folder, task).judge(asked))


def accuracies(folder: Path, task: ProxyTask) -> dict[str, float]:
    ranked = task.ranked
    texts = {GOLD: [instance.argument for instance in ranked]}
    texts |= {kind: control_case(kind, ranked, 0) for kind in CONTROL_CASES if kind != "passages"}
    found = {}
    for system, arguments in texts.items():
        verdicts = judged(folder, task, system, arguments)
        right = [v.labels[task.name] == i.label for v, i in zip(verdicts, ranked, strict=True)]
        found[system] = sum(right) / len(right)
    return found


def decided(folder: Path, task: ProxyTask) -> list[Verdict]:
    return judged(folder, task, GOLD, [i.argument for i in task.ranked])


def test_an_expert_trained_evaluator_ranks_gold_first(world, encoder, tmp_path) -> None:
    fit(world, "expert-trained", config(encoder), tmp_path)
    found = accuracies(tmp_path, world)
    assert found[GOLD] > 0.95
    noise = (0.25 / N_TEST) ** 0.5
    assert found[GOLD] - max(share for system, share in found.items() if system != GOLD) > 4 * noise
    assert found["noise"] < 1 / 3 + 3 * noise, "the evidence for another claim must mislead it"


def test_an_llm_trained_evaluator_learns_from_models(world, encoder, tmp_path) -> None:
    texts = {i.item_id: i.argument for i in world.instances if i.split != "test"}
    halves = {
        name: {item: text for item, text in texts.items() if int(item[1:]) % 2 == odd}
        for odd, name in enumerate(("one", "two"))
    }
    fit(world, "llm-trained", config(encoder, epochs=3), tmp_path, arguments=halves, draw=1)
    evaluator = ProxyEvaluator.load(tmp_path, world)
    assert evaluator.name == "world-llm-trained-1"
    assert evaluator.manifest["train"] == N_TRAIN
    found = accuracies(tmp_path, world)
    assert found[GOLD] > 0.9 > max(found[system] for system in found if system != GOLD)


def test_a_baseline_does_not_care_for_arguments(world, encoder, tmp_path) -> None:
    fit(world, "baseline", config(encoder), tmp_path)
    found = accuracies(tmp_path, world)
    noise = (0.25 / N_TEST) ** 0.5
    assert min(found.values()) > 0.65, "the cue alone gives four of five"
    assert max(found.values()) - min(found.values()) < noise


def test_options_are_decided_by_their_place(encoder: Path, tmp_path: Path) -> None:
    task = quiz()
    fit(task, "expert-trained", short(encoder), tmp_path)
    verdicts = decided(tmp_path, task)
    for verdict, instance in zip(verdicts, task.ranked, strict=True):
        assert verdict.probabilities is not None
        shares = verdict.probabilities["quiz"]
        assert list(shares) == [str(n + 1) for n in range(len(instance.options))]
        assert sum(shares.values()) == pytest.approx(1)
        assert verdict.labels["quiz"] == max(shares, key=shares.__getitem__)
    manifest = read_manifest(tmp_path)
    assert manifest is not None
    assert (manifest["train"], manifest["development"]) == (20, 4)


@pytest.mark.parametrize("kind", ["classes", "options"])
def test_transformers_alone_gives_the_same_probabilities(kind, small, encoder, tmp_path) -> None:
    import torch
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    task = small if kind == "classes" else quiz()
    fit(task, "expert-trained", short(encoder), tmp_path)
    (verdict, *_), instance = decided(tmp_path, task), task.ranked[0]
    model = AutoModelForTokenClassification.from_pretrained(tmp_path).eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    text = " ".join([instance.text, *instance.numbered])
    with torch.inference_mode():
        (logits,) = model(**tokenizer(text, instance.argument, return_tensors="pt")).logits
    if kind == "classes":
        assert model.config.label2id == {label: n for n, label in enumerate(LABELS)}
        shares = logits.mean(dim=0).softmax(dim=-1)
    else:
        ends = [len(tokenizer(instance.text).input_ids) - 1]
        for option in instance.numbered:
            ends.append(ends[-1] + len(tokenizer(option).input_ids) - 2)
        means = [logits[start:end].mean() for start, end in itertools.pairwise(ends)]
        shares = torch.stack(means).softmax(dim=-1)
    assert verdict.probabilities is not None
    assert [*verdict.probabilities[task.name].values()] == pytest.approx(shares.tolist(), abs=1e-5)


class Halting(NoProgress):
    """Ends training after so many steps, as Ctrl-C would."""

    def __init__(self, steps: int = 9999) -> None:
        self.left = steps
        self.lines: list[str] = []
        self.begun: list[tuple[int, int]] = []

    def start(self, name: str, total: int, done: int) -> None:
        self.begun.append((total, done))

    def advance(self, name: str, what: object = "") -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt

    def say(self, message: str) -> None:
        self.lines.append(message)


def signature(folder: Path) -> str:
    manifest = read_manifest(folder)
    assert manifest is not None
    return str(manifest["signature"])


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


@pytest.mark.parametrize(
    "halt", [Halting(steps=5), Halting(steps=7)], ids=["at the first step", "within"]
)
def test_a_stopped_training_reaches_the_same_weights(halt, small, encoder, tmp_path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    fit(small, "expert-trained", short(encoder), whole)
    with pytest.raises(KeyboardInterrupt):
        fit(small, "expert-trained", short(encoder), broken, progress=halt)
    with pytest.raises(SetupError, match="no evaluator whose training is finished"):
        ProxyEvaluator.load(broken, small)
    again = Halting()
    fit(small, "expert-trained", short(encoder), broken, progress=again)
    assert again.begun == [(15, 5)]
    resumed, *epochs = again.lines
    assert resumed == "world-expert-trained: training resumes after step 5"
    assert [line.rpartition(":")[0] for line in epochs] == [
        f"world-expert-trained: training: epoch {n}" for n in (2, 3)
    ]
    assert weights(broken) == weights(whole)


def test_a_stop_within_an_epoch_loses_no_step(small, encoder, tmp_path) -> None:
    stop, again = Stop(), Halting()

    class StopsAtSeven(Halting):
        def advance(self, name: str, what: object = "") -> None:
            super().advance(name, what)
            if self.left == 9999 - 7:
                stop()

    plan = EvaluatorPlan(small, "expert-trained", short(encoder), seed=0)
    train(plan, tmp_path / "whole")
    with pytest.raises(Interrupted):
        train(plan, tmp_path / "broken", StopsAtSeven(), stop)
    train(plan, tmp_path / "broken", again)
    assert again.begun == [(15, 8)]
    whole, broken = (read_manifest(tmp_path / name) for name in ("whole", "broken"))
    assert whole is not None
    assert broken is not None
    assert whole["by_epoch"] == broken["by_epoch"]
    assert weights(tmp_path / "broken") == weights(tmp_path / "whole")


def test_the_best_epoch_is_kept(small: ProxyTask, encoder: Path, tmp_path: Path) -> None:
    fit(small, "expert-trained", short(encoder), tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    worth = [(e["development_score"], -e["development_loss"]) for e in manifest["by_epoch"]]
    assert manifest["best_epoch"] == worth.index(max(worth)) + 1
    best = manifest["by_epoch"][manifest["best_epoch"] - 1]
    assert manifest["development_score"] == best["development_score"]
    assert manifest["signature"] == ProxyEvaluator.load(tmp_path, small).signature
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "config.json", "manifest.json", "model.safetensors", "tokenizer.json",
        "tokenizer_config.json",
    ]  # fmt: skip


def test_the_same_evaluator_is_not_trained_again(small, encoder, tmp_path) -> None:
    fit(small, "baseline", short(encoder), tmp_path)
    first = signature(tmp_path)
    idle = Halting()
    unread = {"m": {"i0": "unread"}}
    fit(small, "baseline", short(encoder), tmp_path, arguments=unread, progress=idle)
    assert idle.begun == []
    other = Halting()
    fit(small, "baseline", short(encoder), tmp_path, seed=1, progress=other)
    assert other.begun == [(15, 0)]
    assert signature(tmp_path) != first


def test_a_torn_state_begins_anew(small: ProxyTask, encoder: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        fit(small, "baseline", short(encoder), tmp_path, progress=Halting(steps=5))
    (state,) = tmp_path.glob("checkpoints/*/checkpoint-5/trainer_state.json")
    state.write_bytes(state.read_bytes()[:100])
    again = Halting()
    fit(small, "baseline", short(encoder), tmp_path, progress=again)
    assert again.begun == [(15, 0)]


def test_training_leaves_the_global_seed_alone(small, encoder, tmp_path) -> None:
    import torch

    torch.manual_seed(5)
    before = torch.get_rng_state()
    fit(small, "baseline", config(encoder, epochs=1), tmp_path)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_loss_that_is_no_number_is_an_error(small, encoder, tmp_path) -> None:
    with pytest.raises(RunError, match="lower learning_rate"):
        fit(small, "baseline", config(encoder, learning_rate=1e38), tmp_path)


def test_a_verdict_names_argument_judge_and_a_cut(small, encoder, tmp_path) -> None:
    fit(small, "expert-trained", short(encoder), tmp_path)
    evaluator, instances = ProxyEvaluator.load(tmp_path, small), small.ranked[:3]
    texts = ["word1", "", "word1 " * 80]
    verdicts = judged(tmp_path, small, "m", texts)
    assert [v.reason for v in verdicts] == ["", "", "cut"]
    assert {v.status for v in verdicts} == {Status.OK}
    for verdict, instance, text in zip(verdicts, instances, texts, strict=True):
        assert verdict.item_id == argument_id("world", instance.item_id, "m")
        assert verdict.content_hash == content_hash([instance.question, text, None])
        assert (verdict.judge, verdict.signature) == (evaluator.name, evaluator.signature)
        assert verdict.probabilities is not None
        assert list(verdict.probabilities["world"]) == list(LABELS)


def test_an_evaluator_decides_alike_each_time(small, encoder, tmp_path) -> None:
    fit(small, "expert-trained", short(encoder), tmp_path)
    first, again = decided(tmp_path, small), decided(tmp_path, small)
    assert [v.probabilities for v in first] == [v.probabilities for v in again]
    assert ProxyEvaluator.load(tmp_path, small).encoder.folder == tmp_path
    (alone,) = judged(tmp_path, small, GOLD, [small.ranked[0].argument])
    assert alone.probabilities is not None
    assert first[0].probabilities is not None
    assert alone.probabilities["world"] == pytest.approx(first[0].probabilities["world"], abs=1e-5)


def test_cut_inputs_of_training_are_counted(small, encoder, tmp_path) -> None:
    tight = config(encoder, epochs=1, max_tokens=19)  # text 10, argument 8, frame 3
    fit(small, "expert-trained", tight, tmp_path)
    manifest = read_manifest(tmp_path)
    assert manifest is not None
    assert manifest["cut"] == 40


def test_torn_weights_are_a_setup_error(small: ProxyTask, encoder: Path, tmp_path: Path) -> None:
    fit(small, "baseline", config(encoder, epochs=1), tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(SetupError, match="cannot be loaded"):
        ProxyEvaluator.load(tmp_path, small)


def test_vectors_have_length_one_and_depend_on_no_neighbour(encoder: Path) -> None:
    import numpy as np

    opened = open_encoder(str(encoder))
    texts = ["word1 word2", "word3", "word4 " * 90]
    together = opened.embed(texts)
    assert (together.dtype, together.shape) == (np.float32, (3, 32))
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(together[1:2], opened.embed(texts[1:2]), atol=1e-5)
    # The end of a text that is longer than the encoder takes is read too, in a window of its own.
    head, tail = "word4 " * 90, "word1 " * 90
    assert (np.abs(opened.embed([head + tail]) - opened.embed([head])) > 0.01).any()


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("model.safetensors", "holds no weights"),
        ("config.json", "holds no configuration"),
        ("tokenizer.json", "holds no tokenizer"),
    ],
)
def test_an_encoder_that_lacks_a_part_is_refused(missing, said, encoder, tmp_path) -> None:
    for path in encoder.iterdir():
        if path.name != missing:
            (tmp_path / path.name).write_bytes(path.read_bytes())
    with pytest.raises(SetupError, match=said) as error:
        open_encoder(str(tmp_path))
    assert str(tmp_path) in str(error.value)


def test_a_missing_or_torn_encoder_is_an_error(encoder: Path, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no such folder"):
        open_encoder(str(tmp_path / "none"))
    for path in encoder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes()[:50])
    with pytest.raises(SetupError, match="cannot be loaded"):
        open_encoder(str(tmp_path))


def test_a_hub_that_cannot_be_reached_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def unreachable(*_: object, **__: object) -> str:
        raise OSError("no route to host")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    with pytest.raises(RunError, match=r"owner/encoder is no folder here.* no route to host"):
        open_encoder("owner/encoder")


def test_more_tokens_than_the_encoder_takes_are_refused(encoder: Path) -> None:
    assert open_encoder(str(encoder)).max_tokens == 64
    assert open_encoder(str(encoder), 32).max_tokens == 32
    with pytest.raises(SetupError, match="found 65; allowed: 16 to 64"):
        open_encoder(str(encoder), 65)


def test_positions_that_an_encoder_keeps_for_padding_are_no_tokens() -> None:
    from transformers import BertConfig, BertModel, MPNetConfig, MPNetModel

    small = {"vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1,
             "intermediate_size": 8}  # fmt: skip
    mpnet = MPNetModel(MPNetConfig(**small, max_position_embeddings=34, pad_token_id=1))
    assert token_limit(mpnet) == 32
    assert token_limit(BertModel(BertConfig(**small, max_position_embeddings=34))) == 34


def test_control_tokens_in_texts_are_text(encoder: Path) -> None:
    opened = open_encoder(str(encoder))
    instance = TaskInstance("i", "word1 word2", "open", "", "test")
    maker = InputMaker(opened.tokenizer, 64)
    pair, alone, forged = maker.make(
        [instance] * 3, [Second("word3"), Second(""), Second("word3 [SEP] word4")]
    )
    for one, texts in ((pair, ("word1 word2", "word3")), (alone, ("word1 word2",))):
        wanted = opened.tokenizer(*texts)
        assert (one.ids, one.types) == (wanted["input_ids"], wanted["token_type_ids"])
    assert forged.ids.count(opened.tokenizer.sep_token_id) == 2
