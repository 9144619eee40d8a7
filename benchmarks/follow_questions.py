"""Do the flags that questions print lead every case of a pack to its right reading?

    python benchmarks/follow_questions.py                # every case of tests/tables
    python benchmarks/follow_questions.py --only title   # those with this word
    python benchmarks/follow_questions.py --quick        # every tenth
    python benchmarks/follow_questions.py CASES_FOLDER   # another pack

A pack is a folder with `cases/NAME/case.yaml` and a run_cases.py that runs and checks a case. Each
command runs in a fork of this process. A case that is asked runs again with the flags of readings
that are printed, breadth first, until it is ok: of the first question, or of a later one with the
first reading of each before it. Then a case is ok at once, ok after flags, refused well, WRONG or a
traceback.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib.util
import io
import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

TABLES = Path(__file__).resolve().parents[1] / "tests" / "tables"
MAX_RUNS = 60  # of one case
LIMIT_S = 60  # of one command
RESULTS = ("ok at once", "ok after flags", "refused well", "WRONG", "traceback")
_READING = re.compile(r"^\s+(--\S.*?)\s{4,}\S")
_QUESTION = re.compile(r"^error: ", re.MULTILINE)
_ENVIRONMENT = {"COLUMNS": "400", "NO_COLOR": "1", "PYTHONUTF8": "1", "TERM": "dumb"}

Flags = tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """How a case ended. `flags` led there, those of `n_questions` readings, in `n_runs` runs."""

    kind: str
    text: str = ""
    flags: Flags = ()
    n_questions: int = 0
    n_runs: int = 1


@dataclass
class Pack:
    """A pack of cases, and its own code to run and check one. `flags` stand behind the command
    that asked for them."""

    folder: Path
    code: ModuleType
    flags: Flags = ()
    asking: int = 0  # which of a case's commands asks
    _n_commands: int = field(default=0, init=False)

    @classmethod
    def load(cls, folder: Path) -> Pack:
        """The pack of a folder, whose commands run in forks of this process."""
        spec = importlib.util.spec_from_file_location("run_cases", folder / "run_cases.py")
        if spec is None or spec.loader is None or not (folder / "run_cases.py").is_file():
            sys.exit(f"{folder}: holds no run_cases.py")
        code = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(code)
        pack = cls(folder, code)
        code.run = pack.run  # type: ignore[attr-defined]
        return pack

    def cases(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        """The folder of each case, and what it states."""
        names = sorted(path.parent.name for path in self.folder.glob("cases/*/case.yaml"))
        return map(self.case, names)

    def case(self, name: str) -> tuple[Path, dict[str, Any]]:
        """The folder of a case, and what it states."""
        source = self.folder / "cases" / name
        case = yaml.safe_load((source / "case.yaml").read_text(encoding="utf-8"))
        self.code.check_case({k: v for k, v in case.items() if k != "flags"}, name)
        return source, case

    def run(self, command: Sequence[str | bytes], folder: Path) -> Any:
        """What a command shows, as the pack's own code sees it."""
        words = [os.fsdecode(word) for word in command[1:]]
        is_same = words[:1] == ["align"] and self._n_commands > self.asking
        if self._n_commands == self.asking or is_same:
            words += self.flags
        self._n_commands += 1
        code, out, err = run_in_fork(words, folder)
        return self.code.Seen(code, out, err, code == -signal.SIGALRM)

    def try_case(self, source: Path, case: dict[str, Any], flags: Flags) -> tuple[str, str, str]:
        """How a case ends with these flags: its result, what is wrong, and what was printed."""
        self.flags, self._n_commands = flags, 0
        with tempfile.TemporaryDirectory(prefix="case-") as temporary:
            folder = Path(temporary) / "work"
            shutil.copytree(source, folder, copy_function=shutil.copyfile)
            (folder / "case.yaml").unlink()
            for new, old in (case.get("files") or {}).items():
                os.rename(os.fsencode(folder / old), os.fsencode(str(folder / new)))
            seen, aligned = self.code.execute(case, folder, "judgebench")
        if not flags:
            is_list = isinstance(case.get("command"), list)
            self.asking = min(self._n_commands, len(case["command"])) - 1 if is_list else 0
        kind, text = self.code.judge_case(case, seen, aligned)
        return kind, text, seen.err


