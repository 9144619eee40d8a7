"""How many answers a second does a judge behind an endpoint reach?

Beside it: bare clients, and inspect_ai with its own runner.

2,000 answers of 200 words, the 8 metrics of `medical-safety` in one request, and an endpoint on
loopback (endpoint.py) that answers each call after 100 ms. So 64 connections can do 640 answers a
second, and 256 can do 2,560: the limit.

The lanes of judgebench go the whole way: prompts are rendered, replies read and checked, verdicts
stored; timed from the first answer drawn to the last verdict kept. The bare clients send requests
made beforehand and throw the replies away. inspect_ai goes its own way, from its first solver to
its last score, with the same prompts and schema.

Each repetition of a lane is a process of its own; lanes take turns. CPU is that of the client's
process (all threads), not the endpoint's. Lanes over aiohttp run on uvloop, which judgebench uses
where it is installed; those called `asyncio` run on the standard library's event loop.

inspect_ai wants a newer openai client than litellm does, so it has an environment of its own:

    python -m venv V && V/bin/pip install inspect_ai 'openai>=3.4' aiohttp jinja2 numpy pandas \\
        pyarrow pydantic pyyaml rich scipy tenacity
    python benchmarks/throughput.py --inspect-python V/bin/python
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

from endpoint import RUBRIC, Endpoint

from judgebench.models.transport import new_event_loop

DELAY_S, WORDS, ANSWERS = 0.1, 200, 2000
MODEL, KEY = "loopback", "none"

Clock = tuple[float, float]  # seconds, and those of this process's CPU


def clock() -> Clock:
    return time.perf_counter(), time.process_time()


@dataclass
class Span:
    """From the first `begin` to the last `end`."""

    begun: Clock | None = None
    ended: Clock = field(default_factory=clock)

    def begin(self) -> None:
        self.begun = self.begun or clock()

    def end(self) -> None:
        self.ended = clock()

    def measured(self) -> dict[str, float]:
        assert self.begun is not None
        return {"wall": self.ended[0] - self.begun[0], "cpu": self.ended[1] - self.begun[1]}


def write_bench(folder: Path, answers: int, backend: str, url: str, connections: int) -> Path:
    """A benchmark of answers of 200 words, drawn anew from a small vocabulary."""
    rng = random.Random(0)
    vocabulary = ["".join(rng.choices("aeioulnrst", k=rng.randint(2, 9))) for _ in range(2000)]
    rows = [
        json.dumps(
            {
                "item_id": f"item-{i}",
                "question": f"{' '.join(rng.choices(vocabulary, k=15))}?",
                "text": " ".join(rng.choices(vocabulary, k=WORDS)),
            }
        )
        for i in range(answers)
    ]
    (folder / "answers.jsonl").write_text("\n".join(rows))
    judge = {
        "name": "judge",
        "backend": f"{backend}:{MODEL if backend != 'litellm' else f'openai/{MODEL}'}",
        "settings": {"base_url": url, "concurrency": connections},
    }
    bench = {
        "name": "throughput",
        "rubric": RUBRIC,
        "data": ["answers.jsonl"],
        "judges": [judge],
        "controls": False,
    }
    path = folder / "bench.yaml"
    path.write_text(json.dumps(bench))
    return path


def bodies(answers: int, url: str) -> list[dict[str, Any]]:
    """The requests that judgebench would send."""
    from judgebench.judges.judge import Task
    from judgebench.models.chat import chat_body
    from judgebench.runs.load import load_bench

    with tempfile.TemporaryDirectory() as name:
        bench = load_bench(write_bench(Path(name), answers, "openai-compatible", url, 1))
        (judge,) = bench.judges
        return [chat_body(judge.request(Task(a)), "json_schema") for a in bench.dataset.answers]


def judgebench(backend: str, answers: int, url: str, connections: int) -> dict[str, float]:
    from judgebench.progress import NoProgress
    from judgebench.runs.folder import RunFolder
    from judgebench.runs.load import load_bench
    from judgebench.runs.run_bench import run

    span = Span()

    class Timed(NoProgress):
        left = answers

        def start(self, name: str, total: int, done: int) -> None:
            span.begin()

        def advance(self, name: str, what: object = "") -> None:
            self.left -= 1
            if self.left <= 0:
                span.end()

    with tempfile.TemporaryDirectory() as name:
        folder = RunFolder(Path(name) / "run")
        bench = load_bench(write_bench(Path(name), answers, backend, url, connections))
        warm_up(backend, bench.judges[0])
        run(bench, folder, progress=Timed())
        bench.close()
        labels = sum(len(v.labels) for v in folder.verdicts("judge"))
    assert labels == 8 * answers, f"{labels} labels for {answers} answers"
    return span.measured()


def warm_up(backend: str, judge: Any) -> None:
    """litellm imports much of itself with its first call; as for the bare lane, not timed."""
    from judgebench.judges.judge import Task
    from judgebench.records import Answer

    if backend == "litellm":
        list(judge.judge([Task(Answer("warm-up", "x"))]))


async def all_asked(
    ask: Callable[[Any], Awaitable[Any]], requests: list[Any], connections: int
) -> dict[str, float]:
    """Every request through as many workers as there are connections."""
    span, left = Span(), iter(requests)

    async def work(left: Iterator[Any]) -> None:
        for request in left:
            await ask(request)

    span.begin()
    await asyncio.gather(*(work(left) for _ in range(connections)))
    span.end()
    return span.measured()


async def bare_aiohttp(answers: int, url: str, connections: int) -> dict[str, float]:
    import aiohttp

    requests = [json.dumps({"model": MODEL, **body}).encode() for body in bodies(answers, url)]
    kind = {"Content-Type": "application/json"}
    connector = aiohttp.TCPConnector(limit=connections)
    async with aiohttp.ClientSession(connector=connector, headers=kind) as session:

        async def ask(body: bytes) -> None:
            async with session.post(f"{url}/chat/completions", data=body) as response:
                await response.read()

        return await all_asked(ask, requests, connections)


async def bare_litellm(answers: int, url: str, connections: int) -> dict[str, float]:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    requests = bodies(answers, url)

    async def ask(body: dict[str, Any]) -> None:
        await litellm.acompletion(
            model=f"openai/{MODEL}", api_base=url, api_key=KEY, timeout=120, **body
        )

    await ask(requests[0])
    return await all_asked(ask, requests, connections)


async def openai_client(answers: int, url: str, connections: int) -> dict[str, float]:
    import openai

    requests = bodies(answers, url)
    client = openai.AsyncOpenAI(base_url=url, api_key=KEY)

    async def ask(body: dict[str, Any]) -> None:
        await client.chat.completions.create(model=MODEL, **body)

    await ask(requests[0])
    return await all_asked(ask, requests, connections)


def inspect(answers: int, url: str, connections: int) -> dict[str, float]:
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import (
        ChatMessageSystem,
        ChatMessageUser,
        GenerateConfig,
        ResponseSchema,
        get_model,
    )
    from inspect_ai.scorer import Score, accuracy, scorer
    from inspect_ai.solver import solver

    from judgebench.judges.replies import read_reply
    from judgebench.rubric import load_rubric

    span, rubric, requests = Span(), load_rubric(RUBRIC), bodies(answers, url)
    first = requests[0]
    samples = [
        Sample([ChatMessageSystem(content=s["content"]), ChatMessageUser(content=u["content"])])
        for s, u in (body["messages"] for body in requests)
    ]

    @solver
    def ask() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            span.begin()
            return await generate(state)

        return solve

    @scorer(metrics=[accuracy()])
    def whole() -> Any:
        async def score(state: Any, target: Any) -> Any:
            (reading,) = read_reply("json", state.output.completion, rubric)
            span.end()
            return Score(value=len(reading.labels) == len(rubric.metrics))

        return score

    schema = first["response_format"]["json_schema"]
    config = GenerateConfig(
        max_connections=connections,
        max_tokens=first["max_tokens"],
        temperature=first["temperature"],
        top_p=first["top_p"],
        seed=first["seed"],
        response_schema=ResponseSchema(
            name=schema["name"], json_schema=schema["schema"], strict=True
        ),
    )
    model = get_model(f"openai-api/loopback/{MODEL}", base_url=url, api_key=KEY, config=config)
    with tempfile.TemporaryDirectory() as name:
        (log,) = eval(
            Task(samples, solver=ask(), scorer=whole()),
            model=model,
            max_samples=connections,
            log_dir=name,
            display="none",
        )
    assert log.status == "success", log.error
    assert log.results.scores[0].metrics["accuracy"].value == 1.0
    return span.measured()


Measure = Callable[[int, str, int], dict[str, float]]


@dataclass(frozen=True)
class Lane:
    """A way to have answers judged; a slow one is measured less often."""

    name: str
    measure: Measure
    slow: bool = False


def run_async(lane: Callable[[int, str, int], Any]) -> Measure:
    def measure(answers: int, url: str, connections: int) -> dict[str, float]:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            return dict(runner.run(lane(answers, url, connections)))

    return measure


def without_uvloop(measure: Measure) -> Measure:
    """The same where uvloop is not installed."""

    def found(answers: int, url: str, connections: int) -> dict[str, float]:
        with patch.dict(sys.modules, {"uvloop": None}):
            return measure(answers, url, connections)

    return found


def direct(answers: int, url: str, connections: int) -> dict[str, float]:
    return judgebench("openai-compatible", answers, url, connections)


BARE, DIRECT = (
    Lane("bare aiohttp", run_async(bare_aiohttp)),
    Lane("judgebench openai-compatible:", direct),
)
BARE_LITELLM = Lane("bare litellm", run_async(bare_litellm))
LITELLM = Lane("judgebench litellm:", lambda *a: judgebench("litellm", *a))
INSPECT = Lane("inspect_ai", inspect, slow=True)
LANES = [
    BARE,
    DIRECT,
    Lane("bare aiohttp, asyncio", without_uvloop(BARE.measure)),
    Lane("judgebench direct, asyncio", without_uvloop(DIRECT.measure)),
    BARE_LITELLM,
    LITELLM,
    Lane("openai client", run_async(openai_client), slow=True),
    INSPECT,
]


def in_a_process(
    lane: Lane, python: str, answers: int, url: str, connections: int
) -> dict[str, float]:
    """One repetition of a lane, in a process of its own, which finds this checkout's judgebench."""
    command = [python, __file__, "--lane", lane.name, "--url", url]
    command += ["--answers", str(answers), "--connections", str(connections)]
    found = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=found)
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


