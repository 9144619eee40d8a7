"""One judge's answers spread over a Ray cluster by Ray Data.

Every worker is an actor that holds the judge, with its engine, and writes a part file of its own
into the run folder, which all machines must see under the same path. Only numbers of rows travel.
A worker that dies is replaced by Ray, and its batch is given to another, which first reads what
the dead one wrote: no verdict is lost and none is asked for twice.
"""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from judgebench.errors import JudgebenchError, MissingExtra, RunError, SetupError
from judgebench.judges.config import JudgeConfig
from judgebench.judges.llm import LLMJudge
from judgebench.models import kind_of, open_backend
from judgebench.progress import SILENT
from judgebench.prompt import parse_prompt
from judgebench.records import Verdict
from judgebench.rubric import Rubric
from judgebench.runs.folder import RunFolder
from judgebench.runs.judging import Bundles, Ledger, Rows, Work, ask, each
from judgebench.runs.stop import Budget
from judgebench.runs.verdict_log import VerdictWriter, merge_parts
from judgebench.studies.answers import indexed


def ray_hosts() -> list[str]:
    """The Ray cluster that the environment names; none where Ray starts on this machine alone."""
    address = os.environ.get("RAY_ADDRESS", "local")
    return [] if address == "local" else [f"the Ray cluster at {address}"]


_MOST_IN_A_BATCH = 256
_BATCHES_A_WORKER = 4  # at least, so that none waits long for the slowest
_GLANCE_S = 0.2
_STOP = ".stop"


def judge_on_ray(judge: LLMJudge, bundles: Bundles, work: Work, workers: int | None) -> None:
    """Bring one judge's verdicts up to date on the cluster that Ray finds, else on this machine.

    `workers` defaults to one a GPU, or one a machine where there is none. Raises MissingExtra
    without Ray, SetupError or RunError for what a worker meets.
    """
    ray = _import_ray()
    folder = work.folder
    ledger = Ledger(bundles.answers, judge.signature, judge.parse_retries)
    read: dict[Path, int] = {}  # bytes, by file
    ledger.note_all(folder.verdicts(judge.name, read))
    rows = bundles.rows
    work.progress.start(judge.name, len(rows), ledger.done(rows))
    if ledger.done(rows) < len(rows):
        work.contacts(judge)
        folder.note_hosts(ray_hosts())
    sign = _StopSign(folder.path)
    sign.lower()
    try:
        with _cluster(ray):
            for again in range(1 + judge.parse_retries):
                left = ledger.never_ended(rows)
                if again:
                    left = np.array([row for row, _ in ledger.to_ask_again(rows)], np.int64)
                described = _Described.of(judge, bundles, bool(again))
                for _ in _spread(ray, described, bundles, left, folder.path, workers):
                    _follow(folder.verdicts(judge.name, read), ledger, work)
                    if work.stop.wanted:
                        sign.raise_()
                _follow(folder.verdicts(judge.name, read), ledger, work)
    finally:
        ledger.tell_of_models(judge.name, work.progress)
        sign.lower()
        merge_parts(folder.path, judge.name)


def _follow(verdicts: Iterable[Verdict], ledger: Ledger, work: Work) -> None:
    for verdict in verdicts:
        ledger.note(verdict)
        work.progress.advance(verdict.judge, verdict)


