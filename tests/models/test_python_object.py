"""`backend: python:module:factory`: objects that somebody wrote."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from judgebench.errors import RunError, SetupError
from judgebench.models import open_backend
from judgebench.models.settings import BackendSettings
from judgebench.runs.bench import Bench
from judgebench.runs.folder import RunFolder
from judgebench.runs.load import load_bench
from judgebench.runs.run_bench import run

SOURCE = """
import json
from judgebench.models.contract import Reply

class Polite:
    def __init__(self, threads=None):
        self.threads = threads
    def describe(self):
        return {"engine": "polite", "threads": self.threads}
    def complete(self, requests):
        for r in requests:
            labels = {k: v["enum"][0] for k, v in r.schema["properties"].items()}
            yield Reply(r.key, json.dumps(labels))
    def close(self):
        pass

class Tired(Polite):
    def complete(self, requests):
        for r in requests:
            if r.item == "b":
                raise ValueError("no more\\nwords")
            yield from super().complete([r])

class Lost(Polite):
    def complete(self, requests):
        raise ValueError("no\\nwords")
        yield

class Box:
    make = Polite

class Half:
    def describe(self):
        return {}

class Odd(Polite):
    def describe(self):
        return {"what": object()}

def told(settings):
    return Polite(settings.threads)

def with_body(settings):
    return Polite(settings.extra_body["tier"])

def bare():
    return Polite()

def broken():
    raise RuntimeError("no licence")

number = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request) -> Iterator[str]:
    import sys

    monkeypatch.setattr(sys, "path", list(sys.path))
    name = f"mine_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    yield name
    sys.modules.pop(name, None)


def test_a_factory_is_called_with_the_settings_or_without(tmp_path: Path, module: str) -> None:
    three = BackendSettings(threads=3)
    assert open_backend(f"python:{module}:told", three, tmp_path).describe()["threads"] == 3
    assert open_backend(f"python:{module}:bare", None, tmp_path).describe()["threads"] is None
    assert open_backend(f"python:{module}:Box.make", None, tmp_path).describe()["engine"]
    with pytest.raises(SetupError, match="takes no settings"):
        open_backend(f"python:{module}:bare", three, tmp_path)


@pytest.mark.parametrize(
    ("factory", "told"),
    [
        ("nowhere", "module '{}' has no attribute 'nowhere'"),
        ("number", "3 is not a callable object"),
        ("Half", "makes no backend: a Half lacks complete, close; found "),
        ("Odd", "describe\\(\\) must give plain values"),
        ("broken", "failed: RuntimeError: no licence"),
    ],
)
def test_what_is_no_backend_says_why(tmp_path: Path, module: str, factory: str, told: str) -> None:
    with pytest.raises(SetupError, match=told.format(module)):
        open_backend(f"python:{module}:{factory}", None, tmp_path)


def test_a_module_that_is_not_there() -> None:
    with pytest.raises(SetupError, match=r"backend: failed: ModuleNotFoundError: .*'no'"):
        open_backend("python:no.such:thing")


def test_a_near_miss_is_named() -> None:
    with pytest.raises(SetupError, match="did you mean 'litellm'"):
        open_backend("lite-llm:gpt-4o")


def bench_of(folder: Path, factory: str, ids: str = "a") -> Bench:
    lines = [f'{{"item_id": "{i}", "text": "Rest.", "question": "{i}?"}}\n' for i in ids]
    (folder / "answers.jsonl").write_text("".join(lines))
    bench = {
        "name": "mine", "rubric": "medical-safety", "data": "answers.jsonl", "controls": False,
        "judges": [{"name": "polite", "backend": f"python:{factory}"}],
    }  # fmt: skip
    (folder / "bench.yaml").write_text(yaml.safe_dump(bench))
    return load_bench(folder / "bench.yaml")


def test_a_benchmark_finds_a_module_beside_its_file(tmp_path: Path, module: str) -> None:
    loaded, folder = bench_of(tmp_path, f"{module}:bare"), RunFolder(tmp_path / "run")
    run(loaded, folder)
    (verdict,) = folder.verdicts("polite")
    assert verdict.status == "ok"
    assert folder.manifest()["judges"]["polite"]["about"]["backend"]["engine"] == "polite"


def test_what_fails_in_complete_is_said_in_a_line(tmp_path: Path, module: str) -> None:
    loaded, folder = bench_of(tmp_path, f"{module}:Tired", "abc"), RunFolder(tmp_path / "run")
    with pytest.raises(RunError) as caught:
        run(loaded, folder)
    why = "failed: ValueError: no more words (last asked about b)"
    assert str(caught.value) == f"polite: python:{module}:Tired {why}"
    assert [verdict.item_id for verdict in folder.verdicts("polite")] == ["a"]


def test_what_fails_while_it_writes_is_said_in_a_line(
    tmp_path: Path, module: str, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "questions.csv").write_text("id,question\na,Why?\n")
    backend, to = f"python:{module}:Lost", tmp_path / "a.csv"
    code, _, err = call(
        "score", "answers", tmp_path / "questions.csv", "--backend", backend, "--to", to
    )
    assert (code, err) == (1, f"stopped: {backend} failed: ValueError: no words\n")


def test_keys_of_ones_own_stand_in_extra_body(tmp_path: Path, module: str) -> None:
    settings = BackendSettings(extra_body={"tier": "gold"})
    backend = open_backend(f"python:{module}:with_body", settings, tmp_path)
    assert backend.describe()["threads"] == "gold"
