"""The three steps of a ranking run: arguments and control cases, judges, evaluators.

Each goes on where an earlier run of the same folder stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import judgebench
from judgebench.errors import BudgetSpent, SetupError
from judgebench.files import disk_errors, to_json
from judgebench.models import open_backend
from judgebench.models.contract import wind_down
from judgebench.models.hosts import hosts_of
from judgebench.progress import Progress
from judgebench.ranking.human import given_ranks, keep_ranks
from judgebench.ranking.proxy.arguments import (
    Argument,
    ArgumentWriter,
    arguments_path,
    costs_of,
    last_arguments,
    read_arguments,
)
from judgebench.ranking.proxy.examples import EvaluatorPlan, control_arguments
from judgebench.ranking.proxy.task import GOLD, GeneratorConfig
from judgebench.ranking.proxy.task_file import split_rows
from judgebench.ranking.rank_bench import RankBench, RankedEntry, load_rank_bench
from judgebench.ranking.ranking_folder import (
    PROXY,
    BySystem,
    KeptInstance,
    KeptRanking,
    KeptTask,
    evaluator_folder,
    files_of,
    read_tasks,
    write_arguments_file,
    write_ranking,
    write_text,
)
from judgebench.records import Dataset
from judgebench.runs import run_bench
from judgebench.runs.bench import default_run_folder
from judgebench.runs.folder import RunFolder
from judgebench.runs.judging import Bundles, Work, judge_answers
from judgebench.runs.load import load_bench
from judgebench.runs.run_bench import take_out
from judgebench.runs.stop import Budget, Interrupted, Stop, ctrl_c
from judgebench.runs.verdict_log import check_lines
from judgebench.studies.answers import indexed
from judgebench.writer import WritingTerms


def rank_all(
    bench: RankBench, folder: RunFolder, progress: Progress, budget: float | None = None
) -> None:
    """Make all that a ranking needs: arguments, verdicts, evaluators and the ranks of people.

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


def rank_file(path: Path, run: Path | None, progress: Progress, budget: float | None) -> Path:
    """Do the same with a bench.yaml, in the folder `run` or that which the file names, and return
    the folder."""
    bench = load_rank_bench(path)
    folder = RunFolder(run or default_run_folder(bench.config))
    rank_all(bench, folder, progress, budget)
    return folder.path


def ranking_in_words(path: Path) -> str:
    """Check a ranking and say what it ranks. Raises SetupError."""
    bench = load_rank_bench(path)
    given_ranks(bench)
    ranked = ", ".join(f"{e.task.name} {len(e.task.ranked)}" for e in bench.tasks)
    return f"a ranking of arguments on {len(bench.tasks)} tasks (instances ranked: {ranked})"


@dataclass(frozen=True)
class RankingStep(Work):
    """Work that a Ctrl-C ends."""

    stop: Stop


@contextmanager
def _step(
    folder: RunFolder, progress: Progress, what: str = "the answers in flight"
) -> Iterator[RankingStep]:
    """Hold the folder for a step, and say what of its files is damaged.

    Raises Interrupted at its end where the user stopped it.
    """
    step = RankingStep(folder, progress, Budget(None), Stop())
    with folder.locked(), ctrl_c(step.stop, progress.say, what=what):
        with suppress(SetupError):  # of a damaged run.json, which the judges' run tells of
            found = [p for p in folder.damage() if p.file.startswith(f"{folder.path / PROXY}")]
            folder.reopen(PROXY)
            for problem in found:
                said = f"{problem}; what it lacks is made again"
                progress.say(said)
                folder.note_changes({problem.file.removeprefix(f"{folder.path}/"): f"{said}."})
        yield step
        if step.stop.wanted:
            raise Interrupted


def write_arguments_of_all(
    bench: RankBench, folder: RunFolder, progress: Progress, budget: float | None = None
) -> float:
    """Have models write what they have not written and make the control cases.

    Returns the US dollars that all arguments of the folder cost. Raises Interrupted (a
    KeyboardInterrupt), BudgetSpent or an error of a backend; what was written is kept.
    """
    with _step(folder, progress) as step:
        for entry in bench.tasks:
            path = folder.path / "proxy" / f"split-{entry.task.name}.json"
            write_text(path, to_json(split_rows(entry.task), indent=1) + "\n")
        generators = bench.proxy.generators
        costs = {g.name: costs_of(arguments_path(folder.path, g.name)) for g in generators}
        spent = sum(map(sum, costs.values()))
        for generator in (g for g in generators if any(g in e.generators for e in bench.tasks)):
            left = Budget(budget, spent, max(costs[generator.name], default=0.0))
            _write_all(bench, step, generator, left)
            spent = left.spent
        _keep(bench, folder.path, make_control_cases(bench, step))
    return spent


def judge_all(
    bench: RankBench,
    folder: RunFolder,
    progress: Progress | None = None,
    budget: float | None = None,
) -> None:
    """Put every argument on a ranked instance to the judges, as any run does. `budget` is for the
    verdicts alone. Raises what `run_bench.run` raises."""
    judged_tasks = (task for task in read_tasks(folder.path) if task.judged)
    answers = [answer for task in judged_tasks for answer in task.answers().values()]
    with closing(load_bench(bench.file, arguments=Dataset(answers, ()))) as judged:
        run_bench.run(judged, folder, budget=budget, progress=progress)


def evaluate_all(bench: RankBench, folder: RunFolder, progress: Progress) -> None:
    """Train every evaluator and have it decide with every argument.

    Raises Interrupted (a KeyboardInterrupt); epochs and verdicts that are done are kept.
    """
    in_hand = "the batch in training or the decisions in hand; epochs that are done are kept"
    with _step(folder, progress, what=in_hand) as step:
        for entry, task in zip(bench.tasks, read_tasks(folder.path), strict=True):
            _evaluate(bench, step, entry, task)


