"""A benchmark from Python: read a bench.yaml, judge, and open the run folder."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from judgebench.errors import Problem, SetupError
from judgebench.features import FEATURES
from judgebench.runs.open import open_run

if TYPE_CHECKING:
    from judgebench.judges.judge import Judge
    from judgebench.models.contract import Backend
    from judgebench.progress import Progress
    from judgebench.runs.bench import Bench
    from judgebench.studies.study import Study


def load_bench(
    path: str | Path,
    *,
    limit: int | None = None,
    data_folder: str | Path | None = None,
    stress: bool = False,
    local_only: bool = False,
) -> Bench:
    """The benchmark of a bench.yaml or of a shipped example, checked whole. Calls no model.

    `limit` keeps the first answers only, `data_folder` is where data files are looked for instead
    of where the file says. With `stress` its answers are also altered, for a stress test. With
    `local_only` a benchmark is refused whose judges would contact another machine, by name, before
    any engine is opened.

    Raises SetupError with every problem of the file and of all files that it names.

    >>> import judgebench as jb
    >>> bench = jb.load_bench("bench.yaml", limit=10)
    >>> len(bench.dataset.answers)
    10
    >>> bench.close()
    """
    from judgebench.runs.load import check_local
    from judgebench.runs.load import load_bench as load

    if local_only:
        check_local(Path(path))
    extend = FEATURES["stress"].parts.extension() if stress else None
    folder = Path(data_folder) if data_folder else None
    return load(Path(path), limit=limit, data_folder=folder, extend=extend)


def run(
    bench: Bench | str | Path,
    folder: str | Path | None = None,
    *,
    judges: Mapping[str, Judge | Backend] = {},
    budget: float | None = None,
    batch: bool = False,
    show_progress: bool = False,
) -> Study:
    """Judge what is not judged yet, and open the run folder (default: runs/NAME).

    `judges` are more judges by name: objects that meet the contract `jb.Judge`, or `jb.Backend`s,
    which are asked as the language models of a bench.yaml are. `budget` is what the run folder may
    cost in all, in US dollars. With `batch` remote judges use their providers' batch endpoints:
    cheaper, later, and collected by whatever run of this folder comes next. A bench.yaml with the
    key `proxy` is run as a ranking of arguments.
    Safe to interrupt; run it again to resume.

    Raises SetupError where an object does not meet its contract, and RunError where judging failed;
    what was judged by then is kept.

    >>> import judgebench as jb
    >>> class Always:
    ...     name, signature = "always", "always the least severe label, 1"
    ...     def describe(self): return {"judge": "rule"}
    ...     def judge(self, tasks):
    ...         for task in tasks:
    ...             labels = {m.id: m.label_texts[0] for m in bench.rubric.metrics}
    ...             yield jb.Verdict(task.answer.item_id, task.content_hash, self.name,
    ...                              self.signature, jb.Status.OK, labels)
    ...     def close(self): pass
    >>> bench = jb.load_bench("bench.yaml")
    >>> [judge.name for judge in jb.run(bench, "runs/two", judges={"always": Always()}).judges][0]
    'always'
    """
    from judgebench.judges.llm import judges_from
    from judgebench.progress import SILENT, ProgressDisplay
    from judgebench.results.terminal import Screen
    from judgebench.runs import run_bench
    from judgebench.runs.bench import Bench
    from judgebench.runs.run_bench import batched, choose_run_folder

    to = Path(folder) if folder else None
    shown = ProgressDisplay(Screen()) if show_progress else nullcontext(SILENT)
    with shown as progress:
        if not isinstance(bench, Bench) and (run_section := _section_run(Path(bench))):
            if judges or batch:
                message = "can only be given where answers are judged"
                raise SetupError(Problem(message, field="judges" if judges else "batch"))
            return open_run(run_section(to, progress, budget))
        loaded = bench if isinstance(bench, Bench) else load_bench(bench)
        found, notice = choose_run_folder(loaded, to)
        if notice:
            warnings.warn(notice, stacklevel=2)
        try:
            others = judges_from(judges, loaded.rubric, loaded.names)
            asked = batched(loaded, found, budget) if batch else loaded
            run_bench.run(replace(asked, others=others), found, budget=budget, progress=progress)
        finally:
            loaded.close()
    return open_run(found.path)


def _section_run(bench: Path) -> Callable[[Path | None, Progress, float | None], Path] | None:
    """The function that runs a bench.yaml that is no benchmark of judges, such as a ranking."""
    from judgebench.files import load_yaml
    from judgebench.runs.load import bench_file

    file = bench_file(bench)
    value = load_yaml(file)
    others = [feature for feature in FEATURES.values() if feature.other_command]
    feature = next((f for f in others if isinstance(value, dict) and value.get(f.section)), None)
    return partial(feature.parts.run, file) if feature else None
