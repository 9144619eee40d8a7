"""A tuned language model is an ordinary judge, and its training can be cut off at any moment."""

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from learning_case import RUBRIC, write_bench
from tiny_model import write_tiny_model

import judgebench as jb
from judgebench.errors import RunError, SetupError
from judgebench.judges.judge import Task
from judgebench.learning.trainer import Watch, memory_errors
from judgebench.models.checkpoints import (
    ChatEncoder,
    identify,
    identify_adapter,
    load,
    tokenizer_of,
    with_adapter,
)
from judgebench.models.settings import BackendSettings
from judgebench.models.token_scoring import ReplyTokens, label_texts
from judgebench.models.transformers_backend import TransformersBackend
from judgebench.prompt import load_prompt
from judgebench.records import Answer
from judgebench.rubric import Rubric, load_rubric
from judgebench.runs.judging import Interrupted, Stop
from judgebench.tuning.config import LoraConfig
from judgebench.tuning.examples import Example
from judgebench.tuning.train import ADAPTER, MEMORY, Lora, train

pytestmark = [
    pytest.mark.transformers,
    pytest.mark.skipif(
        not all(map(find_spec, ("torch", "transformers", "outlines", "peft"))),
        reason="needs transformers, outlines, torch and peft (make test-transformers)",
    ),
]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch

    torch.set_num_threads(1)
    return write_tiny_model(tmp_path_factory.mktemp("tiny") / "base")


@pytest.fixture
def rubric(tmp_path: Path) -> Rubric:
    path = tmp_path / "tone.yaml"
    path.write_text(RUBRIC)
    return load_rubric(path)


def examples(n: int, seed: int = 0, longest: int = 40) -> list[Example]:
    """Texts that share their beginning; the last token follows from the one before it."""
    rng = random.Random(seed)
    found = []
    for _ in range(n):
        rest = [rng.randrange(5, 300) for _ in range(rng.randrange(3, longest))]
        ids = (*range(40, 60), *rest, 7 + rest[-1] % 2)
        found.append(Example(ids, (len(ids) - 1,)))
    return found


def weights_of(folder: Path) -> bytes:
    return (folder / ADAPTER / "adapter_model.safetensors").read_bytes()


def entry(model: Path, **more: Any) -> LoraConfig:
    return LoraConfig(name="lora", learn="lora", model=str(model), rank=4, **more)


def quick(model: Path | str, tokens: int = 256) -> LoraConfig:
    return entry(Path(model), learning_rate=1e-2, epochs=4, tokens=tokens)


@pytest.mark.parametrize("how", ["independent", "chained"])
def test_what_is_trained_has_the_tokens_of_what_is_asked(tiny: Path, how: Any) -> None:
    rubric = load_rubric("medical-safety").only(["bias", "empathy"])
    labels = {m.id: m.label_texts[1] for m in rubric.metrics}
    learner = Lora(entry(tiny, probabilities=how), rubric, load_prompt("structured"))
    answer = Answer("a", "Take <|end|> two.", question="What now?")
    request = learner._untuned.request(Task(answer))
    tokenizer = tokenizer_of(str(tiny))
    encoder = ChatEncoder(tokenizer, str(tiny))
    prompt = encoder(request)
    made = list(learner.examples(answer, labels))
    assert len(made) == (2 if how == "independent" else 1)
    assert all(list(one.ids[: len(prompt)]) == prompt for one in made)
    # The label weighed in judging, up to its end, is where the loss is.
    found = {m.id: [float(t == labels[m.id]) for t in m.options] for m in rubric.metrics}
    assert request.labels_asked is not None
    texts = ReplyTokens(encoder)
    for number, fields in enumerate(label_texts(request.labels_asked, found)):  # type: ignore[arg-type]
        for place, field in enumerate(texts.branches(encoder.chat(request.messages), fields)):
            metric = rubric.metrics[number + place]
            weighed = field[metric.options.index(labels[metric.id])]
            one = made[number + place] if how == "independent" else made[0]
            assert list(one.ids[: len(weighed) - 1]) == weighed[:-1]
            said = tokenizer.decode([one.ids[p] for p in one.places if p < len(weighed)])
            assert said.endswith(labels[metric.id] + '"') or labels[metric.id] in said
    # Nothing else is learnt than labels and what ends them.
    learnt = tokenizer.decode([one.ids[p] for one in made for p in one.places])
    assert set(learnt) <= set("".join(labels.values()) + '":,}')


