"""The three steps of a ranking run: arguments and control cases, judges, evaluators.

Each goes on where an earlier run of the same folder stopped.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import judgebench
from judgebench import runs
from judgebench.errors import BudgetSpent, SetupError
from judgebench.files import disk_errors
from judgebench.models import open_backend
from judgebench.models.contract import wind_down
from judgebench.models.hosts import hosts_of
from judgebench.progress import Progress
from judgebench.ranking.human_files import given_ranks, keep_ranks
from judgebench.ranking.proxy.arguments import (
    Argument,
    ArgumentWriter,
    argument_id,
    arguments_path,
    costs_of,
    last_arguments,
    read_arguments,
)
from judgebench.ranking.proxy.control_cases import control_arguments
from judgebench.ranking.proxy.examples import EvaluatorPlan
from judgebench.ranking.proxy.task import GOLD, TaskInstance
from judgebench.ranking.proxy.task_file import split_rows
from judgebench.ranking.rank_bench import RankBench, RankedEntry, argument_answer
from judgebench.ranking.ranking_folder import (
    PROXY,
    BySystem,
    KeptInstance,
    KeptRanking,
    KeptTask,
    evaluator_folder,
    files_of,
    write_arguments_file,
    write_ranking,
    write_split,
)
from judgebench.records import Dataset
from judgebench.runs.bench import load_bench
from judgebench.runs.budget import Budget
from judgebench.runs.folder import RunFolder
from judgebench.runs.stop import Interrupted, Stop, ctrl_c
from judgebench.runs.verdict_file import VerdictWriter
from judgebench.writer import WritingTerms, Written

if TYPE_CHECKING:
    from judgebench.ranking.proxy.evaluator import ProxyEvaluator


@dataclass(frozen=True)
class RankingStep:
    """A step under way: whose, where, who follows it, and whether it is to end."""

    bench: RankBench
    folder: RunFolder
    progress: Progress
    stop: Stop


def rank_all(
    bench: RankBench, folder: RunFolder, progress: Progress, budget: float | None = None
) -> None:
    """Everything that a ranking needs: arguments, verdicts, evaluators and the ranks of people.

    A spent budget stops no training. Raises what the three steps raise.
    """
    ranks, unpaid = given_ranks(bench), None
    spent = write_arguments_of_all(bench, folder, progress, budget)
    try:
        judge_all(bench, folder, progress, None if budget is None else budget - spent)
    except BudgetSpent as error:
        unpaid = error
    evaluate_all(bench, folder, progress)
    if unpaid:
        raise unpaid
    with folder.locked():
        writers = (g for entry in bench.tasks for g in entry.generators)
        folder.note_hosts(host for g in writers for host in hosts_of(g.backend, g.settings))
        keep_ranks(folder.path, ranks)
        folder.write_manifest(folder.manifest(), "finished", files_of(folder.path))


def write_arguments_of_all(
    bench: RankBench, folder: RunFolder, progress: Progress, budget: float | None = None
) -> float:
    """Have models write what they have not written and make the control cases.

    Returns the US dollars that all arguments of the folder cost. Raises Interrupted (a
    KeyboardInterrupt), BudgetSpent or an error of a backend; what was written is kept.
    """
    step = RankingStep(bench, folder, progress, Stop())
    with folder.locked(), ctrl_c(step.stop, progress.say):
        _reopen(folder, progress)
        for entry in bench.tasks:
            write_split(folder.path, entry.task.name, split_rows(entry.task))
        spent = generate_all(step, budget)
        retrieval = make_control_cases(step)
        _keep(bench, folder.path, retrieval)
        if step.stop.wanted:  # while passages were sought
            raise Interrupted
    return spent


def judge_all(
    bench: RankBench,
    folder: RunFolder,
    progress: Progress | None = None,
    budget: float | None = None,
) -> None:
    """Put every argument on a ranked instance to the judges, as any run does. `budget` is for the
    verdicts alone. Raises what `runs.run` raises."""
    answers = [
        argument_answer(entry.task, instance, system, by_item[instance.item_id].text)
        for entry in bench.tasks
        if entry.entry.judged
        for arguments in [all_arguments(bench, entry, folder.path)]
        for instance in entry.task.ranked
        for system, by_item in arguments.items()
        if instance.item_id in by_item
    ]
    judged = load_bench(bench.file, arguments=Dataset(answers, ()))
    try:
        runs.run(judged, folder, budget=budget, progress=progress)
    finally:
        judged.close()


def evaluate_all(bench: RankBench, folder: RunFolder, progress: Progress) -> None:
    """Train every evaluator and have it decide with every argument.

    Raises Interrupted (a KeyboardInterrupt); epochs and verdicts that are done are kept.
    """
    step = RankingStep(bench, folder, progress, Stop())
    in_hand = "the batch in training or the decisions in hand; epochs that are done are kept"
    with folder.locked(), ctrl_c(step.stop, progress.say, what=in_hand):
        _reopen(folder, progress)
        for entry in bench.tasks:
            _evaluate(step, entry, all_arguments(bench, entry, folder.path))


def _reopen(folder: RunFolder, progress: Progress) -> None:
    """Note that the ranking goes on, and say what of its files is damaged."""
    inside = f"{folder.path / PROXY}"
    with suppress(SetupError):  # of a damaged run.json, which the judges' run tells of
        found = [p for p in folder.damage() if p.file.startswith(inside)]
        folder.reopen(PROXY)
        for problem in found:
            said = f"{problem}; what it lacks is made again"
            progress.say(said)
            folder.note_changes({problem.file.removeprefix(f"{folder.path}/"): f"{said}."})


# --- arguments -----------------------------------------------------------------------------------


def generate_all(step: RankingStep, limit: float | None) -> float:
    """Have every generator write what it has not; the US dollars that all arguments cost."""
    generators, run, say = step.bench.proxy.generators, step.folder.path, step.progress.say
    costs = {g.name: costs_of(arguments_path(run, g.name)) for g in generators}
    spent = sum(map(sum, costs.values()))
    for generator in generators:
        entries = [e for e in step.bench.tasks if generator in e.generators]
        if not entries:
            continue
        budget = Budget(limit, spent, max(costs[generator.name], default=0.0))
        with closing(open_backend(generator.backend, generator.settings)) as backend:
            step.stop.then(partial(wind_down, backend))
            path = arguments_path(run, generator.name)
            writer = ArgumentWriter(generator, backend, path, step.bench.config.seed)
            for entry in entries:
                task, name = entry.task, generator.name
                price = f"proxy.generators.{name}.settings.price"
                terms = WritingTerms(
                    f"{task.name}: {name} writes", step.progress, step.stop, budget, price
                )
                with disk_errors(run):
                    written = writer.write(task, entry.argued, terms)
                if written.asked:
                    say(f"{task.name}: arguments of {name}: {_outcome(written)}")
                if step.stop.wanted:
                    raise Interrupted
        spent = budget.spent
    return spent


def _outcome(written: Written) -> str:
    parts = [f"{n} {finish}" for finish, n in sorted(written.finishes.items())]
    if written.failed:
        parts.append(f"{written.failed} without a reply ({written.why_failed}): asked again next")
    return ", ".join(parts) or "none"


def make_control_cases(step: RankingStep) -> Mapping[str, Any]:
    """Write the arguments of every control case; what the manifest says of the retrieval."""
    bench, retriever = step.bench, None
    if bench.proxy.passages is not None:
        from judgebench.ranking.proxy.passages import PassageRetriever

        step.progress.say(f"passages: {len(bench.corpus.documents):,} documents are searched")
        folder = step.folder.path / "proxy" / "passages"
        retriever = PassageRetriever(bench.proxy.passages, bench.corpus, folder)
    made: dict[str, list[Argument]] = {case: [] for case in bench.proxy.controls}
    for entry in bench.tasks:
        seed = bench.config.seed
        for argument in control_arguments(entry.task, bench.proxy.controls, seed, retriever):
            made[argument.system].append(argument)
    for case, arguments in made.items():
        write_arguments_file(arguments_path(step.folder.path, case), arguments)
    return retriever.describe() if retriever else {}


def all_arguments(bench: RankBench, entry: RankedEntry, run: Path) -> BySystem:
    """Every argument on one task that has a text (control cases may be blank), by system and item:
    gold first, then models, then control cases."""
    task = entry.task
    found = {GOLD: {i.item_id: Argument(task.name, i.item_id, GOLD, i.argument)
                    for i in task.instances if i.argument.strip()}}  # fmt: skip
    argued = {i.item_id for i in entry.argued}  # others may be left from a larger sample
    sources: list[Argument] = list(entry.given)
    for name in [*(g.name for g in entry.generators), *bench.proxy.controls]:
        path = arguments_path(run, name)
        if path.is_file():
            sources += [a for _, a in read_arguments(path) if a.item_id in argued]
    return found | last_arguments(sources, task.name)


def _taught_by(bench: RankBench, arguments: BySystem) -> dict[str, dict[str, str]]:
    """What an LLM-trained evaluator may learn from, by system and item: neither experts nor control
    cases."""
    return {
        system: {item: argument.text for item, argument in by_item.items()}
        for system, by_item in arguments.items()
        if system not in (GOLD, *bench.proxy.controls)
    }


# --- evaluators ----------------------------------------------------------------------------------


def _evaluate(step: RankingStep, entry: RankedEntry, arguments: BySystem) -> None:
    """Train what is not trained, then write the verdicts that are not written.

    Raises Interrupted where the user stops it; epochs and verdicts done are kept.
    """
    from judgebench.ranking.proxy.evaluator import ProxyEvaluator
    from judgebench.ranking.proxy.training import train

    seed, models = step.bench.config.seed, _taught_by(step.bench, arguments)
    wanted = [(k, d) for k in entry.evaluators.kinds for d in range(entry.evaluators.draws)]
    for n, (kind, draw) in enumerate(wanted, start=1):
        plan = EvaluatorPlan(entry.task, kind, entry.evaluators, seed, models, draw)
        where = evaluator_folder(step.folder.path, plan.name)
        step.progress.say(f"{plan.name}: evaluator {n} of {len(wanted)} of {entry.task.name}")
        train(plan, where, step.progress, step.stop)
        _decide(step, ProxyEvaluator.load(where), entry, arguments)


def _decide(
    step: RankingStep, evaluator: ProxyEvaluator, entry: RankedEntry, arguments: BySystem
) -> None:
    """Write one verdict per argument; those of another signature or text are made anew."""
    path, signature = step.folder.verdict_path(evaluator.name), evaluator.signature
    try:
        verdicts = list(step.folder.verdicts(evaluator.name))
    except SetupError as error:
        step.progress.say(f"{error}; the file is made anew")
        path.unlink()
        verdicts = []
    done = {(v.item_id, v.content_hash) for v in verdicts if v.signature == signature}

    def is_done(system: str, i: TaskInstance) -> bool:
        hashed = evaluator.content_hash(i, arguments[system][i.item_id].text)
        return (argument_id(entry.task.name, i.item_id, system), hashed) in done

    ranked = entry.task.ranked
    wanted = {s: [i for i in ranked if i.item_id in texts] for s, texts in arguments.items()}
    todo = {s: [i for i in instances if not is_done(s, i)] for s, instances in wanted.items()}
    total = sum(map(len, wanted.values()))
    title = f"{evaluator.name}: deciding"
    step.progress.start(title, total, total - sum(map(len, todo.values())))
    with VerdictWriter(path) as writer:
        for system, instances in todo.items():
            texts = [arguments[system][i.item_id].text for i in instances]
            for verdict in evaluator.judge(entry.task, system, instances, texts):
                writer.write(verdict)
                step.progress.advance(title)
            if step.stop.wanted:
                raise Interrupted


# --- what is kept to rank again offline ----------------------------------------------------------


def _keep(bench: RankBench, run: Path, retrieval: Mapping[str, Any]) -> None:
    """Write ranking.json, and beside it the arguments on ranked instances that no file holds."""
    tasks, given = [], list[Argument]()
    for entry in bench.tasks:
        arguments = all_arguments(bench, entry, run)
        made = {*(g.name for g in entry.generators), *bench.proxy.controls}
        given += [
            by_item[i.item_id]
            for system, by_item in arguments.items()
            if system not in made
            for i in entry.task.ranked
            if i.item_id in by_item
        ]
        tasks.append(_kept_task(bench, entry, arguments))
    kept = KeptRanking(
        judgebench=judgebench.__version__,
        name=bench.config.name,
        seed=bench.config.seed,
        controls=bench.proxy.controls,
        families=bench.proxy.families,
        generators={g.name: g.backend for g in bench.proxy.generators},
        retrieval=dict(retrieval),
        tasks=tuple(tasks),
    )
    write_ranking(run, kept, given)


def _kept_task(bench: RankBench, entry: RankedEntry, arguments: BySystem) -> KeptTask:
    """`learnt_from` are the systems some of whose arguments an LLM-trained evaluator may read."""
    task = entry.task
    taught = {i.item_id for i in task.of("train")}
    shared = ("name", "title", "metric", "labels", "left_out", "notes", "files")
    return KeptTask(
        **{field: getattr(task, field) for field in shared},
        kinds=entry.evaluators.kinds,
        draws=entry.evaluators.draws,
        drawn=entry.evaluators.kinds,
        judged=entry.entry.judged,
        generators=tuple(g.name for g in entry.generators),
        learnt_from=tuple(
            s for s, texts in _taught_by(bench, arguments).items() if taught & texts.keys()
        ),
        instances=tuple(map(KeptInstance.model_validate, task.ranked)),
    )
