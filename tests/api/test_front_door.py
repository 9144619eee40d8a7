"""`import judgebench`: what is public, how fast it is there, and that packages never hide it."""

import pkgutil
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import judgebench as jb
from judgebench.data.load import load_data
from judgebench.errors import SetupError
from judgebench.rubric import load_rubric


@pytest.mark.parametrize("name", jb.__all__)
def test_every_public_name_is_there_and_is_no_module(name: str) -> None:
    assert getattr(jb, name) is not None
    assert name in dir(jb)
    assert type(getattr(jb, name)).__name__ != "module"


EVAL = Path(__file__).parents[1] / "importers" / "files" / "inspect.eval"


def imported(folder: Path) -> None:
    jb.import_file(EVAL, folder / "to")


def parquet(folder: Path) -> None:
    (folder / "a.parquet").write_bytes(b"PAR1")
    load_data(folder / "a.parquet", load_rubric("support-tone"))


@pytest.mark.parametrize(
    ("read", "module", "package", "extra"),
    [
        (parquet, "pyarrow", "pyarrow", "parquet"),
        (imported, "inspect_ai.log", "inspect-ai", "inspect"),
    ],
)
def test_a_missing_package_names_what_to_install(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    read: Callable[[Path], None],
    module: str,
    package: str,
    extra: str,
) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # as where it is not installed
    with pytest.raises(jb.MissingExtra) as error:
        read(tmp_path)
    assert f"needs the package {package}, which is not installed" in str(error.value)
    assert error.value.extra == extra


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        jb.nothing  # noqa: B018


def test_no_module_is_named_like_a_public_name() -> None:
    for module in pkgutil.iter_modules(jb.__path__):
        assert module.name not in jb.__all__


def test_a_run_folder_is_taken_wherever_a_study_is(here: Path, tmp_path: Path) -> None:
    study = jb.open_run("runs/small")
    for function in (jb.align, jb.decide, jb.estimate):
        assert function("runs/small").results.rows == function(study).results.rows  # type: ignore[operator]
    named = jb.align(here / "runs" / "small", truth="majority")
    assert named.results.rows == jb.align(jb.open_run("runs/small", truth="majority")).results.rows
    assert list(jb.analyse("runs/small")) == list(jb.analyse(study))
    assert (
        jb.report("runs/small", tmp_path / "out").keys()
        == jb.report(study, tmp_path / "all").keys()
    )
    with pytest.raises(SetupError, match="a study has these already"):
        jb.decide("runs/small", "verdicts.csv")
    for held in (study, "runs/small"):
        with pytest.raises(SetupError, match=r"holds a study already: give it to jb\.decide"):
            jb.study(held)  # type: ignore[arg-type]


def test_what_is_no_study_is_said_so_in_one_line(here: Path) -> None:
    decided = jb.decide("runs/small")
    cases = (
        (lambda: jb.report("labels.csv", "out"), "labels.csv"),
        (lambda: jb.compare(decided, decided), "Decisions"),
        (lambda: jb.prefer(pd.read_csv("labels.csv")), "DataFrame"),
    )
    for call, found in cases:
        with pytest.raises(SetupError, match="give a study or a run folder") as told:
            call()  # type: ignore[no-untyped-call]
        assert str(told.value).endswith(f"found {found}")
        assert "\n" not in str(told.value)
    for looks in (0.5, "0.5", ["half"]):
        with pytest.raises(SetupError, match=r"looks: give a list, .* \[0.33, 0.67\]"):
            jb.decide("runs/small", looks=looks)  # type: ignore[arg-type]


def test_rows_that_are_no_table_are_said_to_make_one() -> None:
    rubric = jb.Rubric.from_labels({"tone": ["Friendly", "Rude"]})
    for given in ([{"item_id": "a", "tone": "Rude"}], {"item_id": ["a"], "tone": ["Rude"]}):
        for known in (None, rubric):
            with pytest.raises(SetupError, match=r"pd\.DataFrame\(x\) makes one of lists"):
                jb.study(given, rubric=known)  # type: ignore[arg-type]


def test_a_run_folder_that_is_not_there_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no such folder"):
        jb.open_run(tmp_path / "nosuch")
    with pytest.raises(SetupError, match=r"holds no run\.json"):
        jb.open_run(tmp_path)


def test_runs_of_one_name_are_told_apart_by_their_folders(here: Path, tmp_path: Path) -> None:
    again = shutil.copytree(here / "runs" / "small", tmp_path / "v2")
    first, second, *_ = jb.compare("runs/small", again).compared
    assert first.endswith("runs/small.")
    assert second.endswith("v2.")
