"""Run a benchmark: ask what is not yet answered, keep every reply, and stop cleanly.

A verdict is on disk before the next is waited for. Resuming goes by key (item, content hash of
the answer, signature of the judge, repeat): what has an ending is never asked again.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import judgebench
from judgebench.bench import Bench
from judgebench.errors import BudgetSpent, Problem, SetupError
from judgebench.judges.config import JuryConfig
from judgebench.judges.contract import Judge, Task
from judgebench.judges.jury import jury_about, jury_verdicts
from judgebench.judges.llm import LLMJudge
from judgebench.records import Answer, Status, Verdict, content_hash
from judgebench.store import RunFolder, VerdictWriter

CHARACTERS_A_TOKEN = 4  # the usual rule of thumb for English; forecasts say "roughly"
MOST_NOTES = 20  # warnings about the data that a report repeats
_SAMPLE = 50  # answers rendered for a forecast

Latest = dict[str, Verdict]  # by item_id


class Watcher(Protocol):
    """Who looks on while a run goes: a progress display, a test."""

    def judge_started(self, name: str, total: int, done: int) -> None: ...

    def verdict(self, verdict: Verdict) -> None: ...

    def judge_ended(self, name: str) -> None: ...

    def told(self, message: str) -> None: ...


class Silence:
    """A Watcher that looks away."""

    def judge_started(self, name: str, total: int, done: int) -> None: ...

    def verdict(self, verdict: Verdict) -> None: ...

    def judge_ended(self, name: str) -> None: ...

    def told(self, message: str) -> None: ...


@dataclass(frozen=True)
class Forecast:
    """What a run would ask of one judge. Tokens are rough; cost in US dollars, None if unknown."""

    judge: str
    answers: int
    done: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None

    @property
    def left(self) -> int:
        return self.answers - self.done


@dataclass
class Purse:
    """What may still be spent, in US dollars. `budget` None means any sum.

    `asked` is written where tasks are drawn, which may be another thread, and `answered` where
    verdicts arrive; no number is written by both.
    """

    budget: float | None
    spent: float = 0.0
    dearest: float = 0.0  # the most that one verdict has cost, or is expected to
    asked: int = 0
    answered: int = 0

    def may_ask(self) -> bool:
        """Whether one more verdict fits, should it and all in flight be as dear as the dearest."""
        if self.budget is None:
            return True
        in_flight = self.asked - self.answered
        return self.spent + (in_flight + 1) * self.dearest <= self.budget

    def pay(self, verdict: Verdict) -> None:
        self.answered += 1
        self.spent += verdict.cost or 0.0
        self.dearest = max(self.dearest, verdict.cost or 0.0)


def forecast(bench: Bench, folder: RunFolder) -> list[Forecast]:
    """What is left to ask of each language model; calls nobody and writes nothing."""
    return [
        _forecast(judge, answers, _unfinished(judge, answers, folder))
        for judge, answers in _asked(bench)
    ]


def _asked(bench: Bench) -> Iterator[tuple[LLMJudge, Sequence[Answer]]]:
    """Every model and variant with the answers that it judges."""
    for judge in bench.judges:
        yield judge, bench.dataset.answers
    for variant in bench.variants:
        yield variant.judge, variant.answers


def _unfinished(judge: LLMJudge, answers: Sequence[Answer], folder: RunFolder) -> list[Answer]:
    latest = _latest(folder.verdicts(judge.name), judge.signature, answers)
    return [a for a in answers if not _ended(latest.get(a.item_id), judge.config.reasks)]


def run(
    bench: Bench, folder: RunFolder, *, budget: float | None = None, watcher: Watcher | None = None
) -> None:
    """Bring every judge's verdicts up to date with the benchmark.

    Raises BudgetSpent, KeyboardInterrupt or an error of a backend; whatever was answered by then
    is on disk and is not asked again.
    """
    watcher = watcher or Silence()
    with folder.locked():
        folder.write_inputs(bench.rubric, bench.dataset.answers, bench.dataset.labels)
        plan = bench.plan
        if plan is None and folder.has_attacks:
            watcher.told("the stress test in this folder is put aside; `judgebench stress` goes on")
        folder.write_attacks(plan.items if plan else (), plan.rejected if plan else ())
        manifest = _manifest(bench, folder)
        folder.write_manifest(manifest)
        purse = _purse(bench, folder, budget)
        state = "stopped"
        try:
            _judge_all(bench, folder, manifest, purse, watcher)
            state = "finished"
        finally:
            manifest["state"] = state
            manifest["ended"] = _now()
            folder.write_manifest(manifest)


def _judge_all(
    bench: Bench, folder: RunFolder, manifest: dict[str, Any], purse: Purse, watcher: Watcher
) -> None:
    answers = bench.dataset.answers
    latest: dict[str, Latest] = {}
    for control in bench.controls:
        latest[control.name] = _run_judge(control, answers, folder, Purse(None), Silence())
    for judge in bench.judges:
        reasks = judge.config.reasks
        latest[judge.name] = _run_judge(judge, answers, folder, purse, watcher, reasks)
        for variant in bench.variants:
            if variant.of == judge.name:
                _run_judge(variant.judge, variant.answers, folder, purse, watcher, reasks)
        judge.close()
    for jury in bench.juries:
        about = _jury_entry(jury, bench)
        manifest["judges"][jury.name] = about
        _write_jury(jury, bench, latest, folder, about["signature"])


def _run_judge(
    judge: Judge,
    answers: Sequence[Answer],
    folder: RunFolder,
    purse: Purse,
    watcher: Watcher,
    reasks: int = 0,
) -> Latest:
    """Every answer's latest verdict after asking for those that have none."""
    path = folder.verdict_path(judge.name)
    with VerdictWriter(path) as writer:
        if writer.torn_bytes:
            watcher.told(f"{path.name}: dropped a torn last line of {writer.torn_bytes} bytes")
        latest = _latest(folder.verdicts(judge.name), judge.signature, answers, watcher)
        first = [Task(a) for a in answers if _never_ended(latest.get(a.item_id))]
        done = sum(_ended(latest.get(a.item_id), reasks) for a in answers)
        watcher.judge_started(judge.name, len(answers), done)
        _ask(judge, first, writer, latest, purse, watcher)
        for _ in range(reasks):
            again = [
                Task(a, v)
                for a in answers
                if (v := latest.get(a.item_id))
                and v.status is Status.UNPARSED
                and v.attempt < reasks
            ]
            _ask(judge, again, writer, latest, purse, watcher)
        watcher.judge_ended(judge.name)
    return latest


