"""A whole run: inputs and manifest, judges in their lanes, and what follows from their verdicts."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from judgebench.data.findings import REPEATED
from judgebench.errors import (
    BudgetSpent,
    DiskFailed,
    JudgebenchError,
    JudgesStopped,
    Problem,
    SetupError,
)
from judgebench.judges import recorded as derived
from judgebench.judges.config import CalibrationConfig, JudgeConfig, JuryConfig
from judgebench.judges.control import ControlJudge
from judgebench.judges.judge import Judge
from judgebench.judges.llm import LLMJudge
from judgebench.models import kind_of
from judgebench.models.batch import Batched
from judgebench.models.contract import Backend
from judgebench.progress import SILENT, Progress, backend_warnings_to
from judgebench.records import Answer, canonical_json, content_hash
from judgebench.results.blocks import UNDERSTOOD
from judgebench.rubric import Rubric
from judgebench.runs.bench import Bench, default_run_folder
from judgebench.runs.features import learnings
from judgebench.runs.folder import RunFolder
from judgebench.runs.forecast import budget_of
from judgebench.runs.judging import (
    PATIENCE_S,
    Budget,
    RequestGroups,
    Stop,
    Work,
    ctrl_c,
    judge_answers,
    run_lanes,
    tasks_of,
)
from judgebench.runs.load import Gathered
from judgebench.studies.answers import IndexedAnswers, indexed, keys_of
from judgebench.version import VERSION

Engine = Literal["threads", "ray"]
Entries = dict[str, Any]  # what the manifest says of each judge, by name


@dataclass(frozen=True)
class Parallelism:
    """Threads of this process, or the `workers` of a Ray cluster (`ray_engine`)."""

    engine: Engine = "threads"
    workers: int | None = None

    def check(self, bench: Bench) -> None:
        """Raises SetupError for what does not go together."""
        if self.workers is not None and self.engine != "ray":
            raise SetupError(Problem("is for the engine ray alone", field="workers"))
        if self.engine == "ray" and any(judge.config.knowledge for judge in bench.judges):
            raise SetupError(Problem("does not serve judges with `knowledge`", field="engine"))

    def judge(self, judge: Judge, bundles: RequestGroups, work: Work) -> None:
        """As `judge_answers`, on the cluster where one shares the work of language models."""
        if self.engine == "ray" and isinstance(judge, LLMJudge):
            from judgebench.runs.ray_engine import OnRay

            with closing(OnRay(judge, self.workers, len(bundles.rows))) as on_ray:
                judge_answers(on_ray, bundles, work)
        else:
            judge_answers(judge, bundles, work)


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
    parallelism.check(bench)
    bench = with_learnt(bench, folder)
    with folder.locked(), backend_warnings_to(progress):
        answers = indexed(bench.dataset.answers)
        sound = note_damage(bench, folder, progress)
        manifest = _begin(bench, folder, progress)
        for line in left_behind(bench, folder):
            progress.say(line)
        work = Work(folder, progress, Budget(None), Stop())
        if budget is not None:
            for judge in bench.asked:
                work.set_damaged_aside(folder.verdict_path(judge.name))
            work = replace(work, budget=budget_of(bench, folder, budget))
        with _ending(manifest, work):
            for recorded in bench.recorded:
                folder.write_verdicts(recorded.name, recorded.judge(tasks_of(answers)))
            stopped, left_out = None, dict[str, str]()
            try:
                lanes = _lanes(bench, answers, work, parallelism)
                lanes["baselines"] = partial(_write_controls, bench, sound, work)
                _run_lanes(bench, lanes, work)
                if bench.learnt:
                    learning = partial(_learn, bench, answers, work)
                    _run_lanes(bench, {"judges that learn": learning}, work, PATIENCE_S)
            except (BudgetSpent, DiskFailed):
                raise
            except JudgebenchError as error:
                # What is wrong with a Python object is an error of the program that made it.
                broken = any(work.outcomes.get(judge.name) for judge in bench.others)
                if broken or not (left_out := _leave_out(bench, work, manifest)):
                    raise
                stopped = error
            _derive(bench, answers, work, manifest)
            if stopped:
                raise JudgesStopped(left_out) from stopped


def choose_run_folder(bench: Bench, folder: Path | None = None) -> tuple[RunFolder, str]:
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
    """Writes how a run ended into its manifest. Where work in flight was cut off, that is left as
    it is after a kill: files may still grow."""
    state = "stopped"
    try:
        yield
        state = "finished"
    finally:
        noted = {"judges": manifest["judges"], "notes": manifest["notes"], "ended": now()}
        # Where the disk is full, the error under way says so.
        with suppress(*([DiskFailed] if state == "stopped" else [])):
            if not work.stop.is_cut:
                work.folder.write_manifest({**work.folder.manifest(), **noted}, state)


def _begin(bench: Bench, folder: RunFolder, progress: Progress) -> dict[str, Any]:
    """Write the inputs and the manifest, which is returned."""
    extension, dataset = bench.extension, bench.dataset
    folder.write_data(bench.rubric, dataset.answers, dataset.labels)
    if extension is None and folder.has_beside:
        progress.say("the altered answers in this folder are put aside; make them again to go on")
    folder.write_beside(extension.lines if extension else ())
    manifest = manifest_of(bench, folder)
    folder.write_manifest(manifest, "running")
    return manifest


def _run_lanes(
    bench: Bench, lanes: Mapping[str, Callable[[], None]], work: Work,
    patience_s: float | None = None,
) -> None:  # fmt: skip
    def drain() -> None:
        for judge in bench.judges:  # their variants are asked by the same engines
            judge.drain()
        for learnt in bench.learnt:
            learnt.drain()

    with ctrl_c(work.stop, work.progress.say, patience_s):
        run_lanes(lanes, work.stop, work.progress, drain)


def _lanes(
    bench: Bench, answers: IndexedAnswers, work: Work, parallelism: Parallelism
) -> dict[str, Callable[[], None]]:
    """A lane for each remote judge, and one for all engines inside this process or on a cluster."""
    alone, together = list[Judge](bench.others), list[Judge]()
    for judge in bench.judges:
        is_alone = kind_of(judge.config.backend).remote and parallelism.engine == "threads"
        (alone if is_alone else together).append(judge)
    groups = [*([judge] for judge in alone), *([together] if together else ())]
    return {
        ", ".join(judge.name for judge in judges): partial(
            _judge_in_turn, bench, judges, answers, work, parallelism
        )
        for judges in groups
    }


def with_learnt(bench: Bench, folder: RunFolder) -> Bench:
    """With the judges that features make of it. Raises SetupError."""
    makers = [learning.open for learning in learnings() if bench.learning]
    makers += [bench.extension.learnt] if bench.extension else []
    return replace(bench, learnt=tuple(judge for make in makers for judge in make(bench, folder)))


def _learn(bench: Bench, answers: IndexedAnswers, work: Work) -> None:
    """Have judges learn from what the others have said, and judge."""
    for judge in bench.learnt:
        judge.begin(work)
    _judge_in_turn(bench, bench.learnt, answers, work)


def _judge_in_turn(
    bench: Bench, judges: Sequence[Judge], answers: IndexedAnswers, work: Work,
    parallelism: Parallelism = THREADS,
) -> None:  # fmt: skip
    """Have judges judge, and those of them that are asked in another way."""
    errors = []
    for judge in judges:
        try:
            parallelism.judge(judge, RequestGroups(judge, answers, parents=bench.parents), work)
            for other in (other for other in bench.variants if other.of == judge.name):
                asked = RequestGroups(other.judge, indexed(other.answers), answers, bench.parents)
                parallelism.judge(other.judge, asked, work)
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


def _write_controls(bench: Bench, sound: Mapping[str, str], work: Work) -> None:
    """Write the verdicts of baselines, but for those that stand in a `sound` file already."""
    for control in bench.controls:
        if sound.get(control.name) != control.signature and not work.stop.wanted:
            work.folder.write_verdicts(control.name, control.verdicts())


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
        members = [work.folder.latest_verdicts(*key, own) for key in signatures.items()]
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
            given = {m.id: members[0].option_probabilities(m, own) for m in rubric.metrics}
            judge = partial(derived.calibrated_verdicts, config, rubric, own.all, given)
        about |= part
        signature = content_hash(about)
        entries[config.name] = {"kind": kind, "signature": signature, "about": about}
        work.folder.write_verdicts(config.name, judge(signature))


def _judged_by(names: Iterable[str], rubric: Rubric, entries: Entries) -> Rubric:
    """The metrics that all of the judges judge, or else any, of a rubric with metrics of several
    kinds of rows."""
    if len(rubric.kinds) == 1:
        return rubric
    every = [metric.id for metric in rubric.metrics]
    judged = [set(entries[name]["about"].get("metrics", every)) for name in names]
    return rubric.only(sorted(set.intersection(*judged) or set.union(*judged)))


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
    if parallelism.engine == "ray":
        raise SetupError(Problem("cannot be shared by several processes", field="batch"))
    gather, made = Gathered(str(bench.file)), dict[int, Batched]()

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


MOST_NOTES = 20  # warnings about the data that a report repeats


def manifest_of(bench: Bench, folder: RunFolder) -> dict[str, Any]:
    """The content of run.json at the start; juries and calibrations are added once their judges are
    done."""
    judges = (*bench.judges, *bench.others, *bench.recorded)
    entries = {judge.name: _entry_of("judge", judge) for judge in judges}
    entries |= {control.name: _entry_of("control", control) for control in bench.controls}
    entries |= {judge.name: _entry_of(judge.kind, judge, **judge.more) for judge in bench.learnt}
    for variant in bench.variants:
        more: Entries = {"of": variant.of, "recipe": variant.recipe, "asked": variant.kind}
        more |= {"asks": variant.asks} if variant.asks else {}
        entries[variant.judge.name] = _entry_of(
            "variant", variant.judge, **more, repeat=variant.repeat
        )
    before = folder.manifest()
    learnt_notes = [note for judge in bench.learnt for note in judge.notes]
    return {
        "name": bench.config.name,
        "judgebench": VERSION,
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
        **({bench.extension.feature: bench.extension.about} if bench.extension else {}),
        "hosts": before.get("hosts", []),  # that were contacted, in any run of this folder
        "state": "running",
    }


def _entry_of(kind: str, judge: Judge | ControlJudge, **more: object) -> dict[str, Any]:
    return {"kind": kind, **more, "signature": judge.signature, "about": judge.describe()}


def _data_notes(bench: Bench) -> Iterator[str]:
    yield from (f"{UNDERSTOOD}{sentence}" for sentence in bench.dataset.collected)
    # A study counts its repeated answers itself: it may hold fewer.
    warnings = [warning for warning in bench.dataset.warnings if warning.kind != REPEATED]
    for warning in warnings[:MOST_NOTES]:
        yield f"In the data: {replace(warning, file=Path(warning.file).name)}."
    if len(warnings) > MOST_NOTES:
        yield f"In the data: {len(warnings) - MOST_NOTES} more warnings; see `judgebench check`."


def _answers(answers: Sequence[Answer]) -> dict[str, Any]:
    """The number of answers, and a hash of their ids and content hashes."""
    digest = hashlib.sha256()
    for key in keys_of(answers):
        digest.update(canonical_json(key).encode("utf-8", "surrogatepass"))
    return {"n": len(answers), "hash": digest.hexdigest()[:16]}


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def note_damage(bench: Bench, folder: RunFolder, progress: Progress) -> Mapping[str, str]:
    """Say what is damaged, which stays in the manifest, and note that the run goes on. The
    signatures of the judges whose files are as the run left them, by name."""
    try:
        problems = folder.damage()
    except SetupError as error:
        problems = list(error.problems)
        (folder.path / "run.json").unlink()
    before, changed = folder.reopen(), set[str]()
    asked = {folder.verdict_path(judge.name) for judge in bench.asked}
    for problem in problems:
        path = Path(problem.file)
        does = "it is made anew"
        if path in asked:
            does = "its verdicts count as they stand, and what it lacks is asked for again"
        progress.say(f"{problem}; {does}")
        name = str(path.relative_to(folder.path))
        changed.add(name)
        message = f"{name} was not as the run had left it ({problem.message}): {does}."
        folder.note_change(name, message)
    if "run.json" in changed:  # what it says of the others cannot be trusted
        return {}
    sound = before.get("files", {}).keys() - changed
    entries: Entries = before.get("judges", {})
    return {
        name: entry["signature"]
        for name, entry in entries.items()
        if folder.verdict_path(name).name in sound
    }
