"""Fixtures shared by all tests."""

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import BROWSER, Browser, started
from hypothesis import settings

from judgebench.cli.app import main
from judgebench.errors import JudgebenchError
from judgebench.models.checkpoints import fetch

# How many drawn examples a law is tried on; HYPOTHESIS_PROFILE says it.
settings.register_profile("quick", max_examples=40, deadline=None)
settings.register_profile("few", max_examples=5, deadline=None)
settings.register_profile("thorough", max_examples=400, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
# One thread for each of several workers, in the processes that they start too.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("JUDGEBENCH_THREADS", "1")
pytest_plugins = ["alignment_case"]
REPO = Path(__file__).resolve().parents[1]
SHARED_DATA = REPO.parent / "shared" / "data"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that take a second or more, all their cases together, are `long` like those that take
    minutes; long.txt names them."""
    names = {*(REPO / "tests" / "long.txt").read_text("utf-8").split()}
    for item in items:
        if item.nodeid.partition("[")[0] in names:
            item.add_marker("long")


def pytest_collection_finish() -> None:
    """What was collected stays to the end: the garbage collector need not look at it again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public data sets, which are not part of the project."""
    if not SHARED_DATA.is_dir():
        pytest.skip("needs the public data sets in ../shared/data, which are not distributed here")
    return SHARED_DATA


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The weights of the small embedded model; about 90 MB are downloaded the first time."""
    pytest.importorskip("xllamacpp", reason="needs the extra `embedded`")
    try:
        return fetch("smollm2")
    except JudgebenchError as error:
        pytest.skip(f"the weights of smollm2 cannot be had: {error}")


@pytest.fixture(scope="session")
def minilm() -> Path:
    """The folder of the small sentence encoder; about 90 MB are downloaded the first time."""
    try:
        return fetch("minilm")
    except JudgebenchError as error:
        pytest.skip(f"the weights of minilm cannot be had: {error}")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests of a module."""
    if BROWSER is None:
        pytest.skip("needs chromium, which is not installed")
    with started(tmp_path_factory.mktemp("browser")) as running:
        yield running


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    """Call the command line; returns exit code, standard output and standard error."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["judgebench", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        out, err = capsys.readouterr()
        return (code if isinstance(code, int) else 0 if code is None else 1), out, err

    return run
