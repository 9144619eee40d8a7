"""The three steps of a ranking run: arguments and control cases, judges, evaluators.

Each goes on where an earlier run of the same folder stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import judgebench
from judgebench import runner
from judgebench.progress import Progress
from judgebench.ranking.proxy.arguments import Argument
from judgebench.ranking.proxy.load import split_rows
from judgebench.ranking.proxy.task import TaskInstance
from judgebench.ranking.run_proxy.arguments import (
    all_arguments,
    generate_all,
    make_control_cases,
    systems_trained_on,
)
from judgebench.ranking.run_proxy.evaluate import evaluate
from judgebench.ranking.run_proxy.files import write_ranking, write_split
from judgebench.ranking.run_proxy.load import RankBench, RankedEntry, argument_answer
from judgebench.records import Answer, Dataset
from judgebench.runner.bench import load_bench
from judgebench.runner.stop import Interrupted, Stop, ctrl_c
from judgebench.store.folder import RunFolder

Arguments = Mapping[str, Mapping[str, Mapping[str, Argument]]]  # by task, system and item


def write_arguments_of_all(
    bench: RankBench, folder: RunFolder, progress: Progress, budget: float | None = None
) -> float:
    """Have models write what they have not written and make the control cases.

    Returns the US dollars that all arguments of the folder cost. Raises Interrupted (a
    KeyboardInterrupt), BudgetSpent or an error of a backend; what was written is kept.
    """
    stop = Stop()
    with folder.locked(), ctrl_c(stop, progress.say):
        for entry in bench.tasks:
            write_split(folder.path, entry.task.name, split_rows(entry.task))
        spent = generate_all(bench, folder.path, progress, stop, budget)
        retrieval = make_control_cases(bench, folder.path, progress)
        write_ranking(folder.path, _ranking(bench, _arguments(bench, folder), retrieval))
        if stop.wanted:  # while passages were sought
            raise Interrupted
    return spent


def judge_all(
    bench: RankBench,
    folder: RunFolder,
    progress: Progress | None = None,
    budget: float | None = None,
) -> None:
    """Put every argument on a ranked instance to the judges, as any run does. `budget` is for the
    verdicts alone. Raises what `runner.run` raises."""
    arguments = _arguments(bench, folder)
    answers = [
        answer
        for entry in bench.tasks
        if entry.entry.judged
        for answer in _answers(entry, arguments[entry.task.name])
    ]
    judged = load_bench(bench.file, arguments=Dataset(answers, ()))
    try:
        runner.run(judged, folder, budget=budget, progress=progress)
    finally:
        judged.close()


def evaluate_all(bench: RankBench, folder: RunFolder, progress: Progress) -> None:
    """Train every evaluator and have it decide with every argument.

    Raises Interrupted (a KeyboardInterrupt); epochs and verdicts that are done are kept.
    """
    stop = Stop()
    arguments = _arguments(bench, folder)
    with folder.locked(), ctrl_c(stop, progress.say):
        for entry in bench.tasks:
            evaluate(bench, entry, arguments[entry.task.name], folder, progress, stop)


def _arguments(bench: RankBench, folder: RunFolder) -> Arguments:
    """By task, system and item."""
    return {e.task.name: all_arguments(bench, e, folder.path) for e in bench.tasks}


def _answers(
    entry: RankedEntry, arguments: Mapping[str, Mapping[str, Argument]]
) -> Iterator[Answer]:
    for instance in entry.task.ranked:
        for system, by_item in arguments.items():
            if instance.item_id in by_item:
                text = by_item[instance.item_id].text
                yield argument_answer(entry.task, instance, system, text)


# --- what is kept to rank again offline ----------------------------------------------------------


def _ranking(
    bench: RankBench,
    arguments: Arguments,
    retrieval: Mapping[str, Any],
) -> dict[str, Any]:
    return {
        "judgebench": judgebench.__version__,
        "name": bench.config.name,
        "seed": bench.config.seed,
        "controls": list(bench.proxy.controls),
        "families": {k: list(v) for k, v in bench.proxy.families.items()},
        "generators": {g.name: g.backend for g in bench.proxy.generators},
        "retrieval": dict(retrieval),
        "tasks": [_task(bench, e, arguments[e.task.name]) for e in bench.tasks],
    }


def _task(
    bench: RankBench, entry: RankedEntry, arguments: Mapping[str, Mapping[str, Argument]]
) -> dict[str, Any]:
    task = entry.task
    return {
        "name": task.name,
        "title": task.title,
        "metric": task.metric,
        "labels": list(task.labels),
        "left_out": list(task.left_out),
        "notes": list(task.notes),
        "files": dict(task.files),
        "kinds": list(entry.kinds),
        "draws": entry.evaluators.draws,
        "judged": entry.entry.judged,
        "generators": [g.name for g in entry.generators],
        "learnt_from": _learnt_from(bench, entry, arguments),
        "instances": [_instance(i) for i in task.ranked],
        "arguments": {
            system: {i.item_id: _argument(by_item[i.item_id]) for i in task.ranked
                     if i.item_id in by_item}
            for system, by_item in arguments.items()
        },
    }  # fmt: skip


def _learnt_from(
    bench: RankBench, entry: RankedEntry, arguments: Mapping[str, Mapping[str, Argument]]
) -> list[str]:
    """The systems some of whose arguments an LLM-trained evaluator may be trained on."""
    taught = {i.item_id for i in entry.task.of("train")}
    systems = systems_trained_on(arguments, bench.proxy.controls)
    return [system for system in systems if taught & arguments[system].keys()]


def _instance(i: TaskInstance) -> dict[str, Any]:
    return {
        "item_id": i.item_id,
        "group": i.group,
        "question": i.question,
        "context": i.context,
        "label": i.label,
        "label_text": i.label_text,
    }


def _argument(argument: Argument) -> dict[str, Any]:
    verbatim = {} if argument.verbatim is None else {"verbatim": argument.verbatim}
    return {"text": argument.text, **verbatim}
