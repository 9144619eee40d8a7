"""A whole run: inputs and manifest, judges in their lanes, and what follows from their verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from judgebench.backends import kind_of
from judgebench.data import is_kept, keep_data
from judgebench.errors import DiskFailed, Problem, RunLocked, SetupError
from judgebench.judges.judge import Judge
from judgebench.judges.llm import LLMJudge
from judgebench.progress import NoProgress, OneAtATime, Progress, backend_warnings_to
from judgebench.runner.bench import Bench
from judgebench.runner.budget import Budget
from judgebench.runner.derive import derive
from judgebench.runner.forecast import budget_of
from judgebench.runner.judging import Work, judge_answers
from judgebench.runner.lanes import run_lanes
from judgebench.runner.ledger import Ledger, rows_of_shard
from judgebench.runner.manifest import manifest_of, now
from judgebench.runner.stop import Interrupted, Stop, ctrl_c
from judgebench.store.folder import RunFolder, Shard
from judgebench.store.verdict_file import disk_errors, judges_with_parts, merge_parts
from judgebench.study.answers import IndexedAnswers, indexed

Engine = Literal["threads", "ray"]


@dataclass(frozen=True)
class Sharing:
    """How several processes share the work of a run.

    With `shard` only that part of the answers is judged, beside other processes that judge the
    other parts; the last of them to end adds what follows from all (controls, juries). The engine
    `ray` spreads the answers over `workers` of a Ray cluster (`ray_engine`).
    """

    shard: Shard | None = None
    engine: Engine = "threads"
    workers: int | None = None

    def check(self, bench: Bench, budget: float | None) -> None:
        """Raises SetupError for what does not go together."""
        problems, on_ray = [], self.engine == "ray"
        if budget is not None and (self.shard or on_ray):
            message = "cannot be kept by several processes that spend at once: leave it out"
            problems.append(Problem(message, field="budget"))
        if on_ray and self.shard:
            problems.append(Problem("is Ray's own business with the engine ray", field="shard"))
        if on_ray and bench.others:
            names = ", ".join(judge.name for judge in bench.others)
            problems.append(Problem("cannot be sent to a cluster", field="judges", found=names))
        if on_ray and bench.variants:
            message = "does not ask judges in another way, as stress tests do"
            problems.append(Problem(message, field="engine", found="ray"))
        if not on_ray and self.workers is not None:
            problems.append(Problem("is for the engine ray alone", field="workers"))
        if problems:
            raise SetupError(problems)


ALONE = Sharing()


def run(
    bench: Bench,
    folder: RunFolder,
    *,
    budget: float | None = None,
    progress: Progress | None = None,
    sharing: Sharing = ALONE,
) -> None:
    """Bring every judge's verdicts up to date with the benchmark.

    Raises Interrupted (a KeyboardInterrupt), BudgetSpent or an error of a backend; whatever was
    answered by then is written and is not asked again. Raises DiskFailed where it cannot be.
    """
    sharing.check(bench, budget)
    shard = sharing.shard
    shown = OneAtATime(progress or NoProgress())
    with folder.locked(shard), backend_warnings_to(shown):
        if shard is None:
            _merge_parts(folder)
        manifest = _begin(bench, folder, shown)
        stop = Stop()
        work = Work(folder, shown, budget_of(bench, folder, budget), stop, shard)
        answers = indexed(bench.dataset.answers)
        with _ending(manifest, work):
            with ctrl_c(stop, shown.say), _cut_off(work):
                run_lanes(_lanes(bench, answers, work, sharing), stop, shown)
            if shard is None:
                derive(bench, answers, work, manifest)
    if shard:
        _finish_shards(bench, folder, answers, shown)


@contextmanager
def _ending(manifest: dict[str, Any], work: Work) -> Iterator[None]:
    """Writes how a run ended into its manifest."""
    state = "stopped"
    try:
        yield
        state = "running" if work.shard else "finished"
    finally:
        manifest["state"] = state
        manifest["ended"] = now()
        # Where the disk is full, the error under way says so.
        with suppress(*([DiskFailed] if state == "stopped" else [])):
            work.folder.write_manifest(manifest)


def _begin(bench: Bench, folder: RunFolder, progress: Progress) -> dict[str, Any]:
    """The inputs and the manifest, written."""
    extension, dataset = bench.extension, bench.dataset
    folder.write_rubric(bench.rubric)
    kept = is_kept(folder.path, dataset)
    if not kept:
        folder.write_data(dataset.answers, dataset.labels)
        with disk_errors(folder.path):
            keep_data(folder.path, dataset)
    if extension is None and folder.has_beside:
        progress.say("the altered answers in this folder are put aside; make them again to go on")
    lines = (extension.lines, extension.rejected) if extension else ((), ())
    folder.write_beside(*lines)
    manifest = manifest_of(bench, folder, kept=kept)
    folder.write_manifest(manifest)
    return manifest


def _merge_parts(folder: RunFolder) -> None:
    """Bring home what shards and workers wrote that are no more."""
    for name in judges_with_parts(folder.path):
        merge_parts(folder.path, name)


@contextmanager
def _cut_off(work: Work) -> Iterator[None]:
    """Closes the files under writing after a second Ctrl-C: what goes on then cannot write."""
    try:
        yield
    except Interrupted as stopped:
        if stopped.at_once:
            work.writers.close()
        raise


def _lanes(
    bench: Bench, answers: IndexedAnswers, work: Work, sharing: Sharing
) -> Mapping[str, Callable[[], None]]:
    """A lane for each remote judge, and one for all engines inside this process."""
    lanes: dict[str, Callable[[], None]] = {}
    if work.shard is None:
        lanes["control judges"] = partial(_controls, bench, answers, work)
    if sharing.engine == "ray":
        lanes["ray"] = partial(_judge_on_ray, bench, answers, work, sharing.workers)
        return lanes
    lanes.update({j.name: partial(_judge_from_python, j, answers, work) for j in bench.others})
    local = [judge for judge in bench.judges if not _is_remote(judge)]
    for judge in bench.judges:
        if _is_remote(judge):
            lanes[judge.name] = partial(_judge_and_variants, bench, [judge], answers, work)
    if local:
        names = ", ".join(judge.name for judge in local)
        lanes[names] = partial(_judge_and_variants, bench, local, answers, work)
    return lanes


def _judge_from_python(judge: Judge, answers: IndexedAnswers, work: Work) -> None:
    judge_answers(judge, answers, work)
    judge.close()


def _judge_on_ray(bench: Bench, answers: IndexedAnswers, work: Work, workers: int | None) -> None:
    from judgebench.runner.ray_engine import judge_on_ray

    for judge in bench.judges:
        judge_on_ray(judge, answers, work, workers)
        _judge_content_free(bench, judge, work)


def _judge_content_free(bench: Bench, judge: LLMJudge, work: Work) -> None:
    """A few texts that say nothing, where a calibration needs what the judge makes of them."""
    for free in bench.content_free:
        if free.of == judge.name:
            judge_answers(free.judge, indexed(free.answers), work)


def _is_remote(judge: LLMJudge) -> bool:
    return kind_of(judge.config.backend).remote


def _controls(bench: Bench, answers: IndexedAnswers, work: Work) -> None:
    quiet = Work(work.folder, NoProgress(), Budget(None), work.stop, None, work.writers)
    for control in bench.controls:
        judge_answers(control, answers, quiet)


def _judge_and_variants(
    bench: Bench, judges: list[LLMJudge], answers: IndexedAnswers, work: Work
) -> None:
    for judge in judges:
        judge_answers(judge, answers, work)
        for variant in bench.variants:
            if variant.of == judge.name:
                judge_answers(variant.judge, indexed(variant.answers), work)
        _judge_content_free(bench, judge, work)
        judge.close()


def _finish_shards(
    bench: Bench, folder: RunFolder, answers: IndexedAnswers, progress: Progress
) -> None:
    """What the last shard to end does for all of them; the others leave it to that one."""
    try:
        with folder.locked():
            _merge_parts(folder)
            left = {j.name: _untouched(j, answers, folder) for j in bench.judges}
            if any(left.values()):
                told = ", ".join(f"{name} {n:,}" for name, n in left.items() if n)
                progress.say(f"answers that other shards have still to judge: {told}")
                return
            manifest = manifest_of(bench, folder)
            work = Work(folder, progress, Budget(None), Stop())
            with _ending(manifest, work):
                _controls(bench, answers, work)
                derive(bench, answers, work, manifest)
    except RunLocked:
        progress.say("other shards are still at work")


def _untouched(judge: LLMJudge, answers: IndexedAnswers, folder: RunFolder) -> int:
    ledger = Ledger(answers, judge.signature)
    ledger.note_files(folder.verdict_files(judge.name))
    return ledger.untouched(rows_of_shard(len(answers)))
