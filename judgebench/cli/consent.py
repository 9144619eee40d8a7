"""What is said before the keys of this machine go where somebody else's file sends them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import typer

from judgebench.errors import SetupError
from judgebench.shipped import shipped_folder

if TYPE_CHECKING:
    from judgebench.models.settings import BackendSettings
    from judgebench.runs.bench import Bench


@runtime_checkable
class Model(Protocol):
    """A judge or a writer as a file names it."""

    @property
    def backend(self) -> str: ...

    @property
    def settings(self) -> BackendSettings: ...


def confirm_keys(file: Path, models: Iterable[Model]) -> None:
    """Say on standard error which variable a file outside the current folder sends to which host,
    and ask whether to go on where somebody can answer.

    Raises typer.Abort where the answer is no.
    """
    home = file.resolve()
    if home.is_relative_to(Path.cwd()) or home.is_relative_to(shipped_folder("examples")):
        return
    sent = dict.fromkeys(_sent(models))
    for line in sent:
        typer.echo(f"{file} lies outside the current folder and sends {line}.", err=True)
    if sent and sys.stdin and sys.stdin.isatty() and sys.stderr.isatty():
        typer.confirm("Go on?", abort=True, err=True)


def confirm_keys_of(files: Iterable[Path], data_folder: Path | None) -> None:
    """The same of every bench.yaml among the files."""
    from judgebench.runs.bench import load_bench

    for file in files:
        with suppress(SetupError):  # another kind of file, or one whose errors are reported later
            bench = load_bench(file, data_folder=data_folder)
            bench.close()
            confirm_keys(file, models_of(bench))


def models_of(bench: Bench) -> list[Model]:
    """The models that judges and scorers of a benchmark ask."""
    hows = [getattr(entry, "how", None) for entry in bench.learning]
    found: list[Model] = [judge.config for judge in bench.judges]
    return found + [how for how in hows if isinstance(how, Model)]


def _sent(models: Iterable[Model]) -> Iterator[str]:
    from judgebench.models.hosts import hosts_of

    for model in models:
        if key := model.settings.api_key_env:
            hosts = hosts_of(model.backend, model.settings) or [f"what {model.backend} asks"]
            yield f"the value of ${key} to {hosts[0]}"
