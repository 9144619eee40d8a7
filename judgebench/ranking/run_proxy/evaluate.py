"""Train a task's evaluators and have each decide every ranked instance with every argument."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from judgebench.ranking.proxy.arguments import Argument, argument_id
from judgebench.ranking.proxy.config import EvaluatorKind
from judgebench.ranking.proxy.examples import evaluator_name
from judgebench.ranking.proxy.task import TaskInstance
from judgebench.ranking.run_proxy.arguments import systems_trained_on
from judgebench.ranking.run_proxy.files import evaluator_folder
from judgebench.ranking.run_proxy.load import RankBench, RankedEntry
from judgebench.ranking.run_proxy.watcher import RankWatcher, TrainingBar
from judgebench.runner.stop import Interrupted, Stop
from judgebench.store.folder import RunFolder
from judgebench.store.verdict_file import VerdictWriter

if TYPE_CHECKING:
    from judgebench.ranking.proxy.evaluator import ProxyEvaluator

BySystem = Mapping[str, Mapping[str, Argument]]


def evaluator_names(task: str, kind: EvaluatorKind, draws: int) -> list[str]:
    """One a draw for the LLM-trained ones, else one."""
    return [
        evaluator_name(task, kind, draw) for draw in range(draws if kind == "llm-trained" else 1)
    ]


def evaluate(
    bench: RankBench,
    entry: RankedEntry,
    arguments: BySystem,
    folder: RunFolder,
    watcher: RankWatcher,
    stop: Stop,
) -> None:
    """Train what is not trained, then write the verdicts that are not written.

    Raises Interrupted where the user stops it; epochs and verdicts done are kept.
    """
    from judgebench.ranking.proxy.evaluator import ProxyEvaluator
    from judgebench.ranking.proxy.training import train

    models = {
        system: {item: argument.text for item, argument in arguments[system].items()}
        for system in systems_trained_on(arguments, bench.proxy.controls)
    }
    for kind in entry.kinds:
        for draw, name in enumerate(evaluator_names(entry.task.name, kind, entry.evaluators.draws)):
            where = evaluator_folder(folder.path, name)
            bar = TrainingBar(name, watcher, stop)
            train(
                entry.task, kind, models, entry.evaluators, where,
                seed=bench.config.seed, draw=draw, watcher=bar,
            )  # fmt: skip
            _decide(ProxyEvaluator.load(where), entry, arguments, folder, watcher, stop)


def _decide(
    evaluator: ProxyEvaluator,
    entry: RankedEntry,
    arguments: BySystem,
    folder: RunFolder,
    watcher: RankWatcher,
    stop: Stop,
) -> None:
    """Write one verdict an argument; those of another signature or text are made anew."""
    done = {
        (v.item_id, v.content_hash)
        for v in folder.verdicts(evaluator.name)
        if v.signature == evaluator.signature
    }
    todo: dict[str, list[TaskInstance]] = {}
    wanted = 0
    for system, by_item in arguments.items():
        instances = [i for i in entry.task.ranked if i.item_id in by_item]
        wanted += len(instances)
        todo[system] = [
            i
            for i in instances
            if (
                argument_id(entry.task.name, i.item_id, system),
                evaluator.content_hash(i, by_item[i.item_id].text),
            )
            not in done
        ]
    title = f"{evaluator.name}: deciding"
    watcher.started(title, wanted, wanted - sum(map(len, todo.values())))
    with VerdictWriter(folder.verdict_path(evaluator.name)) as writer:
        for system, instances in todo.items():
            texts = [arguments[system][i.item_id].text for i in instances]
            for verdict in evaluator.judge(entry.task, system, instances, texts):
                writer.write(verdict)
                watcher.step(title)
            if stop.wanted:
                raise Interrupted
