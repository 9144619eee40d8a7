"""The tuning wing: judges that learn from human labels, and what that is worth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgebench.features import Learning, Section, Wing

if TYPE_CHECKING:
    import typer
    import yaml
    from pydantic import BaseModel

    from judgebench.runner.bench import Bench
    from judgebench.runner.extension import LearntEntry, LearntJudge
    from judgebench.store.folder import RunFolder


def _settings() -> type[BaseModel]:
    from judgebench.tuning.config import TuningConfig

    return TuningConfig


def _entry(value: Any, file: Path, node: yaml.Node | None) -> LearntEntry:
    from judgebench.tuning.config import learn_entry
    from judgebench.tuning.tuned import tuned_entry

    return (tuned_entry if "tuned" in value else learn_entry)(value, file, node)


def _open(bench: Bench, folder: RunFolder) -> Sequence[LearntJudge]:
    from judgebench.tuning.judges import open_judges

    return open_judges(bench, folder)


def _commands(app: typer.Typer) -> None:
    from judgebench.tuning import commands

    app.add_typer(commands.app, name="tune")


WING = Wing(
    name="tuning",
    section=Section("tuning", _settings),
    learning=Learning(("learn", "tuned"), _entry, _open),
    commands=_commands,
)
