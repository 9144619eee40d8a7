"""A whole run: inputs and manifest, judges in their lanes, and what follows from their verdicts."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

import judgebench
from judgebench.data.findings import REPEATED
from judgebench.errors import (
    BudgetSpent,
    DiskFailed,
    JudgebenchError,
    JudgesStopped,
    Problem,
    SetupError,
    raise_any,
)
from judgebench.files import disk_errors
from judgebench.judges import derived
from judgebench.judges.config import CalibrationConfig, JudgeConfig, JuryConfig
from judgebench.judges.control import ControlJudge
from judgebench.judges.derived import Judged
from judgebench.judges.judge import Judge
from judgebench.judges.llm import LLMJudge
from judgebench.models import kind_of
from judgebench.models.batch import Batched
from judgebench.models.contract import Backend
from judgebench.progress import SILENT, OneAtATime, Progress, backend_warnings_to
from judgebench.records import Answer, Verdict, content_hash
from judgebench.rubric import Rubric
from judgebench.runs.bench import Bench, default_run_folder
from judgebench.runs.folder import RunFolder
from judgebench.runs.forecast import budget_of
from judgebench.runs.judging import Bundles, Work, judge_answers, tasks_of, write_controls
from judgebench.runs.load import Gathered
from judgebench.runs.stop import PATIENCE_S, Interrupted, Stop, ctrl_c, run_lanes
from judgebench.runs.verdict_log import (
    FiledVerdicts,
    VerdictWriter,
    damaged_lines,
    merge_all_parts,
    set_aside,
)
from judgebench.runs.wing import learnings
from judgebench.studies.answers import IndexedAnswers, indexed, keys_of

Engine = Literal["threads", "ray"]
Entries = dict[str, Any]  # what the manifest says of each judge, by name


@dataclass(frozen=True)
class Parallelism:
    """Threads of this process, or the `workers` of a Ray cluster (`ray_engine`)."""

    engine: Engine = "threads"
    workers: int | None = None

    def check(self, bench: Bench, budget: float | None) -> None:
        """Raises SetupError for what does not go together."""
        on_ray, others = self.engine == "ray", ", ".join(judge.name for judge in bench.others)
        knowing = any(judge.config.knowledge for judge in bench.judges)
        checks = (
            (
                on_ray and budget is not None,
                "budget",
                "cannot be kept by several processes that spend at once: leave it out",
                "",
            ),
            (on_ray and others, "judges", "cannot be sent to a cluster", others),
            (
                on_ray and bench.variants,
                "engine",
                "does not ask judges in another way, as stress tests do",
                "ray",
            ),
            (on_ray and knowing, "engine", "does not serve judges with `knowledge`", "ray"),
            (not on_ray and self.workers is not None, "workers", "is for the engine ray alone", ""),
        )
        raise_any([Problem(why, field=key, found=it) for is_so, key, why, it in checks if is_so])


THREADS = Parallelism()


def run(
    bench: Bench,
    folder: RunFolder,
    *,
    budget: float | None = None,
    progress: Progress = SILENT,
    parallelism: Parallelism = THREADS,
) -> None:
    """Bring every judge's verdicts up to date with the benchmark.

    Raises Interrupted (a KeyboardInterrupt), BudgetSpent or an error of a backend; whatever was
    answered by then is written and is not asked again. Where other judges are done, the error is
    JudgesStopped, and the run folder can be scored without those that are not. Raises DiskFailed
    where it cannot be written.
    """
    parallelism.check(bench, budget)
    bench = with_learnt(bench, folder)
    shown = OneAtATime(progress)
    with folder.locked(), backend_warnings_to(shown):
        answers = indexed(bench.dataset.answers)
        sound = note_damage(bench, folder, shown)
        merge_all_parts(folder.path)
        set_lines_aside(bench, folder, shown, sound)
        manifest = _begin(bench, folder, shown)
        for line in left_behind(bench, folder):
            shown.say(line)
        stop = Stop()
        work = Work(folder, shown, budget_of(bench, folder, budget), stop)
        with _ending(manifest, work):
            _recorded(bench, answers, work)
            try:
                with ctrl_c(stop, shown.say), _cut_off(work):
                    lanes = _lanes(bench, answers, work, parallelism)
                    run_lanes(lanes, stop, shown, partial(_drain, bench))
                    if bench.learnt:
                        learning = partial(_learn, bench, answers, work)
                        lane = {"judges that learn": learning}
                        with ctrl_c(stop, shown.say, PATIENCE_S):
                            run_lanes(lane, stop, shown, partial(_drain, bench))
            except (BudgetSpent, DiskFailed):
                raise
            except JudgebenchError as error:
                # What is wrong with a Python object is an error of the program that made it.
                broken = any(work.outcomes.get(judge.name) for judge in bench.others)
                if broken or not (left_out := _leave_out(bench, work, manifest)):
                    raise
                _derive(bench, answers, work, manifest)
                raise JudgesStopped(left_out) from error
            _derive(bench, answers, work, manifest)


def place_of(bench: Bench, folder: Path | None = None) -> tuple[RunFolder, str]:
    """The run folder (default: runs/NAME). Where that holds more answers than the first ones that
    were asked for, it stays as it is: then one beside it, and a sentence that says so."""
    found, own = RunFolder(folder or default_run_folder(bench.config)), len(bench.answers)
    noted = found.manifest().get("answers", {}) if bench.limited else {}
    there = noted.get("n", 0) - len(found.ids_beside() if noted else ())
    if there <= own:
        return found, ""
    beside = found.path.with_name(f"{found.path.resolve().name}-{own}-answers")
    return RunFolder(beside), (
        f"{found.path} holds a run on {there:,} answers and was left as it is: this one, on "
        f"{own:,}, is in {beside}"
    )


@contextmanager
def _ending(manifest: dict[str, Any], work: Work) -> Iterator[None]:
    """Writes how a run ended into its manifest."""
    state = "stopped"
    try:
        yield
        state = "finished"
    finally:
        manifest["ended"] = now()
        manifest["hosts"] = work.folder.manifest().get("hosts", [])
        # Where the disk is full, the error under way says so.
        with suppress(*([DiskFailed] if state == "stopped" else [])):
            work.folder.write_manifest(manifest, state)


def _begin(bench: Bench, folder: RunFolder, progress: Progress) -> dict[str, Any]:
    """Write the inputs and the manifest, which is returned."""
    extension, dataset = bench.extension, bench.dataset
    folder.write_rubric(bench.rubric)
    folder.write_data(dataset.answers, dataset.labels)
    if extension is None and folder.has_beside:
        progress.say("the altered answers in this folder are put aside; make them again to go on")
    lines = (extension.lines, extension.rejected) if extension else ((), ())
    folder.write_beside(*lines)
    manifest = manifest_of(bench, folder)
    folder.write_manifest(manifest, "running")
    return manifest


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
    bench: Bench, answers: IndexedAnswers, work: Work, parallelism: Parallelism
) -> Mapping[str, Callable[[], None]]:
    """A lane for each remote judge, and one for all engines inside this process."""
    lanes = {"baselines": partial(_controls, bench, answers, work)}
    if parallelism.engine == "ray":
        return {**lanes, "ray": partial(_judge_on_ray, bench, answers, work, parallelism.workers)}
    remote = [judge for judge in bench.judges if kind_of(judge.config.backend).remote]
    local = [judge for judge in bench.judges if judge not in remote]
    groups: list[Sequence[Judge]] = [*([judge] for judge in (*bench.others, *remote)), local]
    return lanes | {
        ", ".join(judge.name for judge in judges): partial(
            _judge_in_turn, bench, judges, answers, work
        )
        for judges in filter(None, groups)
    }


def _drain(bench: Bench) -> None:
    for judge in bench.judges:  # their variants are asked by the same engines
        judge.drain()
    for learnt in bench.learnt:
        learnt.drain()


def with_learnt(bench: Bench, folder: RunFolder) -> Bench:
    """With the judges that wings make of it. Raises SetupError."""
    makers = [learning.open for learning in learnings() if bench.learning]
    makers += [bench.extension.learnt] if bench.extension else []
    return replace(bench, learnt=tuple(judge for make in makers for judge in make(bench, folder)))


def _learn(bench: Bench, answers: IndexedAnswers, work: Work) -> None:
    """Have judges learn from what the others have said, and judge."""
    for judge in bench.learnt:
        judge.begin(work)
    _judge_in_turn(bench, bench.learnt, answers, work)


def _judge_in_turn(
    bench: Bench, judges: Sequence[Judge], answers: IndexedAnswers, work: Work
) -> None:
    errors = []
    for judge in judges:
        try:
            judge_answers(judge, Bundles(judge, answers, parents=bench.parents), work)
            _judge_beside(bench, judge, answers, work)
            work.outcomes[judge.name] = ""
        except JudgebenchError as error:  # the next engine may do better
            work.outcomes[judge.name] = "; ".join(str(error).splitlines())
            errors.append(error)
        judge.close()
    if errors:
        raise errors[0]


def _leave_out(bench: Bench, work: Work, manifest: dict[str, Any]) -> dict[str, str]:
    """Leave unfinished judges out of the manifest and return the reasons; empty, and none left out,
    where none is done and there are no recorded verdicts."""
    names = [judge.name for judge in (*bench.judges, *bench.others, *bench.learnt)]
    left_out = {n: work.outcomes.get(n, "not reached") for n in names if work.outcomes.get(n, "-")}
    if len(left_out) == len(names) and not bench.recorded:
        return {}
    entries: Entries = manifest["judges"]
    manifest["judges"] = {
        name: about
        for name, about in entries.items()
        if name not in left_out and about.get("of") not in left_out
    }
    manifest["notes"] += [
        f"{name} is left out: it stopped before it had judged every answer ({reason})."
        for name, reason in left_out.items()
    ]
    return left_out


def _judge_on_ray(bench: Bench, answers: IndexedAnswers, work: Work, workers: int | None) -> None:
    from judgebench.runs.ray_engine import judge_on_ray

    for judge in bench.judges:
        judge_on_ray(judge, Bundles(judge, answers, parents=bench.parents), work, workers)
        _judge_beside(bench, judge, answers, work)
        work.outcomes[judge.name] = ""


def _judge_beside(bench: Bench, judge: Judge, answers: IndexedAnswers, work: Work) -> None:
    """The same judge asked in another way."""
    for found in bench.variants:
        if found.of == judge.name:
            asked = Bundles(found.judge, indexed(found.answers), answers, bench.parents)
            judge_answers(found.judge, asked, work)


def _controls(bench: Bench, answers: IndexedAnswers, work: Work) -> None:
    for control in bench.controls:
        write_controls(control, answers, work)


def _recorded(bench: Bench, answers: IndexedAnswers, work: Work) -> None:
    """Write the verdicts that need no model, anew each time."""
    for judge in bench.recorded:
        _write(work.folder, judge.name, judge.judge(tasks_of(answers)))


def _derive(bench: Bench, answers: IndexedAnswers, work: Work, manifest: dict[str, Any]) -> None:
    """Write the verdicts of juries and calibrations, and add both to the manifest.

    They follow from the judges' verdicts without asking for any answer again; their files are made
    anew each time. One that needs a judge that was left out is left out too.
    """
    entries: Entries = manifest["judges"]
    derived_judges: tuple[JuryConfig | CalibrationConfig, ...] = (
        *bench.juries,
        *bench.calibrations,
    )
    for config in derived_judges:
        kind = "jury" if isinstance(config, JuryConfig) else "calibration"
        needed = config.jury if isinstance(config, JuryConfig) else (config.calibrate,)
        if lacking := [judge for judge in needed if judge not in entries]:
            manifest["notes"].append(f"{config.name} is left out: it needs {', '.join(lacking)}.")
            continue
        rubric, own = _judged_by(needed, bench.rubric, entries), answers
        part: dict[str, object] = {}
        if rubric is not bench.rubric:
            own = indexed([answer for answer in answers if answer.kind in rubric.kinds])
            part = {"metrics": [metric.id for metric in rubric.metrics]}
        signatures = {name: entries[name]["signature"] for name in needed}
        members = [
            FiledVerdicts(work.folder.verdict_files(name), s, own, rubric.metrics)
            for name, s in signatures.items()
        ]
        asked = np.all([member.was_asked(own) for member in members], axis=0)
        if not asked.all():  # what a member was never asked says nothing of all of them together
            own = indexed([own[row] for row in np.flatnonzero(asked).tolist()])
        if isinstance(config, JuryConfig):
            about = derived.jury_about(config, rubric, signatures)
            votes = [
                {m.id: member.label_indices(m, own) for m in rubric.metrics} for member in members
            ]
            judge = partial(derived.jury_verdicts, config, rubric, own.all, votes)
        else:
            (signature,) = signatures.values()
            about = derived.calibration_about(config, rubric, signature, own.all)
            judged = _judged(own, work.folder, config.calibrate, signature)
            judge = partial(derived.calibrated_verdicts, config, rubric, judged)
        about |= part
        signature = content_hash(about)
        entries[config.name] = {"kind": kind, "signature": signature, "about": about}
        _write(work.folder, config.name, judge(signature))


def _judged_by(names: Iterable[str], rubric: Rubric, entries: Entries) -> Rubric:
    """The metrics that all of the judges judge, or else any, of a rubric with metrics of several
    kinds of rows."""
    if len(rubric.kinds) == 1:
        return rubric
    every = [metric.id for metric in rubric.metrics]
    judged = [set(entries[name]["about"].get("metrics", every)) for name in names]
    return rubric.only(sorted(set.intersection(*judged) or set.union(*judged)))


def _write(folder: RunFolder, name: str, verdicts: Iterable[Verdict]) -> None:
    path = folder.verdict_path(name)
    with disk_errors(path):
        path.unlink(missing_ok=True)
    with VerdictWriter(path) as writer:
        for verdict in verdicts:
            writer.write(verdict)


def _judged(answers: IndexedAnswers, folder: RunFolder, name: str, signature: str) -> Judged:
    ours = (v for v in folder.verdicts(name) if v.signature == signature)
    rows = ((answers.row_of(v.item_id, v.content_hash), v) for v in ours)
    return Judged(answers.all, (found for found in rows if found[0] >= 0))


_BATCHES = "batches-{}.json"


def batched(
    bench: Bench,
    folder: RunFolder,
    budget: float | None = None,
    parallelism: Parallelism = THREADS,
) -> Bench:
    """The benchmark with remote judges that send batches, which `folder` notes. Judges in this
    process are asked as ever.

    Raises SetupError where the judge's provider has no batch endpoint or the judge has knowledge,
    where a budget is to be kept without a price (everything is submitted before the first cost is
    known), and where a cluster shares the work.
    """
    gather, made = Gathered(str(bench.file)), dict[int, Batched]()
    if parallelism.engine == "ray":
        gather.tell("batch", Problem("cannot be shared by several processes"))

    def wrapped(config: JudgeConfig, backend: Backend) -> Backend:
        path = folder.path / _BATCHES.format(config.name)
        return made.setdefault(id(backend), Batched(backend, config.settings, path))

    def asked(judge: LLMJudge) -> LLMJudge:
        if not kind_of(judge.config.backend).remote:
            return judge
        if budget is not None and judge.config.settings.price is None:
            message = "is needed to keep a budget: a batch is submitted before it costs anything"
            raise SetupError(Problem(message, field="settings.price"))
        return judge.through(partial(wrapped, judge.config))

    judges = [gather(f"judges.{judge.name}", asked, judge) for judge in bench.judges]
    gather.raise_any()
    return replace(
        bench,
        judges=tuple(judge for judge in judges if judge),
        variants=tuple(replace(v, judge=asked(v.judge)) for v in bench.variants),
    )


def left_behind(bench: Bench, folder: RunFolder) -> Iterator[str]:
    """Messages on batches that were submitted and that this run does not collect."""
    for judge in bench.judges:
        path = folder.path / _BATCHES.format(judge.name)
        if path.is_file() and not judge.describe()["runtime"].get("batch"):
            yield (
                f"{judge.name}: batches were submitted and not collected ({path.name}); they are "
                "paid for, so run as a batch again to collect them"
            )


_quoted = json.JSONEncoder(ensure_ascii=False).encode
MOST_NOTES = 20  # warnings about the data that a report repeats


def manifest_of(bench: Bench, folder: RunFolder) -> dict[str, Any]:
    """The content of run.json at the start; juries and calibrations are added once their judges are
    done. `kept`: the answers are those that the folder's manifest tells of."""
    entries = {judge.name: _entry_of("judge", judge) for judge in (*bench.judges, *bench.others)}
    entries |= {judge.name: _entry_of("judge", judge) for judge in bench.recorded}
    entries |= {control.name: _entry_of("control", control) for control in bench.controls}
    for judge in bench.learnt:
        entries[judge.name] = _entry_of(judge.kind, judge, **judge.more)
    for variant in bench.variants:
        more = {"of": variant.of, "recipe": variant.recipe, "asked": variant.kind}
        entries[variant.judge.name] = _entry_of(
            "variant", variant.judge, **more, repeat=variant.repeat
        )
    before = folder.manifest()
    learnt_notes = [note for judge in bench.learnt for note in judge.notes]
    return {
        "name": bench.config.name,
        "judgebench": judgebench.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "started": before.get("started", now()),
        "seed": bench.config.seed,
        "rubric": {"name": bench.rubric.name, "hash": bench.rubric.content_hash},
        "answers": _answers(bench.dataset.answers),
        "labels": bench.dataset.n_labels,
        "sources": dict(bench.dataset.sources),
        "settings": bench.config.model_dump(mode="json"),
        "judges": entries,
        "notes": [*bench.config.notes, *_data_notes(bench), *learnt_notes],
        **({"changed": before["changed"]} if before.get("changed") else {}),
        **({bench.extension.wing: bench.extension.about} if bench.extension else {}),
        "hosts": before.get("hosts", []),  # that were contacted, in any run of this folder
        "state": "running",
    }


