"""The tuning wing: judges that learn from human labels, and what that is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgebench.runs.wing import Learning, Section, Wing

if TYPE_CHECKING:
    import typer
    import yaml
    from pydantic import BaseModel

    from judgebench.results.shown import Shown
    from judgebench.runs.bench import Bench, LearntEntry, LearntJudge
    from judgebench.runs.folder import RunFolder
    from judgebench.studies.study import Study
    from judgebench.tuning.reading import Learnt


def _settings() -> type[BaseModel]:
    from judgebench.tuning.config import TuningConfig

    return TuningConfig


def _entry(value: Any, file: Path, node: yaml.Node | None) -> LearntEntry:
    from judgebench.tuning.config import learn_entry
    from judgebench.tuning.tuned import tuned_entry

    return (tuned_entry if "tuned" in value else learn_entry)(value, file, node)


def _check(bench: Bench) -> None:
    from judgebench.tuning.judges import check_judges

    check_judges(bench)


def _open(bench: Bench, folder: RunFolder) -> Sequence[LearntJudge]:
    from judgebench.tuning.judges import open_judges

    return open_judges(bench, folder)


def _read(folder: RunFolder, study: Study) -> Sequence[Learnt] | None:
    from judgebench.tuning.reading import read_tuning

    return read_tuning(folder, study)


def _measure(study: Study, found: Mapping[str, Shown]) -> Shown | None:
    from judgebench.tuning.measure import measure_tuning

    return measure_tuning(study)


def _commands(app: typer.Typer) -> None:
    from judgebench.tuning import commands

    app.add_typer(commands.app, name="tune")


WING = Wing(
    name="tuning",
    section=Section("tuning", _settings),
    read=_read,
    measure=_measure,
    learning=Learning(("learn", "tuned"), _entry, _check, _open),
    commands=_commands,
)
