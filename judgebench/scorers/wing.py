"""The scorers wing: numbers for answers, what they say of the humans' labels, and judges that
follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgebench.runs.wing import FileKind, Learning, Lines, Section, Wing

if TYPE_CHECKING:
    import typer
    import yaml
    from pydantic import BaseModel

    from judgebench.results.shown import Shown
    from judgebench.runs.bench import Bench, BenchConfig, LearntEntry, LearntJudge
    from judgebench.runs.folder import RunFolder
    from judgebench.scorers.candidates import ScorersRead
    from judgebench.studies.study import Study


def _settings() -> type[BaseModel]:
    from judgebench.scorers.config import ScorersConfig

    return ScorersConfig


def _entry(value: Any, file: Path, node: yaml.Node | None) -> LearntEntry:
    from judgebench.scorers.config import fit_entry

    return fit_entry(value, file, node)


def _beside(config: BenchConfig, file: Path, node: yaml.Node | None) -> Sequence[LearntEntry]:
    from judgebench.scorers.config import scorer_entries

    return scorer_entries(config, file, node)


def _check(bench: Bench) -> None:
    from judgebench.scorers.judges import check_scorers

    check_scorers(bench)


def _open(bench: Bench, folder: RunFolder) -> Sequence[LearntJudge]:
    from judgebench.scorers.judges import open_scorers

    return open_scorers(bench, folder)


def _read(folder: RunFolder, study: Study) -> ScorersRead | None:
    from judgebench.scorers.candidates import read_scorers

    return read_scorers(folder, study)


def _measure(study: Study, found: Mapping[str, Shown]) -> Shown | None:
    from judgebench.scorers.measure import measure_scorers

    return measure_scorers(study)


def _commands(app: typer.Typer) -> None:
    from judgebench.scorers import commands

    epilog = "Example: judgebench score answers.csv --scorer rouge-l --scorer chrf --to scores.csv"
    app.command(epilog=epilog)(commands.score)
    epilog = "Example: judgebench answers questions.csv --backend llamacpp:smollm2 --to answers.csv"
    app.command(epilog=epilog)(commands.answers)
    epilog = "Example: judgebench consistency scores.csv --group question --system model"
    app.command(epilog=epilog)(commands.consistency)
    epilog = "Example: judgebench correlate scores.csv --against accuracy --flip '*perplexity'"
    app.command(epilog=epilog)(commands.correlate)
    app.add_typer(commands.openqa, name="openqa")


def _asks(path: Path) -> bool:
    from judgebench.prompt import front_begins

    return front_begins(path, "asks")


def _check_prompt(path: Path, rubric: str) -> str:
    from judgebench.prompt import QUESTIONS, load_prompt

    return f"a prompt that asks for a {load_prompt(str(path), kind=QUESTIONS).reply}"


def _scorers() -> Lines:
    from judgebench.scorers.config import ABOUT

    return list(ABOUT.items())


WING = Wing(
    name="scorers",
    section=Section("scorers", _settings),
    learning=Learning(("scorer",), _entry, _check, _open, _beside),
    read=_read,
    measure=_measure,
    commands=_commands,
    kinds=(FileKind("question prompt", _check_prompt, fits=_asks),),
    lists={"scorers": _scorers},
)