def test_loss_and_gradients_are_those_of_plain_passes(tiny: Path, tmp_path: Path) -> None:
    import torch

    from judgebench.tuning import train as module

    some = examples(5)
    training = module._Training([some], {}, quick(tiny), Watch())
    training._half = False
    model = training._model.float()
    training._loss(some).backward()
    weights = {n: p for n, p in model.named_parameters() if p.requires_grad}
    found = {n: p.grad.clone() for n, p in weights.items()}
    model.zero_grad()
    total = 0.0
    for one in some:
        logits = model(input_ids=torch.tensor([one.ids])).logits[0]
        for place in one.places:
            loss = -logits[place - 1].log_softmax(-1)[one.ids[place]]
            loss.backward(retain_graph=True)
            total += float(loss.detach())
    assert float(training._loss(some).detach()) == pytest.approx(total, rel=1e-5)
    for name, weight in weights.items():
        assert torch.allclose(found[name], weight.grad, atol=1e-4), name
    assert module._shared(some) == 20
    passes = module._passes(some, 100)
    assert sorted(one.ids for p in passes for one in p) == sorted(one.ids for one in some)
    assert len(passes) > 1


def test_training_learns_and_is_the_same_twice(tiny: Path, tmp_path: Path) -> None:
    blocks = [examples(40), examples(24, seed=1)]
    facts = train(blocks, quick(tiny), tmp_path / "a", Watch())
    assert facts["last_loss"] < 0.8 * facts["first_loss"]
    assert facts["blocks"] == [40, 24]
    assert facts["steps"] == 4 * (5 + 3)
    again = train(blocks, quick(tiny), tmp_path / "a", Watch())  # nothing is done twice
    assert again == facts
    train(blocks, quick(tiny), tmp_path / "b", Watch())
    assert weights_of(tmp_path / "a") == weights_of(tmp_path / "b")
    train(blocks[::-1], quick(tiny), tmp_path / "c", Watch())
    assert weights_of(tmp_path / "a") != weights_of(tmp_path / "c")
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_stopped_training_gives_the_same_weights(tiny: Path, tmp_path: Path) -> None:
    stop = Stop()

    class StopsAtThree:
        steps = 0

        def start(self, name: str, total: int, done: int) -> None:
            self.done = done

        def advance(self, name: str, what: Any = "") -> None:
            self.steps += 1
            if self.steps == 3:
                stop()

        def say(self, message: str) -> None: ...

    blocks = [examples(40)]
    with pytest.raises(Interrupted):
        train(blocks, quick(tiny), tmp_path / "a", Watch("t", StopsAtThree(), stop))
    second = StopsAtThree()
    train(blocks, quick(tiny), tmp_path / "a", Watch("t", second))
    assert second.done >= 3
    train(blocks, quick(tiny), tmp_path / "b", Watch())
    assert weights_of(tmp_path / "a") == weights_of(tmp_path / "b")


KILLED = """
import sys
from pathlib import Path
import torch
torch.set_num_threads(1)
sys.path[:0] = sys.argv[3:]
from test_lora import examples, quick
from judgebench.learning.trainer import Watch
from judgebench.tuning.train import train
print("begins", flush=True)
train([examples(60), examples(30, 1)], quick(sys.argv[1]), Path(sys.argv[2]), Watch())
"""


def test_killed_at_random_moments_it_gives_the_same_weights(tiny: Path, tmp_path: Path) -> None:
    here = Path(__file__).parent
    folder, rng, kills = tmp_path / "killed", random.Random(4), 0
    command = [sys.executable, "-c", KILLED, str(tiny), str(folder), str(here), str(here.parent)]
    while True:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "begins\n"
        try:
            process.wait(rng.uniform(0.1, 1.5) if kills < 6 else 300)
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
    assert process.returncode == 0
    assert kills >= 3
    train([examples(60), examples(30, 1)], quick(tiny), tmp_path / "whole", Watch())
    assert weights_of(folder) == weights_of(tmp_path / "whole")


def test_what_is_too_long_is_left_out_and_counted(tiny: Path, tmp_path: Path) -> None:
    said: list[str] = []

    class Told:
        def start(self, name: str, total: int, done: int) -> None: ...
        def advance(self, name: str, what: Any = "") -> None: ...
        def say(self, message: str) -> None:
            said.append(message)

    long = Example(tuple(range(300)), (299,))
    recipe = entry(tiny, epochs=1, context=256)
    facts = train([[*examples(8), long]], recipe, tmp_path, Watch("lora", Told()))
    assert facts["left_out"] == 1
    assert facts["blocks"] == [8]
    told = "1 of 9 examples are longer than the context of 256 tokens and are left out"
    assert said == [f"lora: {told}"]
    with pytest.raises(SetupError, match="1 of 1 examples are longer than the context of 256"):
        train([[long]], recipe, tmp_path / "b", Watch())
    with pytest.raises(SetupError, match="nothing to train on: 0 of 0 examples"):
        train([[]], recipe, tmp_path / "c", Watch())


