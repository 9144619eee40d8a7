from pathlib import Path

import pytest

from judgebench.errors import SetupError
from judgebench.files import find_file, shipped_folder, shipped_names

REPO = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("kind", ["prompts", "rubrics", "examples"])
def test_the_folders_of_a_checkout(kind: str) -> None:
    assert shipped_folder(kind) == REPO / kind


def test_names_stand_without_suffix_and_sorted() -> None:
    names = shipped_names("rubrics", ".yaml")
    assert "medical-safety" in names
    assert names == sorted(names)
    assert all((REPO / "rubrics" / f"{name}.yaml").is_file() for name in names)


def test_a_folder_that_no_installation_has() -> None:
    with pytest.raises(SetupError, match="nothing-of-ours"):
        shipped_folder("nothing-of-ours")


def test_a_shipped_name_is_found(tmp_path: Path) -> None:
    assert find_file("rubrics", "medical-safety", ".yaml", tmp_path) == (
        REPO / "rubrics" / "medical-safety.yaml"
    )


def test_a_path_wins_over_a_shipped_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "medical-safety"
    own.write_text("")
    assert find_file("rubrics", "medical-safety", ".yaml", relative_to=tmp_path) == own
    monkeypatch.chdir(tmp_path)
    assert find_file("rubrics", "medical-safety", ".yaml").resolve() == own.resolve()


def test_a_path_is_seen_from_the_file_that_names_it_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    near, here = tmp_path / "near", tmp_path / "here"
    for folder in (near, here):
        folder.mkdir()
        (folder / "r.yaml").write_text("")
    monkeypatch.chdir(here)
    assert find_file("rubrics", "r.yaml", ".yaml", relative_to=near) == near / "r.yaml"
    (near / "r.yaml").unlink()
    assert find_file("rubrics", "r.yaml", ".yaml", relative_to=near).resolve() == here / "r.yaml"
    assert find_file("rubrics", str(here / "r.yaml"), ".yaml", near) == here / "r.yaml"


@pytest.mark.parametrize(
    "name", ["no-such", "../rubrics/medical-safety", "", ".", "medical-safety/"]
)
def test_an_unknown_name_is_answered_with_the_shipped_ones(name: str, tmp_path: Path) -> None:
    with pytest.raises(SetupError) as caught:
        find_file("rubrics", name, ".yaml", tmp_path)
    assert "medical-safety, " in str(caught.value)
    assert repr(name) in str(caught.value)