@dataclass
class Result:
    """What the repetitions of one lane came to: answers a second, and CPU ms an answer."""

    rates: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)

    def add(self, measured: dict[str, float], answers: int) -> None:
        self.rates.append(answers / measured["wall"])
        self.cpu_ms.append(1000 * measured["cpu"] / answers)

    @property
    def rate(self) -> float:
        return median(self.rates)


def compare(lanes: list[Lane], connections: int, arguments: argparse.Namespace) -> None:
    """Measure the lanes in turn, and print their table."""
    results = {lane.name: Result() for lane in lanes}
    for repetition in range(arguments.repetitions):
        for lane in lanes:
            if lane.slow and repetition >= arguments.slow_repetitions:
                continue
            with Endpoint(DELAY_S) as endpoint:
                python = arguments.inspect_python if lane is INSPECT else sys.executable
                url, answers = endpoint.base_url, arguments.answers
                measured = in_a_process(lane, python, answers, url, connections)
            results[lane.name].add(measured, arguments.answers)
    show(results, connections)


def show(results: dict[str, Result], connections: int) -> None:
    limit = connections / DELAY_S
    print(f"\n{connections} connections, limit {limit:,.0f} answers a second")
    print(f"  {'':30} {'answers/s':>9}  {'min-max':>13}  {'of limit':>8}  {'CPU ms':>7}  runs")
    for name, result in results.items():
        spread = f"{min(result.rates):.0f}-{max(result.rates):.0f}"
        print(
            f"  {name:30} {result.rate:9.0f}  {spread:>13}  {result.rate / limit:8.2f}"
            f"  {median(result.cpu_ms):7.2f}  {len(result.rates):4}"
        )
    for one, other in ((LITELLM, BARE_LITELLM), (DIRECT, INSPECT)):
        if one.name in results and other.name in results:
            ratio = results[one.name].rate / results[other.name].rate
            print(f"  {one.name} / {other.name}: {ratio:.2f}")


