"""A model that writes texts for a command: how it is opened, paid for and interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from judgebench.cli.consent import confirm_keys
from judgebench.cli.options import INTERRUPTED
from judgebench.cli.show import ONE_SCREEN

if TYPE_CHECKING:
    from judgebench.judges.config import JudgeConfig
    from judgebench.models.contract import Backend
    from judgebench.writer import WritingTerms


def the_writer(by: str, replies: Path, local_only: bool) -> JudgeConfig:
    """The model of a judge's YAML file, or a backend such as `llamacpp:smollm2`. Before the first
    of the `replies` is asked for, says which keys of this machine somebody else's file sends.

    Raises SetupError, also where it would contact another machine and must not, and typer.Abort.
    """
    from judgebench.judges.config import JudgeConfig
    from judgebench.models import kind_of
    from judgebench.models.hosts import check_hosts, hosts_of
    from judgebench.yaml_file import load_model

    if of_file := by.endswith((".yaml", ".yml")):
        model = load_model(Path(by), JudgeConfig)
    else:
        kind_of(by)
        model = JudgeConfig(name="writer", backend=by)
    if local_only:
        check_hosts(hosts_of(model.backend, model.settings))
    if of_file and not replies.exists():
        confirm_keys(Path(by), [model])
    return model


@contextmanager
def writing(
    model: JudgeConfig, replies: Path, budget: float | None
) -> Iterator[tuple[Backend, WritingTerms]]:
    """The open model, and terms with progress, Ctrl-C and a budget that counts the `replies` that
    are kept already; a work that was interrupted ends the command."""
    from judgebench.models import open_backend
    from judgebench.models.contract import wind_down
    from judgebench.progress import ProgressDisplay
    from judgebench.runs.stop import Budget, Interrupted, Stop, ctrl_c
    from judgebench.writer import WritingTerms, kept_replies

    paid, stop = [reply.cost or 0.0 for reply in kept_replies(replies).values()], Stop()
    limited = Budget(budget, sum(paid), max(paid, default=0.0))
    try:
        with (
            closing(open_backend(model.backend, model.settings)) as backend,
            ProgressDisplay(ONE_SCREEN.console()) as display,
            ctrl_c(stop, display.say),
        ):
            stop.then(partial(wind_down, backend))
            yield backend, WritingTerms("", display, stop, limited, "settings.price")
    except Interrupted:
        typer.echo(f"Stopped. Replies so far are kept in {replies}; rerun to resume.", err=True)
        raise typer.Exit(INTERRUPTED) from None
