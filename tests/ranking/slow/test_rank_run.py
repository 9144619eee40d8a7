"""`judgebench rank run` from end to end: the shipped task, scripted writers and judge, a real
encoder of 22M parameters, a few instances and epochs."""

import csv
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from judgebench.files import read_lines, shipped_folder
from judgebench.models.contract import Reply, Request
from judgebench.models.scripted import Scripted
from judgebench.ranking.task import TrainingConfig
from judgebench.rubric import load_rubric

pytestmark = [
    pytest.mark.transformers,
    pytest.mark.skipif(
        not all(map(find_spec, ("torch", "transformers", "safetensors"))),
        reason="needs the extra `proxy` (make test-transformers)",
    ),
]

CONTROLS = ("no-argument", "label-only", "noise", "passages")
WRITERS = ("good", "lazy")
REPORT = ("report.html", "tables.md", "latex/appendix.tex", "results.csv")
SIZES = {"train": 12, "development": 6, "test": 6}
EVALUATORS = (
    "baseline", "baseline-1", "expert-trained", "expert-trained-1", "llm-trained-0",
    "llm-trained-1",
)  # fmt: skip
PATIENCE = 120.0  # seconds that a loaded machine may take


def copy_of_the_example(folder: Path, encoder: Path, *, epochs: int = 2) -> Path:
    """The shipped ranking with fewer instances, scripted models and that encoder."""
    example = shipped_folder("examples") / "rank"
    for path in example.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    config: dict[str, Any] = yaml.safe_load((folder / "bench.yaml").read_text())
    write_replies(folder)
    config["judges"] = [{"name": "judge", "backend": f"scripted:{folder / 'judge.jsonl'}"}]
    proxy = config["proxy"]
    proxy["sample"] = SIZES
    proxy["generators"] = [
        {"name": name, "backend": f"scripted:{folder / name}.jsonl"} for name in WRITERS
    ]
    proxy["families"] = {"scripted": ["good", "judge"]}
    proxy["retriever"] = proxy["evaluators"]["encoder"] = str(encoder)
    training = {"epochs": epochs, "batch_size": 8, "max_tokens": 64}
    assert TrainingConfig.model_validate(training)
    proxy["evaluators"] |= {"training": training, "draws": 2}
    (folder / "bench.yaml").write_text(yaml.safe_dump(config))
    return folder / "bench.yaml"