def _ask(
    judge: Judge,
    tasks: Iterable[Task],
    writer: VerdictWriter,
    latest: Latest,
    purse: Purse,
    watcher: Watcher,
) -> None:
    withheld: list[Task] = []

    def affordable() -> Iterator[Task]:
        for task in tasks:
            if not purse.may_ask():
                withheld.append(task)
                return
            purse.asked += 1
            yield task

    verdicts = judge.judge(affordable())
    try:
        for verdict in verdicts:
            writer.write(verdict)
            latest[verdict.item_id] = verdict
            purse.pay(verdict)
            watcher.verdict(verdict)
            _check_price(verdict, purse)
    finally:
        close = getattr(verdicts, "close", None)
        if close is not None:
            close()
    if withheld:
        raise BudgetSpent(
            f"the budget of ${purse.budget:g} is used up: ${purse.spent:.4f} spent in this run "
            "folder; run again with a larger --budget to go on"
        )


def _check_price(verdict: Verdict, purse: Purse) -> None:
    if purse.budget is not None and verdict.cost is None and verdict.usage.calls:
        raise SetupError(
            Problem(
                "--budget needs to know what a call costs: state price in the judge's settings",
                field=f"judges.{verdict.judge}.settings.price",
            )
        )


def _latest(
    verdicts: Iterable[Verdict],
    signature: str,
    answers: Sequence[Answer],
    watcher: Watcher | None = None,
) -> Latest:
    """The last verdict of each answer as it stands, by this judge as it stands."""
    hash_of = {a.item_id: a.content_hash for a in answers}
    latest: Latest = {}
    other = 0
    for verdict in verdicts:
        known = hash_of.get(verdict.item_id) == verdict.content_hash
        if known and verdict.signature == signature:
            latest[verdict.item_id] = verdict
        else:
            other += 1
    if other and watcher:
        watcher.told(f"{other} verdicts of other settings, or on other answers, are kept unused")
    return latest


def _never_ended(verdict: Verdict | None) -> bool:
    """No reply ever came: not asked, or every try of an earlier run failed."""
    return verdict is None or verdict.status is Status.FAILED


