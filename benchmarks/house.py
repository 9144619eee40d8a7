"""How large is judgebench, and how many files does one verdict enter?

    python benchmarks/house.py [--root CHECKOUT]

Sizes are those that tests/test_size.py holds: expression nodes and statements of `ast`, without
imports and docstrings, by folder of the package and in all. Commands and parameters are those of
the checkout's command line. A verdict enters a file where a function of it is called: while an
endpoint judges an answer, when that run is opened, and when it is decided on.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPO / "tests" / "cases"))

import house_size  # noqa: E402


def sizes(root: Path) -> Iterator[str]:
    """A line for each folder, largest first, and one for each other count."""
    nodes, statements = house_size.nodes_by_package(root), house_size.statements_by_package(root)
    yield f"  {'':16}{'nodes':>9}{'statements':>12}"
    for name in (*sorted(nodes, key=nodes.__getitem__, reverse=True), "all"):
        n, m = (of.get(name, sum(of.values())) for of in (nodes, statements))
        yield f"  {name:16}{n:9,}{m:12,}"
    commands, parameters = house_size.leaves()
    counts = {
        "files": house_size.n_files(root),
        "commands": commands,
        "parameters of commands": parameters,
        "keys of settings": house_size.n_config_keys(root),
        "lines of tests": house_size.n_test_lines(root),
        **{f"uses of the name `{name}`": n for name, n in house_size.name_uses(root).items()},
    }
    yield from (f"  {name:42}{n:8,}" for name, n in counts.items())


def entered(step: Callable[[], Any], package: Path) -> tuple[Any, list[str]]:
    """What a step gives, and the files of the package in which it calls a function."""
    files = set[str]()

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(f"{package}/"):
            files.add(frame.f_code.co_filename.removeprefix(f"{package}/"))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        return step(), sorted(files)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def ways_of_a_verdict(root: Path, package: Path) -> Iterator[tuple[str, list[str]]]:
    """The files that verdicts enter at each step: judged by an endpoint, opened, decided on."""
    from endpoint import RUBRIC, Endpoint

    import judgebench as jb
    from judgebench.progress import NoProgress
    from judgebench.runs.folder import RunFolder
    from judgebench.runs.judging import Budget, RequestGroups, Stop, Work, judge_answers
    from judgebench.runs.run_bench import run
    from judgebench.studies.answers import indexed

    demo = root / "examples" / "demo"
    with tempfile.TemporaryDirectory() as name, Endpoint(delay=0) as endpoint:
        file = Path(name) / "bench.yaml"
        judge = {
            "name": "judge", "backend": "openai-compatible:loopback",
            "settings": {"base_url": endpoint.base_url},
        }  # fmt: skip
        data = [str(demo / "answers.csv"), str(demo / "labels.csv")]
        file.write_text(
            json.dumps({"name": "house", "rubric": RUBRIC, "data": data, "judges": [judge]})
        )
        bench, folder = jb.load_bench(file), RunFolder(Path(name) / "run")
        run(bench, folder)
        bench.close()
        bench, fresh = jb.load_bench(file), RunFolder(Path(name) / "fresh")
        fresh.path.mkdir()
        work = Work(fresh, NoProgress(), Budget(None), Stop())
        (asked,) = bench.judges
        bundles = RequestGroups(asked, indexed(bench.dataset.answers[:1]))
        yield "judged", entered(lambda: judge_answers(asked, bundles, work), package)[1]
        bench.close()
        jb.decide(jb.open_run(folder.path))  # so that what is imported first does not count
        study, files = entered(lambda: jb.open_run(folder.path), package)
        yield "opened", files
        yield "decided", entered(lambda: jb.decide(study), package)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--root", type=Path, default=REPO, help="the checkout that is measured")
    parser.add_argument("--files", action="store_true", help="name the files that are entered")
    parser.add_argument("--quick", action="store_true", help="no answer is judged")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    sys.path.insert(0, str(root))
    package = root / "judgebench"
    print(*sizes(root), sep="\n")
    for step, files in () if arguments.quick else ways_of_a_verdict(root, package):
        print(f"  {f'files that a verdict enters when {step}':42}{len(files):8,}")
        if arguments.files:
            print(*(f"    {file}" for file in files), sep="\n")


if __name__ == "__main__":
    main()