def usable(arguments: argparse.Namespace) -> Iterator[Lane]:
    """The lanes asked for; inspect_ai only where its environment is named."""
    for lane in LANES:
        if arguments.only and lane.name not in arguments.only:
            continue
        if lane is INSPECT and not arguments.inspect_python:
            print("left out: inspect_ai, which needs --inspect-python; see the top of this file")
        else:
            yield lane


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="200 answers, one run of each lane")
    parser.add_argument("--only", action="append", default=[], choices=[x.name for x in LANES])
    parser.add_argument("--connections", type=int, action="append", help="default: 64 and 256")
    parser.add_argument("--answers", type=int, default=ANSWERS)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--slow-repetitions", type=int, default=3, help="openai and inspect_ai")
    parser.add_argument("--inspect-python", help="the Python of inspect_ai's environment")
    parser.add_argument("--lane", choices=[x.name for x in LANES], help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.answers, arguments.repetitions, arguments.slow_repetitions = 200, 1, 1
    return arguments


def main() -> None:
    arguments = parsed()
    if arguments.lane:  # this is the process of one repetition
        (lane,) = (lane for lane in LANES if lane.name == arguments.lane)
        (connections,) = arguments.connections
        print(json.dumps(lane.measure(arguments.answers, arguments.url, connections)))
        return
    lanes = list(usable(arguments))
    print(f"{arguments.answers} answers of {WORDS} words, 8 metrics, delay {1000 * DELAY_S:.0f} ms")
    for connections in arguments.connections or (64, 256):
        compare(lanes, connections, arguments)


if __name__ == "__main__":
    main()
