"""One judge's answers spread over a Ray cluster.

Every worker is an actor that holds the judge, with its engine; batches of answers go to whoever is
free, and the verdicts come back to this process, which alone writes. A worker that dies is replaced
by Ray, and its batch is judged again: at most so many answers are asked for twice.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgebench.errors import JudgebenchError, MissingExtra, RunError, SetupError
from judgebench.judges.judge import Task
from judgebench.judges.llm import LLMJudge
from judgebench.models import kind_of, open_backend
from judgebench.prompt import parse_prompt
from judgebench.records import Verdict


def ray_hosts() -> list[str]:
    """The Ray cluster that the environment names; none where Ray starts on this machine alone."""
    address = os.environ.get("RAY_ADDRESS", "local")
    return [] if address == "local" else [f"the Ray cluster at {address}"]


MAX_BATCH = 256  # answers, and the rest of what is shown together
_BATCHES_A_WORKER = 4  # at least, so that none waits long for the slowest


class OnRay:
    """A judge that has others judge: on the cluster that Ray finds, else on this machine.

    `workers` defaults to one a GPU, or one a machine where there is none; about `n` answers are
    judged. Raises MissingExtra without Ray, SetupError or RunError for what a worker meets.
    """

    def __init__(self, judge: LLMJudge, workers: int | None, n: int) -> None:
        self._judge, self._workers, self._n = judge, workers, n
        self.name, self.signature = judge.name, judge.signature
        self.parse_retries = judge.parse_retries
        self.hosts = [*judge.hosts, *ray_hosts()]
        self._actors: list[Any] = []
        self._is_ours = False  # the cluster

    def describe(self) -> Mapping[str, Any]:
        return self._judge.describe()

    def judge(self, tasks: Iterable[Task]) -> Iterator[Verdict]:
        ray = _import_ray()
        idle, busy = [*(self._actors or self._start(ray))], dict[Any, Any]()
        size = min(MAX_BATCH, self._n // (_BATCHES_A_WORKER * len(idle)))
        batches = _batches(tasks, max(1, size))
        try:
            while True:
                while idle and (batch := next(batches, None)):
                    actor = idle.pop()
                    busy[actor.judge.remote(batch)] = actor
                if not busy:
                    return
                (done,), _ = ray.wait([*busy], num_returns=1)
                idle.append(busy.pop(done))
                verdicts, error, is_setup = ray.get(done)
                yield from verdicts
                if error:
                    raise SetupError(error) if is_setup else RunError(error)
        except ray.exceptions.RayError as error:
            raise RunError(f"ray: {error}") from error

    def _start(self, ray: Any) -> Sequence[Any]:
        if not ray.is_initialized():
            alone = {} if "RAY_ADDRESS" in os.environ else {"_node_ip_address": "127.0.0.1"}
            ray.init(include_dashboard=False, logging_level=logging.WARNING, **alone)
            self._is_ours = True
        gpus = int(ray.cluster_resources().get("GPU", 0))
        on_gpu = gpus and kind_of(self._judge.config.backend).uses_gpu
        actor = ray.remote(
            max_restarts=-1, max_task_retries=3, **({"num_gpus": 1} if on_gpu else {"num_cpus": 1})
        )(_Worker)
        judge = self._judge
        about = (judge.config, judge.whole, judge.prompt.name, judge.prompt.text, judge.signature)
        n = self._workers or gpus or len(ray.nodes())
        self._actors = [actor.remote(os.getcwd(), *about) for _ in range(n)]
        return self._actors

    def drain(self) -> None:
        self._judge.drain()

    def close(self) -> None:
        self._judge.close()
        if self._actors:
            ray = _import_ray()
            for actor in self._actors:
                ray.kill(actor)
            if self._is_ours:
                ray.shutdown()


def _batches(tasks: Iterable[Task], size: int) -> Iterator[list[Task]]:
    """Batches that cut no bundle."""
    batch: list[Task] = []
    for task in tasks:
        if len(batch) >= size and not (task.bundle and task.bundle == batch[-1].bundle):
            yield batch
            batch = []
        batch.append(task)
    if batch:
        yield batch


class _Worker:
    """Judges batches in a process of its own. Made anew by Ray should that process die."""

    def __init__(self, cwd: str, *about: Any) -> None:
        self._cwd, self._about = cwd, about
        self._judge: LLMJudge | None = None

    def judge(self, tasks: Sequence[Task]) -> tuple[list[Verdict], str, bool]:
        """The verdicts that came, and the error that ended them: Ray would hand on no error of ours
        as it is, and would try again for ever what `__init__` raises."""
        verdicts: list[Verdict] = []
        try:
            self._judge = self._judge or self._open(*self._about)
            verdicts.extend(self._judge.judge(tasks))
        except JudgebenchError as error:
            return verdicts, str(error), isinstance(error, SetupError)
        return verdicts, "", False

    def _open(
        self, config: Any, rubric: Any, prompt_name: str, prompt_text: str, signature: str
    ) -> LLMJudge:
        """Raises SetupError where this machine's judge would be another one."""
        if Path(self._cwd).is_dir():  # paths in settings are seen from where the command was called
            os.chdir(self._cwd)
        prompt = parse_prompt(prompt_text, Path(prompt_name))
        judge = LLMJudge(config, rubric, prompt, open_backend(config.backend, config.settings))
        if judge.signature != signature:
            raise SetupError(
                f"a worker's {judge.name} is not the driver's: its engine, its version or its "
                "weights differ"
            )
        return judge


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise MissingExtra("the engine ray", "ray", "ray") from error
    return ray
