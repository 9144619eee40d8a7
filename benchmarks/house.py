"""How large is judgebench, how is it tied together, and how many files does one verdict enter?

    python benchmarks/house.py [--root CHECKOUT]

Statements are those of `ast`, docstrings and imports among them: lines would reward dense code. A
type name has several meanings where modules define different classes or aliases of that name. A
verdict enters a file where a function of it is called: while an endpoint judges an answer, when
that run is opened, and when it is decided on.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[1]
SMALL = 100  # lines
QUESTION_WORDS = {
    "What",
    "How",
    "Whether",
    "That",
    "Whoever",
    "Whom",
    "Who",
    "Where",
    "Which",
    "Why",
}
RIDDLES = ("found", "one", "said", "own", "told")


def size(package: Path) -> Iterator[tuple[str, int]]:
    """Figures of a package, by name."""
    texts = {path: path.read_text("utf-8") for path in sorted(package.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    lines = [text.count("\n") for text in texts.values()]
    yield "statements", sum(isinstance(node, ast.stmt) for node in nodes)
    yield "lines", sum(lines)
    yield "files", len(texts)
    yield f"files under {SMALL} lines", sum(n < SMALL for n in lines)
    yield "functions", sum(isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef) for n in nodes)
    yield "import statements", sum(isinstance(n, ast.Import | ast.ImportFrom) for n in nodes)
    yield "type names of several meanings", sum(n > 1 for n in type_names(trees).values())
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = [ast.get_docstring(node) for node in nodes if isinstance(node, documented)]
    asking = sum(doc.split()[0] in QUESTION_WORDS for doc in docs if doc)
    yield "docstrings that begin with What, How, …", asking
    named = Counter(node.id for node in nodes if isinstance(node, ast.Name))
    for word in RIDDLES:
        yield f"uses of the name `{word}`", named[word]


def type_names(trees: dict[Path, ast.Module]) -> Counter[str]:
    """In how many modules each class or alias of a type is defined."""
    return Counter(
        name
        for tree in trees.values()
        for name in {
            node.name if isinstance(node, ast.ClassDef) else ast.unparse(node.targets[0])
            for node in tree.body
            if isinstance(node, ast.ClassDef | ast.Assign)
        }
        if name[:1].isupper() and not name.isupper()
    )


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
    from judgebench.runs.judging import Bundles, Work, judge_answers
    from judgebench.runs.run_bench import run
    from judgebench.runs.stop import Budget, Stop
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
        bundles = Bundles(asked, indexed(bench.dataset.answers[:1]))
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
    parser.add_argument("--quick", action="store_true", help="nothing is run, only read")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    package = root / "judgebench"
    for name, n in size(package):
        print(f"  {name:42}{n:8,}")
    sys.path.insert(0, str(root))
    for step, files in () if arguments.quick else ways_of_a_verdict(root, package):
        print(f"  {f'files that a verdict enters when {step}':42}{len(files):8,}")
        if arguments.files:
            print(*(f"    {file}" for file in files), sep="\n")


if __name__ == "__main__":
    main()
