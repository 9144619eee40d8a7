"""A ranking run's arguments: written by models, made as control cases, read back for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judgebench.files import to_line, write_atomically
from judgebench.progress import Progress
from judgebench.ranking.proxy.arguments import (
    Argument,
    arguments_path,
    plain_argument,
    read_arguments,
    texts_by_system,
)
from judgebench.ranking.proxy.config import GeneratorConfig
from judgebench.ranking.proxy.control_cases import control_arguments
from judgebench.ranking.proxy.generate import ArgumentWriter, costs_of
from judgebench.ranking.proxy.task import GOLD
from judgebench.ranking.run_proxy.load import RankBench, RankedEntry
from judgebench.runner.budget import Budget
from judgebench.runner.stop import Interrupted, Stop
from judgebench.store.verdict_file import disk_errors
from judgebench.writer import WritingTerms, Written, opened


def generate_all(
    bench: RankBench, run: Path, progress: Progress, stop: Stop, limit: float | None
) -> float:
    """Have every generator write what it has not; the US dollars that all arguments cost."""
    costs = {g.name: costs_of(arguments_path(run, g.name)) for g in bench.proxy.generators}
    spent = sum(map(sum, costs.values()))
    for generator in bench.proxy.generators:
        entries = [e for e in bench.tasks if generator in e.generators]
        if not entries:
            continue
        budget = Budget(limit, spent, max(costs[generator.name], default=0.0))
        with opened(generator.backend, generator.settings) as backend:
            path = arguments_path(run, generator.name)
            writer = ArgumentWriter(generator, backend, path, bench.config.seed)
            for entry in entries:
                name = f"{entry.task.name}: {generator.name} writes"
                price = f"proxy.generators.{generator.name}.settings.price"
                terms = WritingTerms(name, progress, stop, budget, price)
                with disk_errors(run):
                    written = writer.write(entry.task, entry.argued, terms)
                _say(progress, entry, generator, written)
                if stop.wanted:
                    raise Interrupted
        spent = budget.spent
    return spent


def _say(
    progress: Progress, entry: RankedEntry, generator: GeneratorConfig, written: Written
) -> None:
    if not written.asked:
        return
    parts = [f"{n} {finish}" for finish, n in sorted(written.finishes.items())]
    if written.failed:
        parts.append(f"{written.failed} without a reply ({written.why_failed}): asked again next")
    said = ", ".join(parts) or "none"
    progress.say(f"{entry.task.name}: arguments of {generator.name}: {said}")


def make_control_cases(bench: RankBench, run: Path, progress: Progress) -> Mapping[str, Any]:
    """Write the arguments of every control case; what the manifest says of the retrieval."""
    retriever = None
    if bench.proxy.passages is not None:
        from judgebench.ranking.proxy.passages import PassageRetriever

        progress.say(f"passages: {len(bench.corpus.documents):,} documents are searched")
        folder = run / "proxy" / "passages"
        retriever = PassageRetriever(bench.proxy.passages, bench.corpus, folder)
    made: dict[str, list[Argument]] = {case: [] for case in bench.proxy.controls}
    for entry in bench.tasks:
        for argument in control_arguments(
            entry.task, bench.proxy.controls, bench.config.seed, retriever
        ):
            made[argument.system].append(argument)
    for case, arguments in made.items():
        path = arguments_path(run, case)
        lines = "".join(to_line(plain_argument(a)) for a in arguments)
        with disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, lines.encode("utf-8"))
    return retriever.describe() if retriever else {}


def all_arguments(
    bench: RankBench, entry: RankedEntry, run: Path
) -> dict[str, dict[str, Argument]]:
    """Every argument on one task that has a text (control cases may be blank), by system and item:
    gold first, then models, then control cases."""
    task = entry.task
    found = {GOLD: {i.item_id: Argument(task.name, i.item_id, GOLD, i.argument)
                    for i in task.instances if i.argument.strip()}}  # fmt: skip
    files = [g.name for g in entry.generators]
    argued = {i.item_id for i in entry.argued}  # others may be left from a larger sample
    sources: list[Argument] = list(entry.given)
    for name in [*files, *bench.proxy.controls]:
        path = arguments_path(run, name)
        if path.is_file():
            sources += [a for _, a in read_arguments(path) if a.item_id in argued]
    texts = texts_by_system(sources, task.name)
    last = {(a.system, a.item_id): a for a in sources if a.task == task.name}
    for system in texts:
        found[system] = {item: last[system, item] for item in texts[system]}
    return found


def systems_trained_on(arguments: Mapping[str, object], controls: Sequence[str]) -> list[str]:
    """The systems that an LLM-trained evaluator learns from: neither experts nor control cases."""
    return [system for system in arguments if system != GOLD and system not in controls]
