"""The annotate wing: human labels, collected blind and balanced by a small web app."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from judgebench.runs.wing import FileKind, Section, Wing

if TYPE_CHECKING:
    import typer
    from pydantic import BaseModel


def _settings() -> type[BaseModel]:
    from judgebench.annotation.config import AnnotateConfig

    return AnnotateConfig


def _commands(app: typer.Typer) -> None:
    from judgebench.annotation import commands

    app.add_typer(commands.app, name="annotate")


def _check(path: Path, rubric: str) -> str:
    from judgebench.annotation.config import load_setup
    from judgebench.annotation.init import named_screens, planned

    setup = load_setup(path)
    _, built = named_screens(setup)
    planned(setup, built)
    config, n = setup.config, len(built)
    return (
        f"an annotation study ({config.task}) of {n:,} items, {config.per_item} of "
        f"{len(config.annotators)} annotators for each"
    )


def _labels(path: Path) -> list[dict[str, str]]:
    from judgebench.annotation.export import label_rows
    from judgebench.errors import Problem, SetupError

    rows = label_rows(path)
    if not rows:
        raise SetupError(Problem("holds no label yet", str(path)))
    if not rows[0].keys().isdisjoint(("rank", "decision")):
        message = "is no study of labels: `judgebench annotate export` writes what it holds"
        raise SetupError(Problem(message, str(path)))
    return rows


WING = Wing(
    name="annotate",
    section=Section("annotate", _settings),
    commands=_commands,
    tables={".sqlite": _labels},
    kinds=(FileKind("annotation study", _check, keys=("annotators", "per_item")),),
)