def run_in_fork(words: Sequence[str], folder: Path) -> tuple[int, str, str]:
    """The exit code and output of a command line, or of Python behind `-c`, in a folder."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            _run(words, folder, out.fileno(), err.fileno())
        _, status = os.waitpid(child, 0)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return os.waitstatus_to_exitcode(status), texts[0], texts[1]


def _run(words: Sequence[str], folder: Path, out: int, err: int) -> None:
    """Run a command in this process, which ends with it."""
    signal.alarm(LIMIT_S)
    code: object = 1
    try:
        for number, target in ((out, 1), (err, 2), (os.open(os.devnull, os.O_RDONLY), 0)):
            os.dup2(number, target)
        sys.stdin, sys.stdout, sys.stderr = (
            io.TextIOWrapper(
                io.FileIO(n, mode, closefd=False), encoding="utf-8", line_buffering=True
            )
            for n, mode in ((0, "r"), (1, "w"), (2, "w"))
        )
        os.environ.update(_ENVIRONMENT)
        os.chdir(folder)
        code = _command(words)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _command(words: Sequence[str]) -> object:
    from judgebench.cli.app import main

    try:
        if words[0] == "-c":
            exec(compile(words[1], "<case>", "exec"), {"__name__": "__main__"})
            return 0
        sys.argv = ["judgebench", *words]
        main()
    except SystemExit as ended:
        return ended.code
    return 0


def questions_in(text: str) -> list[list[Flags]]:
    """The flags of every reading of the questions that were printed."""
    questions = []
    for part in _QUESTION.split(text):
        lines = [match[1] for line in part.splitlines() if (match := _READING.match(line))]
        if lines:
            questions.append([tuple(shlex.split(line)) for line in lines])
    return questions


def follow(pack: Pack, source: Path, case: dict[str, Any]) -> Result:
    """Run a case, and where it is asked, with the flags of readings that are printed."""
    kind, text, printed = pack.try_case(source, case, ())
    right = case["right"] if isinstance(case["right"], list) else [case["right"]]
    first = Result("ok at once" if kind == "ok" else kind, text)
    if kind in ("ok", "traceback") or all(want.get("refused") for want in right):
        return first
    waiting = deque(_readings((), 0, printed))
    visited, n_runs = {Flags()}, 1
    while waiting and n_runs < MAX_RUNS:
        flags, n_questions = waiting.popleft()
        if flags in visited:
            continue
        visited.add(flags)
        n_runs += 1
        kind, text, printed = pack.try_case(source, case, flags)
        if kind == "ok":
            return Result("ok after flags", "", flags, n_questions, n_runs)
        waiting.extend(_readings(flags, n_questions, printed))
    return Result(first.kind, first.text, n_runs=n_runs)


def _readings(flags: Flags, n_questions: int, printed: str) -> Iterator[tuple[Flags, int]]:
    """The flags after one more question, or after several of which the first reading holds."""
    before = flags
    for number, question in enumerate(questions_in(printed), start=n_questions + 1):
        yield from ((before + reading, number) for reading in question)
        before += question[0]


def warm_up() -> None:
    """Run both commands on a small table, so that forks need not import what they use."""
    import scipy.optimize  # noqa: F401  (of a fit that so few annotators have not)

    labels = ["YN"[i % 2] for i in range(40)]
    rows = [f"{i},{x},{x if i % 7 else 'Y'},{x if i % 5 else 'Y'}" for i, x in enumerate(labels)]
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        table = Path(folder) / "labels.csv"
        table.write_text("\n".join(["id,Kim,Jo,gpt4", *rows, ""]), encoding="utf-8")
        argv = sys.argv
        for command in ("decide", "align"):
            with contextlib.redirect_stderr(io.StringIO()):
                _command([command, str(table), "--order", "N < Y", "--json"])
        sys.argv = argv
    gc.collect()
    gc.freeze()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", default=TABLES, help="a pack of cases")
    parser.add_argument("--only", default="", help="cases with this word in their name or kind")
    parser.add_argument("--quick", action="store_true", help="only every tenth case")
    parser.add_argument("-v", "--verbose", action="store_true", help="print what is asked, too")
    arguments = parser.parse_args()
    warm_up()
    pack = Pack.load(arguments.folder)
    cases = [
        (source, case)
        for source, case in pack.cases()
        if arguments.only in source.name or arguments.only in case.get("kind", "")
    ]
    counts, by_questions = Counter[str](), Counter[int]()
    for source, case in cases[:: 10 if arguments.quick else 1]:
        result = follow(pack, source, case)
        counts[result.kind] += 1
        by_questions[result.n_questions] += result.kind == "ok after flags"
        runs = f" ({result.n_runs} runs)" if result.n_runs > 1 else ""
        why = f": {shlex.join(result.flags)}{result.text}" if result.flags or result.text else ""
        print(f"{source.name}: {result.kind}{runs}{why}", flush=True)
        if arguments.verbose and result.kind != "ok at once":
            print("    " + pack.try_case(source, case, ())[2].strip().replace("\n", "\n    "))
    after = ", ".join(f"{n} after {k}" for k, n in sorted(by_questions.items()) if n)
    print(f"\n{sum(counts.values())} cases: " + ", ".join(f"{counts[k]} {k}" for k in RESULTS))
    print(f"of those ok after flags, by the number of questions: {after or 'none'}")


if __name__ == "__main__":
    main()