def write_replies(folder: Path) -> None:
    (folder / "good.jsonl").write_text('{"text": "Argument: The sea is calm and all is well."}\n')
    (folder / "lazy.jsonl").write_text('{"text": "It just does."}\n')
    rubric = load_rubric("argument-quality")
    labels = {
        n: {m.id: m.label_texts[n] for m in rubric.metrics if m.kind == "ordinal"} for n in (0, 1)
    }
    others = {m.id: m.label_texts[0] for m in rubric.metrics if m.kind != "ordinal"}
    lines = [
        {"pattern": "It just does", "text": labels[1] | others},
        {"text": labels[0] | others},
    ]
    (folder / "judge.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """Every request that a scripted model gets."""
    found: list[Request] = []
    complete = Scripted.complete

    def noted(self: Scripted, requests: Iterator[Request]) -> Iterator[Reply]:
        def each() -> Iterator[Request]:
            for request in requests:
                found.append(request)
                yield request

        return complete(self, each())

    monkeypatch.setattr(Scripted, "complete", noted)
    return found


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, minilm: Path) -> tuple[Path, Path, str]:
    """A bench file, its finished run folder, and what the run said."""
    folder = tmp_path_factory.mktemp("rank")
    bench, run = copy_of_the_example(folder, minilm), folder / "run"
    ended = subprocess.run(command(bench, run), env=environment(), capture_output=True, check=False)
    assert ended.returncode == 0, ended.stdout.decode() + ended.stderr.decode()
    return bench, run, ended.stdout.decode()


def command(*arguments: object) -> list[str]:
    first, run = arguments
    code = "from judgebench.cli.app import main; main()"
    return [sys.executable, "-c", code, "rank", "run", str(first), "--run", str(run)]


def environment() -> dict[str, str]:
    quiet = {"COLUMNS": "200", "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}
    return {**os.environ, **quiet}


def rows(run: Path) -> list[dict[str, str]]:
    with (run / "report" / "results.csv").open(encoding="utf-8-sig", newline="") as file:
        return [row for row in csv.DictReader(file) if row["part"] == "rankings"]


def state(run: Path) -> dict[str, tuple[int, str]]:
    """Hashes of the weights, arguments and verdicts of a run; of the weights the time too."""
    kept = [*run.glob("proxy/evaluators/*/*"), *run.glob("verdicts-*.jsonl")]
    kept += [run / "proxy" / f"arguments-{name}.jsonl" for name in WRITERS]
    return {
        str(p.relative_to(run)): (
            p.stat().st_mtime_ns if p.suffix == ".safetensors" else 0,
            hashlib.sha256(p.read_bytes()).hexdigest(),
        )
        for p in kept
        if p.is_file()
    }


def test_a_run_leaves_all_that_it_was_to_make(done: tuple[Path, Path, str]) -> None:
    _, run, said = done
    for name in WRITERS:
        found = [line for _, line in read_lines(run / "proxy" / f"arguments-{name}.jsonl")]
        assert len(found) == sum(SIZES.values())
    assert found[0]["text"] == "It just does."
    for name in CONTROLS:
        lines = list(read_lines(run / "proxy" / f"arguments-{name}.jsonl"))
        assert len(lines) == SIZES["test"]
    each = SIZES["test"] * (1 + len(WRITERS) + len(CONTROLS))
    for name in (*(f"ferries-{kind}" for kind in EVALUATORS), "judge"):
        assert len(list(read_lines(run / f"verdicts-{name}.jsonl"))) == each, name
    for name in REPORT:
        assert (run / "report" / name).stat().st_size > 0, name
    assert not (run / "report" / "plots").exists()
    assert f"Report: {run / 'report' / 'report.html'}" in said


def test_every_ranker_ranks_every_system(done: tuple[Path, Path, str]) -> None:
    rankers: dict[str, set[str]] = {}
    for row in rows(done[1]):
        if row.get("system"):
            rankers.setdefault(row["ranker"], set()).add(row["system"])
    systems = {"gold", *WRITERS, *CONTROLS}
    for ranker in ("baseline", "expert-trained", "llm-trained", "judge", "random"):
        assert rankers[ranker] == systems, ranker
    page = (done[1] / "report" / "report.html").read_text().replace("<wbr>", "")
    assert all(system in page for system in systems)


def test_a_second_run_asks_and_trains_nothing(done, call, asked) -> None:
    bench, run, _ = done
    before, report = state(run), (run / "report" / "results.csv").read_bytes()
    code, out, err = call("rank", "run", bench, "--run", run)
    assert code == 0, err
    assert asked == []
    assert state(run) == before
    assert (run / "report" / "results.csv").read_bytes() == report
    assert "to do" not in out


def test_a_report_needs_neither_torch_nor_data(done, tmp_path) -> None:
    _, run, _ = done
    code = (
        "import sys\nfrom judgebench.cli.app import main\n"
        "try:\n    main()\nfinally:\n    print('torch' in sys.modules)\n"
    )
    moved = tmp_path / "moved"
    subprocess.run(["cp", "-r", str(run), str(moved)], check=True)
    original = (moved / "report" / "results.csv").read_bytes()
    ended = subprocess.run(
        [sys.executable, "-c", code, "report", str(moved), "--to", str(tmp_path / "again")],
        env=environment(), capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == "False"
    assert (tmp_path / "again" / "results.csv").read_bytes() == original


def test_a_dry_run_writes_nothing(done, call, asked, tmp_path) -> None:
    code, out, _ = call("rank", "run", done[0], "--run", tmp_path / "none", "--dry-run")
    assert (code, asked, (tmp_path / "none").exists()) == (0, [], False)
    assert "ferries: train 12, development 6, test 6; 6 instances ranked" in out


@pytest.mark.parametrize("when", ["writing", "training"])
def test_ctrl_c_keeps_what_is_done(when: str, minilm: Path, tmp_path: Path) -> None:
    bench, run = copy_of_the_example(tmp_path, minilm, epochs=3), tmp_path / "run"
    if when == "writing":
        slow = "import time, judgebench.models.scripted as s\nfit = s._first_fit\n"
        slow += "s._first_fit = lambda *a: (time.sleep(0.2), fit(*a))[1]\n"
        seen: Callable[[], bool] = lambda: lines(run / "proxy" / "replies-good.jsonl") >= 3  # noqa: E731
    else:
        slow = ""
        trained = run / "proxy" / "evaluators" / "ferries-baseline" / "checkpoints"
        seen = lambda: any(trained.glob("*/*/trainer_state.json"))  # noqa: E731
    line = command(bench, run)
    line[2] = slow + line[2]
    process = subprocess.Popen(
        line, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    until(seen, process)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, out
    assert "Stopped. Results so far are kept in" in out
    assert "rank run" in out
    if when == "writing":
        before = lines(run / "proxy" / "replies-good.jsonl")
        assert 3 <= before < sum(SIZES.values())
        assert not list(run.glob("verdicts-*"))
        return  # that it goes on is shown by the units and by the other half
    assert not (run / "report").exists()
    before = state(run)
    ended = subprocess.run(
        command(bench, run), env=environment(), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "ferries-baseline: training resumes after step" in ended.stdout
    for name, kept in before.items():
        if "arguments" in name or "judge" in name:
            assert state(run)[name] == kept, name
    assert (run / "report" / "results.csv").is_file()


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.is_file() else 0


def until(true: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        if true():
            return
        time.sleep(0.02)
    process.kill()
    pytest.fail(f"it never came to that: {process.communicate()[0]}")
