"""What does it save to weigh labels instead of writing them, and are the labels as good?

One model, run by transformers in this process, judges the answers of the demo set by the rubric of
8 metrics: by label probabilities in one forward pass (`probabilities: independent`), in one short
pass a metric (`chained`), and by writing JSON that outlines binds to the schema, alone and several
prompts side by side. Each repetition times all in turn on the same answers. Loading the model,
compiling the schema and the first answer, which is checked against plain passes, stand outside the
clock. Agreement is counted on the labels of all answers that were judged.

With `--data-folder`, the tables that examples/medical-safety-crowd/prepare.py wrote, the same model
rates how serious medical queries are, beside crowd workers' labels: by written JSON, by raw label
probabilities, and by probabilities calibrated in both ways. An accuracy no better than
`constant-majority` says that the judge tells nothing about an answer.

    pip install 'judgebench-eval[transformers]'
    python benchmarks/label_probabilities.py --data-folder TABLES
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from importlib.util import find_spec
from io import StringIO
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from judgebench.alignment import align
from judgebench.data.load import load_data
from judgebench.files import shipped_folder
from judgebench.judges.config import JudgeConfig
from judgebench.judges.judge import Task
from judgebench.judges.llm import LLMJudge
from judgebench.models import open_backend
from judgebench.models.checkpoints import fetch
from judgebench.models.settings import BackendSettings
from judgebench.prompt import load_prompt
from judgebench.records import Answer, Verdict
from judgebench.rubric import load_rubric
from judgebench.runs.folder import RunFolder
from judgebench.runs.load import load_bench
from judgebench.runs.open import open_folder
from judgebench.runs.run_bench import run

RUBRIC = "medical-safety"  # 8 metrics
CONTEXT = 4096
SIDE_BY_SIDE = 8
WAYS = ("independent", "chained", "JSON", "JSON, side by side")

Judges = dict[str, LLMJudge]
Seconds = dict[str, list[tuple[float, float]]]  # way -> (wall, CPU) an answer, by repetition
Labels = dict[str, dict[str, str]]  # way -> "item/metric" -> label

HUMAN_BENCH = """
name: labels
rubric: medical-query-risk
metrics: [query_risk]
data: [answers.csv, labels.csv]
controls: [constant-majority]
truth: {{rule: median, ties: upper, annotators: ["crowd*"]}}
judges:
  - {{name: JSON, backend: "transformers:{model}", settings: {{context: {context}}}}}
  - name: raw
    backend: "transformers:{model}"
    settings: {{context: {context}}}
    probabilities: independent
  - {{name: batch, calibrate: raw}}