def _spread(
    ray: Any, judge: _Described, bundles: Bundles, rows: Rows, folder: Path, workers: int | None
) -> Iterator[None]:
    """Have every row judged; yields after each batch. Raises what a worker met."""
    if not len(rows):
        return
    gpus = int(ray.cluster_resources().get("GPU", 0))
    workers = workers or gpus or len(ray.nodes())
    size = max(1, min(_MOST_IN_A_BATCH, len(rows) // (_BATCHES_A_WORKER * workers)))
    batches = bundles.cut(rows, max(1, len(rows) // size))
    on_gpu = gpus and kind_of(judge.config.backend).uses_gpu
    done = ray.data.from_numpy(batches).map_batches(
        _Worker,
        fn_constructor_args=(judge, str(folder), os.getcwd()),
        batch_size=None,
        compute=ray.data.ActorPoolStrategy(size=min(workers, len(batches))),
        **({"num_gpus": 1} if on_gpu else {"num_cpus": 1}),
    )
    try:
        for batch in done.iter_batches(batch_size=None, prefetch_batches=0):
            for error, is_setup in zip(batch["error"], batch["is_setup"], strict=True):
                if error:
                    raise SetupError(str(error)) if is_setup else RunError(str(error))
            yield
    except ray.exceptions.RayError as error:
        raise RunError(f"ray: {error}") from error


@dataclass(frozen=True)
class _Described:
    """All that another process needs to make the same judge, and what it is shown; `again` where
    unreadable replies are asked for again."""

    config: JudgeConfig
    rubric: Rubric
    prompt_name: str
    prompt_text: str
    signature: str
    parents: Mapping[str, str]
    again: bool

    @classmethod
    def of(cls, judge: LLMJudge, bundles: Bundles, again: bool) -> _Described:
        named = (judge.config, judge.whole, judge.prompt.name, judge.prompt.text, judge.signature)
        return cls(*named, bundles.parents, again)

    def judge(self) -> LLMJudge:
        """Raises SetupError where this machine's judge would be another one."""
        prompt = parse_prompt(self.prompt_text, Path(self.prompt_name))
        backend = open_backend(self.config.backend, self.config.settings)
        judge = LLMJudge(self.config, self.rubric, prompt, backend)
        if judge.signature != self.signature:
            raise SetupError(
                f"a worker's {judge.name} is not the driver's: its engine, its version or its "
                "weights differ"
            )
        return judge


class _Worker:
    """Judges batches of rows in a process of its own. Made anew by Ray should that process die."""

    def __init__(self, described: _Described, folder: str, cwd: str) -> None:
        self._described, self._folder, self._cwd = described, RunFolder(Path(folder)), cwd
        self._ready = False

    def _prepare(self) -> None:
        """Here and not in `__init__`, where Ray would try an error of ours again for ever."""
        if Path(self._cwd).is_dir():  # paths in settings are seen from where the command was called
            os.chdir(self._cwd)
        self._judge = self._described.judge()
        judge, answers = self._judge, indexed(self._folder.answers())
        self._bundles = Bundles(judge, answers, parents=self._described.parents)
        self._ledger = Ledger(answers, judge.signature, judge.parse_retries)
        self._read: dict[Path, int] = {}  # bytes, by file
        part = f"ray-{uuid.uuid4().hex[:12]}"
        self._writer = VerdictWriter(self._folder.verdict_path(self._judge.name, part))
        sign = _StopSign(self._folder.path)
        self._work = Work(self._folder, SILENT, Budget(None), sign)
        self._ready = True

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        error, is_setup = "", False
        try:
            self._judge_rows(np.asarray(batch["data"]))
        except JudgebenchError as met:
            error, is_setup = str(met), isinstance(met, SetupError)
        return {"error": np.array([error]), "is_setup": np.array([is_setup])}

    def _judge_rows(self, rows: Rows) -> None:
        if not self._ready:
            self._prepare()
        # Also what a worker wrote that then died.
        self._ledger.note_all(self._folder.verdicts(self._judge.name, self._read))
        task, ledger = self._bundles.task, self._ledger
        if self._described.again:
            tasks = (task(row, last) for row, last in ledger.to_ask_again(rows))
        else:
            tasks = (task(row) for row in each(ledger.never_ended(rows)))
        ask(self._judge, tasks, self._writer, ledger, self._work)


class _StopSign:
    """A file in the run folder that tells workers on other machines to draw no more answers."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _STOP
        self._looked = 0.0
        self._raised = False

    @property
    def wanted(self) -> bool:
        """True where the file was there at most a moment ago."""
        now = time.monotonic()
        if not self._raised and now - self._looked > _GLANCE_S:
            self._looked, self._raised = now, self._path.exists()
        return self._raised

    def raise_(self) -> None:
        self._path.touch()

    def lower(self) -> None:
        self._path.unlink(missing_ok=True)


@contextmanager
def _cluster(ray: Any) -> Iterator[None]:
    """The cluster in use; else the one that RAY_ADDRESS names; else one on this machine alone."""
    if ray.is_initialized():
        yield
        return
    ray.init(
        include_dashboard=False,
        logging_level=logging.WARNING,
        **({} if "RAY_ADDRESS" in os.environ else {"_node_ip_address": "127.0.0.1"}),
    )
    try:
        yield
    finally:
        ray.shutdown()


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise MissingExtra("the engine ray", "ray", "ray[data]") from error
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    return ray