def _ended(verdict: Verdict | None, reasks: int) -> bool:
    if verdict is None or verdict.status is Status.FAILED:
        return False
    return verdict.status is not Status.UNPARSED or verdict.attempt >= reasks


def _purse(bench: Bench, folder: RunFolder, budget: float | None) -> Purse:
    """What this run folder has cost before counts. Nothing is read where no budget is set."""
    if budget is None:
        return Purse(None)
    costs = [v.cost or 0.0 for judge, _ in _asked(bench) for v in folder.verdicts(judge.name)]
    expected = [(f.cost or 0.0) / f.left for f in forecast(bench, folder) if f.left]
    return Purse(budget, spent=sum(costs), dearest=max([0.0, *costs, *expected]))


def _write_jury(
    jury: JuryConfig,
    bench: Bench,
    latest: Mapping[str, Latest],
    folder: RunFolder,
    signature: str,
) -> None:
    """A jury's verdicts follow from its members', so its file is made anew."""
    path = folder.verdict_path(jury.name)
    path.unlink(missing_ok=True)
    members = {name: latest[name] for name in jury.jury}
    with VerdictWriter(path) as writer:
        for verdict in jury_verdicts(jury, bench.rubric, bench.dataset.answers, members, signature):
            writer.write(verdict)


def _jury_entry(jury: JuryConfig, bench: Bench) -> dict[str, Any]:
    signatures = {j.name: j.signature for j in (*bench.judges, *bench.controls)}
    about = jury_about(jury, bench.rubric, {name: signatures[name] for name in jury.jury})
    return {"kind": "jury", "signature": content_hash(about), "about": about}


def _manifest(bench: Bench, folder: RunFolder) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    kinds: Sequence[tuple[str, Sequence[Judge]]] = (
        ("judge", bench.judges),
        ("control", bench.controls),
    )
    for kind, judges in kinds:
        for judge in judges:
            entries[judge.name] = {
                "kind": kind,
                "signature": judge.signature,
                "about": judge.describe(),
            }
    for variant in bench.variants:
        entries[variant.judge.name] = {
            "kind": "variant",
            "of": variant.of,
            "recipe": variant.recipe,
            "asked": variant.kind,
            "repeat": variant.repeat,
            "signature": variant.judge.signature,
            "about": variant.judge.describe(),
        }
    return {
        "name": bench.config.name,
        "judgebench": judgebench.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "started": folder.manifest().get("started", _now()),
        "seed": bench.config.seed,
        "rubric": {"name": bench.rubric.name, "hash": bench.rubric.content_hash},
        "answers": {
            "n": len(bench.dataset.answers),
            "hash": content_hash([[a.item_id, a.content_hash] for a in bench.dataset.answers]),
        },
        "labels": len(bench.dataset.labels),
        "sources": dict(bench.dataset.sources),
        "settings": bench.config.model_dump(mode="json"),
        "judges": entries,
        "notes": [*bench.config.notes, *_data_notes(bench)],
        "stress": bench.plan.describe() if bench.plan else None,
        "state": "running",
    }


def _data_notes(bench: Bench) -> Iterator[str]:
    warnings = bench.dataset.warnings
    for warning in warnings[:MOST_NOTES]:
        yield f"In the data: {replace(warning, file=Path(warning.file).name)}."
    if len(warnings) > MOST_NOTES:
        yield f"In the data: {len(warnings) - MOST_NOTES} more warnings; see `judgebench check`."


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _forecast(judge: LLMJudge, answers: Sequence[Answer], left: Sequence[Answer]) -> Forecast:
    parts = judge.calls_an_answer
    sample = left[:: max(1, len(left) // _SAMPLE)]
    characters = [
        sum(len(m.content) for m in judge.request(Task(a), part).messages)
        for a in sample
        for part in range(parts)
    ]
    scale = len(left) / len(sample) if sample else 0.0
    prompt = round(scale * sum(characters) / CHARACTERS_A_TOKEN)
    completion = len(left) * judge.likely_reply_tokens
    price = judge.config.settings.price
    cost = None
    if price is not None:
        cost = (prompt * price.prompt + completion * price.completion) / 1e6
    return Forecast(
        judge.name, len(answers), len(answers) - len(left), len(left) * parts, prompt, completion,
        cost,
    )  # fmt: skip