"""


def demo_answers() -> list[Answer]:
    """The demo set's answers, in an order that mixes good and bad ones."""
    with (shipped_folder("examples") / "demo" / "answers.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = [Answer(row["item_id"], row["text"], row["question"]) for row in rows]
    random.Random(0).shuffle(found)
    return found


def opened(model: str, most: int) -> Judges:
    """The ways to judge; all but the last, which computes `most` at once, share one model."""
    prompt, rubric = load_prompt("structured"), load_rubric(RUBRIC)
    found: Judges = {}
    for side_by_side in (1, most):
        settings = BackendSettings(context=CONTEXT, concurrency=side_by_side)
        config = JudgeConfig(name="JSON", backend=f"transformers:{model}", settings=settings)
        judge = LLMJudge(config, rubric, prompt, open_backend(config.backend, settings))
        if side_by_side == 1:
            for how in WAYS[:2]:
                found[how] = judge.asked_otherwise(how, probabilities=how)
        found[WAYS[2] if side_by_side == 1 else WAYS[3]] = judge
    return found


def judged(judge: LLMJudge, answers: Sequence[Answer]) -> list[Verdict]:
    return list(judge.judge(Task(answer) for answer in answers))


def timed(
    judges: Judges, answers: Sequence[Answer], times: int, few: int, most: int
) -> tuple[Seconds, Labels]:
    """Seconds an answer by way, one pair a repetition, and every label that was given.

    A repetition has `most` answers, a full batch. Written one by one they take long, so that way
    is timed on `few` of them.
    """
    seconds: Seconds = {way: [] for way in WAYS}
    labels: Labels = {way: {} for way in WAYS}
    for judge in judges.values():
        judged(judge, answers[:1])
    stream = cycle(answers[1:])
    for _ in range(times):
        part = list(islice(stream, most))
        for way in WAYS:
            asked = part[:few] if way == "JSON" else part
            began = time.perf_counter(), time.process_time()
            verdicts = judged(judges[way], asked)
            ended = time.perf_counter(), time.process_time()
            wall, cpu = ((b - a) / len(asked) for a, b in zip(began, ended, strict=True))
            seconds[way].append((wall, cpu))
            labels[way].update(
                (f"{v.item_id}/{metric}", label)
                for v in verdicts
                for metric, label in v.labels.items()
            )
    return seconds, labels


def agreeing(one: dict[str, str], other: dict[str, str]) -> str:
    """How many of the cells that both labelled have the same label."""
    both = one.keys() & other.keys()
    same = sum(one[cell] == other[cell] for cell in both)
    return f"{same / len(both):.2f} of {len(both)}" if both else "–"


def commonest(labels: dict[str, str]) -> str:
    """How many cells have their metric's commonest label: 1.00 is a judge that says one thing."""
    by_metric: dict[str, Counter[str]] = {}
    for cell, label in labels.items():
        by_metric.setdefault(cell.partition("/")[2], Counter())[label] += 1
    top = sum(counts.most_common(1)[0][1] for counts in by_metric.values())
    return f"{top / len(labels):.2f}" if labels else "–"


def show_pace(seconds: Seconds, labels: Labels) -> None:
    print(f"{'':20} {'answers/s':>9} {'(min-max)':>13} {'x JSON':>7} {'(min-max)':>13}"
          f" {'CPU s':>6} {'x JSON':>7} {'same label as JSON':>18} {'one label':>9}")  # fmt: skip
    for way in WAYS:
        pace = [1 / wall for wall, _ in seconds[way]]
        walls, cpus = (
            [slow[i] / fast[i] for fast, slow in zip(seconds[way], seconds["JSON"], strict=True)]
            for i in (0, 1)
        )
        print(
            f"{way:20} {median(pace):9.3f} {_range(pace, '.3f'):>13}"
            f" {median(walls):7.1f} {_range(walls, '.1f'):>13}"
            f" {median(cpu for _, cpu in seconds[way]):6.2f} {median(cpus):7.1f}"
            f" {agreeing(labels[way], labels['JSON']):>18} {commonest(labels[way]):>9}"
        )
    print("CPU s: of all threads, for one answer. same label: over answers and metrics that both")
    print("judged. one label: the share of labels that are their metric's commonest; 1.00 is a")
    print("judge that always says the same.")


def _range(values: Sequence[float], spec: str) -> str:
    return f"({min(values):{spec}}-{max(values):{spec}})"


def against_humans(model: str, folder: Path, number: int) -> None:
    """Judge a sample of the crowd-labelled queries in a run of its own, and print its scores."""
    with TemporaryDirectory() as scratch:
        write_sample(folder, number, Path(scratch))
        text = HUMAN_BENCH.format(model=model, context=CONTEXT)
        (Path(scratch) / "bench.yaml").write_text(text)
        bench = load_bench(Path(scratch))
        kept = RunFolder(Path(scratch) / "run")
        began = time.perf_counter()
        run(bench, kept)
        config = bench.config
        alignment = align(open_folder(kept, config.truth))
        seconds = time.perf_counter() - began
        scores = {
            (row.judge, row.statistic): row.estimate
            for row in alignment.results.select("score", failures="left_out")
        }
        print(f"\n{len(bench.dataset.answers)} medical queries, crowd median as truth, 4 labels"
              f" ({seconds:.0f} s)")  # fmt: skip
        print(f"{'':18} {'accuracy':>22} {'weighted kappa':>24} {'one label':>9}")
        for name in ("constant-majority", "JSON", "raw", "batch"):
            labels = {
                f"{v.item_id}/{metric}": label
                for v in kept.verdicts(name)
                for metric, label in v.labels.items()
            }
            accuracy, kappa = (scores[name, s] for s in ("accuracy", "kappa_quadratic"))
            print(f"{name:18} {accuracy:.3f}".ljust(42), f"{kappa:.3f}".rjust(23),
                  f"{commonest(labels):>9}")  # fmt: skip
        said = {name: _said(kept, name) for name in ("JSON", "raw")}
        print(f"raw labels that are those of the JSON: {agreeing(said['raw'], said['JSON'])}")


def _said(folder: RunFolder, name: str) -> dict[str, str]:
    return {v.item_id: label for v in folder.verdicts(name) for label in v.labels.values()}


def write_sample(folder: Path, number: int, into: Path) -> None:
    """A seeded sample of the queries, with the labels of crowd and expert, as two CSV files."""
    data = load_data(folder / "queries.csv", load_rubric("medical-query-risk"))
    drawn = random.Random(0).sample(list(data.answers), min(number, len(data.answers)))
    ids = {answer.item_id for answer in drawn}
    _write(into / "answers.csv", ("item_id", "text", "group"),
           ((a.item_id, a.text, a.group) for a in drawn))  # fmt: skip
    _write(
        into / "labels.csv",
        ("item_id", "annotator", "query_risk"),
        (
            (label.item_id, label.annotator, label.label or "")
            for label in data.labels
            if label.item_id in ids and label.metric == "query_risk"
        ),
    )


def _write(path: Path, head: Sequence[str], rows: Iterator[Sequence[str]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few answers, one repetition")
    parser.add_argument("--model", help="GGUF file, folder or hub name; SmolLM2-135M if left out")
    parser.add_argument("--threads", type=int, help="of torch; as many as cores if left out")
    parser.add_argument("--times", type=int, default=5, help="repetitions (5)")
    parser.add_argument("--data-folder", type=Path, help="where medicheck-crowd.csv.gz lies")
    parser.add_argument("--queries", type=int, default=200, help="how many of them (200)")
    given = parser.parse_args()
    missing = [name for name in ("torch", "transformers", "outlines") if not find_spec(name)]
    if missing:
        sys.exit(f"this needs {', '.join(missing)}: pip install 'judgebench-eval[transformers]'")
    import torch

    if given.threads:
        torch.set_num_threads(given.threads)
    model = given.model or str(fetch("smollm2"))
    times, few, most = (1, 1, 2) if given.quick else (given.times, 3, SIDE_BY_SIDE)
    with redirect_stderr(StringIO()):  # transformers' progress bars
        judges = opened(model, most)
        seconds, labels = timed(judges, demo_answers(), times, few, most)
    for judge in judges.values():
        judge.close()
    print(
        f"{Path(model).name}, {torch.get_num_threads()} threads, torch {torch.__version__}, ",
        end="",
    )
    print(f"{len(load_rubric(RUBRIC).metrics)} metrics, {times} repetitions, ", end="")
    print(f"{most} prompts side by side", flush=True)
    show_pace(seconds, labels)
    if given.data_folder is None:
        print("\nnot held against human labels: say with --data-folder where they lie")
    else:
        with redirect_stderr(StringIO()):
            against_humans(model, given.data_folder, 8 if given.quick else given.queries)


if __name__ == "__main__":
    main()
