"""Train a task's evaluators and have each decide every ranked instance with every argument."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from judgebench.progress import Progress
from judgebench.ranking.proxy.arguments import Argument, argument_id
from judgebench.ranking.proxy.examples import EvaluatorPlan
from judgebench.ranking.proxy.task import TaskInstance
from judgebench.ranking.run_proxy.arguments import systems_trained_on
from judgebench.ranking.run_proxy.files import evaluator_folder
from judgebench.ranking.run_proxy.load import RankBench, RankedEntry
from judgebench.runner.stop import Interrupted, Stop
from judgebench.store.folder import RunFolder
from judgebench.store.verdict_file import VerdictWriter

if TYPE_CHECKING:
    from judgebench.ranking.proxy.evaluator import ProxyEvaluator

BySystem = Mapping[str, Mapping[str, Argument]]


def evaluate(
    bench: RankBench,
    entry: RankedEntry,
    arguments: BySystem,
    folder: RunFolder,
    progress: Progress,
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
        draws = entry.evaluators.draws if kind == "llm-trained" else 1
        for draw in range(draws):
            plan = EvaluatorPlan(
                entry.task, kind, entry.evaluators, bench.config.seed, models, draw
            )
            where = evaluator_folder(folder.path, plan.name)
            train(plan, where, progress, stop)
            _decide(ProxyEvaluator.load(where), entry, arguments, folder, progress, stop)


def _decide(
    evaluator: ProxyEvaluator,
    entry: RankedEntry,
    arguments: BySystem,
    folder: RunFolder,
    progress: Progress,
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
    progress.start(title, wanted, wanted - sum(map(len, todo.values())))
    with VerdictWriter(folder.verdict_path(evaluator.name)) as writer:
        for system, instances in todo.items():
            texts = [arguments[system][i.item_id].text for i in instances]
            for verdict in evaluator.judge(entry.task, system, instances, texts):
                writer.write(verdict)
                progress.advance(title)
            if stop.wanted:
                raise Interrupted
