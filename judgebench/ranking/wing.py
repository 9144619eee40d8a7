"""The ranking wing: whose arguments help most to decide?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from judgebench.runs.wing import FileKind, Lines, Section, Wing

if TYPE_CHECKING:
    import typer
    from pydantic import BaseModel

    from judgebench.progress import Progress
    from judgebench.ranking.rank import RankedRun
    from judgebench.ranking.rankers import Rankings
    from judgebench.results.shown import Shown
    from judgebench.runs.folder import RunFolder
    from judgebench.studies.study import Study


def _settings() -> type[BaseModel]:
    from judgebench.ranking.proxy.task import ProxyConfig

    return ProxyConfig


def _read(folder: RunFolder, study: Study) -> RankedRun | None:
    from judgebench.ranking.rank import read_ranked_run

    return read_ranked_run(folder, study)


def _measure(study: Study, found: Mapping[str, Shown]) -> Rankings | None:
    from judgebench.ranking.rank import measure_rankings

    return measure_rankings(study)


def _commands(app: typer.Typer) -> None:
    from judgebench.ranking import commands

    app.add_typer(commands.app, name="rank")


def _run(bench: Path, folder: Path | None, progress: Progress, budget: float | None) -> Path:
    from judgebench.ranking.rank_bench import load_rank_bench
    from judgebench.ranking.steps import rank_all
    from judgebench.runs.bench import default_run_folder
    from judgebench.runs.folder import RunFolder

    loaded = load_rank_bench(bench)
    run = RunFolder(folder or default_run_folder(loaded.config))
    rank_all(loaded, run, progress, budget)
    return run.path


# --- judgebench check and judgebench list --------------------------------------------------------


def _check_bench(path: Path) -> str:
    from judgebench.ranking.human import given_ranks
    from judgebench.ranking.rank_bench import load_rank_bench

    bench = load_rank_bench(path)
    given_ranks(bench)
    ranked = ", ".join(f"{e.task.name} {len(e.task.ranked)}" for e in bench.tasks)
    return f"a ranking of arguments on {len(bench.tasks)} tasks (instances ranked: {ranked})"


def _check_task(path: Path, rubric: str) -> str:
    from judgebench.ranking.proxy.task import SPLITS
    from judgebench.ranking.proxy.task_file import load_task

    task = load_task(str(path))
    sizes = ", ".join(f"{split} {len(task.of(split))}" for split in SPLITS)
    return f"the task {task.name}: {', '.join(task.labels)}; {sizes}; {len(task.ranked)} ranked"


def _asks_for_arguments(path: Path) -> bool:
    """True where a prompt's front matter says what is to be written, and not how to reply."""
    from judgebench.prompt import front_begins

    return front_begins(path, "writes")


def _check_argument_prompt(path: Path, rubric: str) -> str:
    from judgebench.prompt import ARGUMENTS, load_prompt

    return f"a prompt that asks for {load_prompt(str(path), kind=ARGUMENTS).reply}"


def _tasks() -> Lines:
    from judgebench.ranking.proxy.task_file import KIND, TaskFile
    from judgebench.shipped import shipped_folder, shipped_names
    from judgebench.yaml_file import load_model

    names = shipped_names(KIND, ".yaml")
    files = [load_model(shipped_folder(KIND) / f"{name}.yaml", TaskFile) for name in names]
    return [(f.name, f"{f.title}; reads {', '.join(f.files.values())}") for f in files]


WING = Wing(
    name="ranking",
    section=Section(
        "proxy",
        _settings,
        lambda value: bool(value.get("proxy")),
        _check_bench,
        "ranks arguments: call `judgebench rank run`",
        _run,
    ),
    read=_read,
    measure=_measure,
    commands=_commands,
    kinds=(
        FileKind("task", _check_task, keys=("prompt",)),
        FileKind("argument prompt", _check_argument_prompt, fits=_asks_for_arguments),
    ),
    lists={"tasks": _tasks},
)