def _entry_of(kind: str, judge: Judge | ControlJudge, **more: object) -> dict[str, Any]:
    return {"kind": kind, **more, "signature": judge.signature, "about": judge.describe()}


def _data_notes(bench: Bench) -> Iterator[str]:
    # A study counts its repeated answers itself: it may hold fewer.
    warnings = [warning for warning in bench.dataset.warnings if warning.kind != REPEATED]
    for warning in warnings[:MOST_NOTES]:
        yield f"In the data: {replace(warning, file=Path(warning.file).name)}."
    if len(warnings) > MOST_NOTES:
        yield f"In the data: {len(warnings) - MOST_NOTES} more warnings; see `judgebench check`."


def _answers(answers: Sequence[Answer]) -> dict[str, Any]:
    """The number of answers, and `content_hash` of the list of their ids and hashes, without
    making that list."""
    digest = hashlib.sha256(b"[")
    between = ""
    for key in keys_of(answers):
        item_id, hashed = key
        pair = f'{between}[{_quoted(item_id)},"{hashed}"]'
        digest.update(pair.encode("utf-8", "surrogatepass"))
        between = ","
    digest.update(b"]")
    return {"n": len(answers), "hash": digest.hexdigest()[:16]}


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def note_damage(bench: Bench, folder: RunFolder, progress: Progress) -> Collection[str]:
    """Say what is damaged, which stays in the manifest, and note that the run goes on. The names of
    the files that are as the run left them."""
    try:
        found = folder.damage()
    except SetupError as error:
        found = list(error.problems)
        (folder.path / "run.json").unlink()
    before = folder.reopen()
    asked = {f"verdicts-{judge.name}.jsonl" for judge in _asked(bench)}
    changed = dict[str, str]()
    for problem in found:
        path = folder.path / problem.file.removeprefix(f"{folder.path}/")
        does, did = "it is made anew", "It was made anew."
        if path.name in asked:
            does, did = "what it lacks is asked for again", "What it lacked was asked for again."
            if path.is_file() and path.stat().st_size:
                did = "The verdicts in it count as they stood."
        progress.say(f"{problem}; {does}")
        changed[path.name] = (
            f"{path.name} was not as the run had left it ({problem.message}). {did}"
        )
    folder.note_changes(changed)
    if "run.json" in changed:  # what it says of the others cannot be trusted
        return ()
    return set(before.get("files", {})) - changed.keys()


