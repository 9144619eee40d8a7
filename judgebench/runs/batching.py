"""A run whose remote judges send batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from judgebench.errors import Problem, SetupError
from judgebench.judges.config import JudgeConfig
from judgebench.judges.llm import LLMJudge
from judgebench.models import kind_of
from judgebench.models.batch import Batched
from judgebench.models.contract import Backend
from judgebench.runs.bench import Bench, Gathered
from judgebench.runs.folder import RunFolder

if TYPE_CHECKING:
    from judgebench.runs.run_bench import Sharing

_NAME = "batches-{}.json"


def batched(
    bench: Bench, folder: RunFolder, budget: float | None = None, sharing: Sharing | None = None
) -> Bench:
    """The benchmark with remote judges that send batches, which `folder` notes. Judges in this
    process are asked as ever.

    Raises SetupError where the judge's provider has no batch endpoint or the judge has knowledge,
    where a budget is to be kept without a price (everything is submitted before the first cost is
    known), and where several processes share the work.
    """
    gather, made = Gathered(str(bench.file)), dict[int, Batched]()
    if sharing and (sharing.shard or sharing.engine == "ray"):
        gather.tell("batch", Problem("cannot be shared by several processes"))

    def wrapped(config: JudgeConfig, backend: Backend) -> Backend:
        path = folder.path / _NAME.format(config.name)
        return made.setdefault(id(backend), Batched(backend, config.settings, path))

    def asked(judge: LLMJudge) -> LLMJudge:
        if not kind_of(judge.config.backend).remote:
            return judge
        if budget is not None and judge.config.settings.price is None:
            message = "is needed to keep a budget: a batch is submitted before it costs anything"
            raise SetupError(Problem(message, field="settings.price"))
        return judge.through(partial(wrapped, judge.config))

    judges = [gather(f"judges.{judge.name}", asked, judge) for judge in bench.judges]
    gather.raise_any()
    return replace(
        bench,
        judges=tuple(judge for judge in judges if judge),
        variants=tuple(replace(v, judge=asked(v.judge)) for v in bench.variants),
        content_free=tuple(replace(f, judge=asked(f.judge)) for f in bench.content_free),
    )


def left_behind(bench: Bench, folder: RunFolder) -> Iterator[str]:
    """What is said of batches that were submitted, and that this run does not collect."""
    for judge in bench.judges:
        path = folder.path / _NAME.format(judge.name)
        if path.is_file() and not judge.describe()["runtime"].get("batch"):
            yield (
                f"{judge.name}: batches were submitted and not collected ({path.name}); they are "
                "paid for, so run as a batch again to collect them"
            )
