from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from stress_report_case import alone, make_stress

from judgebench.align import Alignment
from judgebench.report.old.write import write_report


@pytest.fixture(scope="module")
def bare(tiny: Alignment) -> Alignment:
    """Little to draw: these tests are about files."""
    return replace(tiny, scores=tiny.scores[:1], distribution=(), confusions=())


HEAT_MAPS = [
    f"plots/stress_{name}-heat.{kind}"
    for name in ("flips", "missed", "planted")
    for kind in ("png", "pdf")
]


def test_every_file_is_written_and_named(bare: Alignment, tmp_path: Path) -> None:
    written = write_report(bare, tmp_path / "new" / "folder")
    assert {key: path.name for key, path in written.items() if "/" not in key} == {
        "csv": "alignment.csv",
        "markdown": "tables.md",
        "latex": "tables.tex",
        "html": "report.html",
    }
    assert "plots/heat_map_accuracy.pdf" in written
    on_disk = {p for p in (tmp_path / "new" / "folder").rglob("*") if p.is_file()}
    assert on_disk == set(written.values())
    assert all(path.stat().st_size > 0 for path in written.values())


def test_a_second_report_replaces_the_first(bare: Alignment, tmp_path: Path) -> None:
    write_report(bare, tmp_path)
    written = write_report(replace(bare, name="another"), tmp_path)
    assert "another" in written["html"].read_text(encoding="utf-8")


def test_a_file_that_cannot_be_replaced_leaves_nothing_half_written(
    bare: Alignment, tmp_path: Path
) -> None:
    before = write_report(bare, tmp_path)["csv"].read_bytes()
    (tmp_path / "report.html").unlink()
    (tmp_path / "report.html").mkdir()
    (tmp_path / "report.html" / "kept").write_text("kept")
    with pytest.raises(OSError, match=r"report\.html"):
        write_report(bare, tmp_path)
    assert (tmp_path / "alignment.csv").read_bytes() == before
    assert (tmp_path / "report.html" / "kept").read_text() == "kept"
    assert not list(tmp_path.rglob("*.tmp"))


def test_lone_surrogates_can_be_written(hostile: Alignment, tmp_path: Path) -> None:
    bare = replace(hostile, name="a\ud800b", scores=hostile.scores[:1], confusions=())
    written = write_report(bare, tmp_path)
    assert "a\ufffdb" in written["markdown"].read_text(encoding="utf-8")


def test_a_stress_result_adds_its_files_and_changes_none_of_the_alignment(
    bare: Alignment, tmp_path: Path
) -> None:
    plain = write_report(bare, tmp_path / "plain")
    both = write_report(bare, tmp_path / "both", make_stress())
    added = {
        "stress_csv",
        *(
            f"plots/stress_{n}-heat.{k}"
            for n in ("flips", "missed", "planted")
            for k in ("png", "pdf")
        ),
    }
    assert set(both) == set(plain) | added
    assert both["stress_csv"].name == "stress.csv"
    for key in set(plain) - {"markdown", "latex", "html"}:
        assert both[key].read_bytes() == plain[key].read_bytes()
    for key, path in write_report(bare, tmp_path / "again", None).items():
        assert path.read_bytes() == plain[key].read_bytes()
        assert b"stress" not in path.read_bytes().lower()


def test_a_stress_test_needs_no_human_labels(tmp_path: Path) -> None:
    written = write_report(alone(), tmp_path, make_stress())
    figures = [key for key in written if key.startswith("plots/")]
    assert figures == [
        *(
            f"plots/stress_{n}-heat.{k}"
            for n in ("flips", "missed", "planted")
            for k in ("png", "pdf")
        )
    ]
    assert all(path.stat().st_size > 0 for path in written.values())