# --- arguments -----------------------------------------------------------------------------------


def _write_all(
    bench: RankBench, step: RankingStep, generator: GeneratorConfig, budget: Budget
) -> None:
    """Have a generator write on all of its tasks."""
    path = arguments_path(step.folder.path, generator.name)
    with closing(open_backend(generator.backend, generator.settings)) as backend:
        step.stop.then(partial(wind_down, backend))
        writer = ArgumentWriter(generator, backend, path, bench.config.seed)
        for entry in (entry for entry in bench.tasks if generator in entry.generators):
            task, name = entry.task.name, generator.name
            price = f"proxy.generators.{name}.settings.price"
            terms = WritingTerms(f"{task}: {name} writes", step.progress, step.stop, budget, price)
            with disk_errors(step.folder.path):
                written = writer.write(entry.task, entry.argued, terms)
            ends = [f"{n} {finish}" for finish, n in sorted(written.finishes.items())]
            if n := written.failed:
                ends.append(f"{n} without a reply ({written.why_failed}): asked again next")
            if written.asked:
                step.progress.say(f"{task}: arguments of {name}: {', '.join(ends) or 'none'}")
            if step.stop.wanted:
                raise Interrupted


def make_control_cases(bench: RankBench, step: RankingStep) -> Mapping[str, Any]:
    """Write the arguments of every control case; what the manifest says of the retrieval."""
    retriever, run = None, step.folder.path
    if bench.proxy.passages is not None:
        from judgebench.ranking.proxy.passages import PassageRetriever

        step.progress.say(f"passages: {len(bench.corpus.documents):,} documents are searched")
        retriever = PassageRetriever(bench.proxy.passages, bench.corpus, run / "proxy" / "passages")
    cases, seed = bench.proxy.controls, bench.config.seed
    made = [a for e in bench.tasks for a in control_arguments(e.task, cases, seed, retriever)]
    for case in cases:
        write_arguments_file(arguments_path(run, case), (a for a in made if a.system == case))
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
        sources += [a for a in read_arguments(path) if a.item_id in argued]
    return found | last_arguments(sources, task.name)


def _taught_by(bench: RankBench, arguments: BySystem) -> dict[str, dict[str, str]]:
    """The texts that an LLM-trained evaluator may learn from, by system and item: neither those of
    experts nor control cases."""
    return {
        system: {item: argument.text for item, argument in by_item.items()}
        for system, by_item in arguments.items()
        if system not in (GOLD, *bench.proxy.controls)
    }


# --- evaluators ----------------------------------------------------------------------------------


def _evaluate(bench: RankBench, step: RankingStep, entry: RankedEntry, kept: KeptTask) -> None:
    """Train what is not trained, then write the verdicts that are not written; the arguments of one
    system are decided together.

    Raises Interrupted where the user stops it; epochs and verdicts done are kept.
    """
    from judgebench.ranking.proxy.evaluator import ProxyEvaluator
    from judgebench.ranking.proxy.training import train

    config, asked = entry.evaluators, kept.answers(document=False)
    models = _taught_by(bench, all_arguments(bench, entry, step.folder.path))
    answers = indexed([asked[at] for at in sorted(asked, key=itemgetter(1, 0))])
    plans = [
        EvaluatorPlan(entry.task, kind, config, bench.config.seed, models, draw)
        for kind in config.kinds
        for draw in range(config.draws)
    ]
    for n, plan in enumerate(plans, start=1):
        where = evaluator_folder(step.folder.path, plan.name)
        step.progress.say(f"{plan.name}: evaluator {n} of {len(plans)} of {entry.task.name}")
        train(plan, where, step.progress, step.stop)
        path = step.folder.verdict_path(plan.name)
        if path.is_file() and (damaged := check_lines(path).damaged):
            take_out(path, damaged, step.folder, step.progress)
        evaluator = ProxyEvaluator.load(where, entry.task)
        judge_answers(evaluator, Bundles(evaluator, answers), step)
        if step.stop.wanted:
            raise Interrupted


# --- what is kept to rank again offline ----------------------------------------------------------


def _keep(bench: RankBench, run: Path, retrieval: Mapping[str, Any]) -> None:
    """Write ranking.json, and beside it the arguments on ranked instances that no file holds."""
    tasks, given = [], list[Argument]()
    made = {*(g.name for g in bench.proxy.generators), *bench.proxy.controls}
    shared = ("name", "title", "metric", "labels", "left_out", "notes", "files")
    for entry in bench.tasks:
        task, arguments = entry.task, all_arguments(bench, entry, run)
        given += [
            by_item[i.item_id]
            for system, by_item in arguments.items()
            if system not in made
            for i in task.ranked
            if i.item_id in by_item
        ]
        trained_on = {i.item_id for i in task.of("train")}
        taught_by = _taught_by(bench, arguments).items()
        kept = KeptTask(
            **{field: getattr(task, field) for field in shared},
            kinds=entry.evaluators.kinds,
            draws=entry.evaluators.draws,
            drawn=entry.evaluators.kinds,
            judged=entry.entry.judged,
            generators=tuple(g.name for g in entry.generators),
            learnt_from=tuple(s for s, texts in taught_by if trained_on & texts.keys()),
            instances=tuple(map(KeptInstance.model_validate, task.ranked)),
        )
        tasks.append(kept)
    ranking = KeptRanking(
        judgebench=judgebench.__version__,
        name=bench.config.name,
        seed=bench.config.seed,
        controls=bench.proxy.controls,
        families=bench.proxy.families,
        generators={g.name: g.backend for g in bench.proxy.generators},
        retrieval=dict(retrieval),
        tasks=tuple(tasks),
    )
    write_ranking(run, ranking, given)