def set_lines_aside(
    bench: Bench, folder: RunFolder, progress: Progress, sound: Collection[str]
) -> None:
    """Take damaged lines out of the files of the judges that are asked, and remove those of control
    judges, which are soon made anew; unless the file is known to be `sound`. What was found stays
    in the manifest. Only for who holds the folder alone."""
    for control in bench.controls:
        path = folder.verdict_path(control.name)
        if path.name not in sound:
            with disk_errors(path):
                path.unlink(missing_ok=True)
    for judge in _asked(bench):
        for path in folder.verdict_files(judge.name):
            if path.name not in sound and (numbers := damaged_lines(path)):
                take_out(path, numbers, folder, progress)


def take_out(path: Path, numbers: Collection[int], folder: RunFolder, progress: Progress) -> None:
    """Move the damaged lines of these numbers from a file of verdicts into `FILE.damaged`, say so
    and note it in the manifest. Raises DiskFailed."""
    set_aside(path, numbers)
    n = f"{len(numbers):,} damaged {'line is' if len(numbers) == 1 else 'lines are'}"
    said = f"{path.name}: {n} now in {path.name}.damaged; what it judged is asked again"
    progress.say(said)
    folder.note_changes({path.name: f"{said}."}, beside=True)


def _asked(bench: Bench) -> Iterator[Judge]:
    yield from (*bench.judges, *bench.others, *bench.learnt)
    yield from (variant.judge for variant in bench.variants)
