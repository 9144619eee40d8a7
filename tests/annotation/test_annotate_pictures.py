"""Pictures that lie beside the table of items, and files that must not be read as pictures."""

import base64
import json
from pathlib import Path

import pytest
from annotate_case import served
from built_case import study_file, table

from judgebench.annotation.init import annotate
from judgebench.annotation.pictures import MAX_BYTES
from judgebench.annotation.sheet import sheet
from judgebench.annotation.store import open_store

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
)
SVG = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"


def pictured(folder: Path, *addresses: str) -> Path:
    """A study whose answers name these files."""
    file = study_file(folder, items="pictured.csv")
    rows = [[f"p{n}", f"Q{n}?", f"See ![scan]({name})."] for n, name in enumerate(addresses)]
    table(folder / "pictured.csv", ["item_id", "question", "text"], rows)
    return file


def test_a_picture_is_shown_and_its_file_is_not_named(tmp_path: Path) -> None:
    file = pictured(tmp_path, "secretgpt/scan%201.png", "secretgpt/scan%201.png")
    (tmp_path / "secretgpt").mkdir()
    (tmp_path / "secretgpt" / "scan 1.png").write_bytes(PNG)
    made = annotate(file, tmp_path / "study")
    assert "1 picture shown" in made.facts
    with served(made.study) as site:
        ann = site.enters("ann")
        whole = json.dumps(ann.gets("/api/assignment"))
        assert "secretgpt" not in whole
        name = whole.partition("(picture:")[2][:32]
        reply = ann.asks("GET", f"/api/picture/{name}")
        assert (reply.status, reply.value) == (200, PNG)
        assert reply.headers["Content-Type"] == "image/png"
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert site.enters("lead").asks("GET", f"/api/lead/picture/{name}").value == PNG
        assert site.stranger.asks("GET", f"/api/picture/{name}").status == 401
        for other in ("0" * 32, "..%2f..%2fkey.json", "scan%201.png"):
            assert ann.asks("GET", f"/api/picture/{other}").status == 404
    with open_store(made.study) as store:
        assert base64.b64encode(PNG).decode() in sheet(store, "ann")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("scan.svg", SVG), ("scan.png", SVG), ("page.png", b"<html><script>1</script>"),
        ("labels.png", b"item_id,label\n"), ("large.png", PNG + bytes(MAX_BYTES)),
        ("empty.gif", b""),
    ],
)  # fmt: skip
def test_what_is_no_picture_stays_text(tmp_path: Path, name: str, content: bytes) -> None:
    file = pictured(tmp_path, name)
    (tmp_path / name).write_bytes(content)
    made = annotate(file, tmp_path / "study")
    assert any("not shown" in fact and name in fact for fact in made.facts)
    with open_store(made.study) as store:
        assert store.pictures == []
        assert any(f"![scan]({name})" in str(one) for one in store.screens.values())


@pytest.mark.parametrize(
    "address",
    [
        "secret.png", "nowhere.png", "%00.png", "../secret.png", "%2e%2e/secret.png",
        "in/../../secret.png", "link.png", "/etc/passwd", "https://evil.example/a.png",
        "file:///etc/passwd", "//evil.example/a.png", "data:image/png;base64,iVBORw0KGgo=",
    ],
)  # fmt: skip
def test_no_file_outside_the_folder_of_the_table_is_read(tmp_path: Path, address: str) -> None:
    folder = tmp_path / "data"
    file = pictured(folder, address)
    (tmp_path / "secret.png").write_bytes(PNG)
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    made = annotate(file, tmp_path / "study")
    with open_store(made.study) as store:
        assert store.pictures == []
        assert any(address in str(one) for one in store.screens.values())
    assert [f for f in made.facts if "not shown" in f and address in f], made.facts


def test_who_lacks_the_extra_for_formulas_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = pictured(tmp_path, "a.png")
    table(tmp_path / "pictured.csv", ["item_id", "text"], [["p", r"It is \(x^2\)."]])
    monkeypatch.setattr("judgebench.people.markdown.find_spec", lambda _: None)
    facts = annotate(file, tmp_path / "study").facts
    assert any("pip install" in fact and "maths" in fact for fact in facts)
    table(tmp_path / "pictured.csv", ["item_id", "text"], [["p", "It costs $5, not $10."]])
    assert "maths" not in str(annotate(file, tmp_path / "other"))
