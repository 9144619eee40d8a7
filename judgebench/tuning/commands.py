"""`judgebench tune`: judges that learn from human labels, and what that is worth."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

from judgebench.cli.commands import Commands
from judgebench.cli.options import (
    BenchPath,
    Budget,
    DataFolder,
    DryRun,
    Limit,
    LocalOnly,
    RunOption,
)
from judgebench.cli.show import AsJson, Output, Quiet, Verbose


class _Tune(TyperGroup):
    """`judgebench tune FILE` is short for `judgebench tune bench FILE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            args = ["bench", *args]
        return list(super().parse_args(ctx, args))


app = Commands(
    "Make a better judge of human labels, and learn what it is worth on answers it never saw.\n\n"
    "`judgebench tune FILE` is short for `judgebench tune bench FILE`."
)
app.info.cls = _Tune


@app.command(epilog="Example: judgebench tune bench.yaml")
def bench(
    bench: BenchPath,
    run: RunOption = None,
    limit: Limit = None,
    budget: Budget = None,
    dry_run: DryRun = False,
    data_folder: DataFolder = None,
    local_only: LocalOnly = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run a benchmark whose judges learn, and examine what they learnt.

    Beside the verdicts of `judgebench run`: what they would seem to be worth without folds, on a
    system that nothing was learnt of, and with fewer labels. Safe to interrupt; rerun to resume.
    """
    from judgebench.cli.benchmark import Asked, benchmark
    from judgebench.tuning.judges import Examining

    output = Output(verbose, quiet, as_json)
    asked = Asked(bench, run, limit, budget, data_folder, dry_run, output, local_only)
    benchmark(asked, Examining())