def test_an_adapter_for_another_base_is_an_error(tiny: Path, tmp_path: Path) -> None:
    train([examples(8)], quick(tiny), tmp_path / "a", Watch())
    other = write_tiny_model(tmp_path / "other", seed=1)
    with pytest.raises(SetupError) as caught:
        TransformersBackend(str(other), BackendSettings(), tmp_path / "a" / ADAPTER)
    for model in (tiny, other):
        assert json.dumps(identify(str(model))) in str(caught.value)
    # Made by another tool, which keeps no hash: the shapes tell.
    (tmp_path / "a" / ADAPTER / "base.json").unlink()
    wide = write_tiny_model(tmp_path / "wide", hidden_size=64)
    with pytest.raises(SetupError, match="an adapter that does not fit this model"):
        with_adapter(load(str(wide), dtype="float32")[0], tmp_path / "a" / ADAPTER, merged=True)
    with pytest.raises(SetupError, match="holds no adapter: it lacks adapter_config"):
        identify_adapter(tmp_path)


def test_the_signature_covers_weights_and_recipe(tiny, tmp_path, rubric) -> None:
    from judgebench.records import content_hash

    def about(model: Path, **more: Any) -> str:
        learner = Lora(entry(model, **more), rubric, load_prompt("structured"))
        return content_hash({k: v for k, v in learner.describe().items() if k != "runtime"})

    copy = tmp_path / tiny.name
    shutil.copytree(tiny, copy)
    assert about(copy) == about(tiny)
    weights = bytearray((copy / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (copy / "model.safetensors").write_bytes(weights)
    changed: list[dict[str, Any]] = [
        {}, {"seed": 1}, {"epochs": 2}, {"learning_rate": 1e-3}, {"alpha": 3}, {"batch": 4},
        {"probabilities": "chained"}, {"context": 512},
    ]  # fmt: skip
    assert about(tiny, tokens=128) == about(tiny)  # how much is computed side by side only rounds
    kinds = {about(copy), *(about(tiny, **more) for more in changed)}
    assert len(kinds) == 1 + len(changed)

    train([examples(8)], quick(tiny), tmp_path, Watch())
    before = identify_adapter(tmp_path / ADAPTER)
    path = tmp_path / ADAPTER / "adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    assert identify_adapter(tmp_path / ADAPTER) != before


def test_lack_of_memory_says_what_to_lower(tiny: Path, tmp_path: Path) -> None:
    import torch

    told = r"out of memory in training: lower tokens \(it then goes on\), context or rank"
    with pytest.raises(RunError, match=told), memory_errors(MEMORY):
        torch.empty(1 << 60, dtype=torch.uint8)
    with pytest.raises(RunError, match=told), memory_errors(MEMORY):
        raise torch.OutOfMemoryError("CUDA out of memory")
    with pytest.raises(RuntimeError, match="shape"), memory_errors(MEMORY):
        torch.zeros(2).view(3)

    stop, started = Stop(), []

    class StopsAtOnce:
        def start(self, name: str, total: int, done: int) -> None:
            started.append(done)

        def say(self, message: str) -> None: ...
        def advance(self, name: str, what: Any = "") -> None:
            stop()

    with pytest.raises(Interrupted):
        train([examples(40)], quick(tiny), tmp_path, Watch("t", StopsAtOnce(), stop))
    fewer = quick(tiny, tokens=64)
    train([examples(40)], fewer, tmp_path, Watch("t", StopsAtOnce()))
    assert started == [0, 2]


def test_a_benchmark_with_a_tuned_model(tiny: Path, tmp_path: Path) -> None:
    more = "rank: 4, learning_rate: 0.01, epochs: 3, probabilities: independent"
    judge = f"  - {{name: mine, learn: lora, model: {tiny}, {more}}}"
    bench = write_bench(tmp_path, judge, questions=10, more="tuning: {folds: 2}")
    study = jb.run(bench, tmp_path / "run")
    (judge,) = (judge for judge in study.judges if judge.name == "mine")
    found = list(judge.verdicts.values())
    assert len(found) == 20
    assert {verdict.status for verdict in found} == {"ok"}
    assert all(sum(v.probabilities["tone"].values()) == pytest.approx(1) for v in found)  # type: ignore[index]
    cells = sorted((tmp_path / "run" / "tuning" / "mine").glob("*/fold-*"))
    assert [cell.name for cell in cells] == ["fold-1", "fold-2"]
    for cell in cells:
        facts = json.loads((cell / "learnt.json").read_text())
        assert facts["n"] == 10
        assert facts["left_out"] == 0
        assert facts["sha256"]
        assert (cell / ADAPTER).is_dir()
        assert not list(cell.rglob("checkpoints"))
    began = time.time()
    jb.run(bench, tmp_path / "run")  # nothing is learnt or asked again
    assert all((cell / "learnt.json").stat().st_mtime < began for cell in cells)
