"""The offline sheet, and files that come back from one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from annotate_case import plain, small_study

from judgebench.annotation.store import open_store

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return small_study(tmp_path / "study", [plain("s1"), plain("s2")], {"ann": ["s1"], "ben": []})


def given(folder: Path, *changes: dict[str, Any], **other: Any) -> Path:
    """A file as the sheet of ann saves it, with one event for each of the changes."""
    event = {
        "client_id": "0" * 16, "screen": "s1", "hash": plain("s1").hash, "field": "harm",
        "label": "yes", "at": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    with open_store(folder) as store:
        known = {"study": store.meta["study"], "annotator": "ann"}
    events = [{**event, **change} for change in changes]
    file = folder.parent / "ann.events.json"
    said = {"kind": "judgebench annotation events", **known, "events": events, **other}
    file.write_text(json.dumps(said))
    return file


def n_events(study: Path) -> int:
    with open_store(study) as store:
        return len(store.rows("SELECT n FROM events"))


def test_a_sheet_is_one_file_about_one_person(study: Path, tmp_path: Path, call: Call) -> None:
    to = tmp_path / "ann.html"
    code, out, _ = call("annotate", "sheet", str(study), "ann", "--to", str(to))
    assert (code, out.startswith(f"{to}: the page of ann")) == (0, True)
    page = to.read_text("utf-8")
    assert '"s1"' in page
    assert '"s2"' not in page
    code, _, err = call("annotate", "sheet", str(study), "zoe", "--to", str(tmp_path / "zoe.html"))
    assert (code, "is not among the annotators" in err) == (2, True)
    assert not (tmp_path / "zoe.html").exists()
    to.write_text("another page")
    code, _, err = call("annotate", "sheet", str(study), "ann", "--to", str(to))
    assert (code, f"{to}: --to: exists and is not overwritten" in err) == (2, True), err
    assert to.read_text() == "another page"
    nowhere = tmp_path / "nowhere" / "ann.html"
    code, _, err = call("annotate", "sheet", str(study), "ann", "--to", str(nowhere))
    assert (code, f"{nowhere} cannot be written" in err) == (1, True), err


def test_events_are_added_once_and_what_does_not_fit_is_named(study: Path, call: Call) -> None:
    wrong = {"client_id": "1" * 16, "label": "perhaps"}
    others = {"client_id": "2" * 16, "screen": "s2", "hash": plain("s2").hash}
    file = given(study, {}, wrong, others)
    code, out, err = call("annotate", "import", str(study), str(file))
    assert (code, out) == (1, "ann: 1 new label taken, 0 were there already\n")
    assert err.splitlines() == [
        "refused:", "event 2 (s1, harm: 'perhaps'): is no label",
        "event 3 (s2, harm: 'yes'): is not yours to label",
    ]  # fmt: skip
    again = call("annotate", "import", str(study), str(file))[1]
    assert again == "ann: 0 new labels taken, 1 were there already\n"
    assert n_events(study) == 1


def test_every_problem_of_a_file_is_named_and_nothing_is_kept(study: Path, call: Call) -> None:
    wrong = [{"client_id": "short"}, {"label": 7}, {"field": None}, {"at": "yesterday"}]
    file = given(study, {}, *wrong)
    code, _, err = call("annotate", "import", str(study), str(file))
    assert code == 2
    for place in ("events.1.client_id", "events.2.label", "events.3.field", "events.4.at"):
        assert place in err.replace("[", ".").replace("]", ""), err
    for changes, word in [
        ({"study": "other"}, "another study"), ({"annotator": "zoe"}, "not among the annotators"),
        ({"kind": "other"}, "kind"), ({"events": 1}, "events"),
    ]:  # fmt: skip
        code, _, err = call("annotate", "import", str(study), str(given(study, {}, **changes)))
        assert (code, word in err) == (2, True), err
    assert n_events(study) == 0


def test_import_says_what_it_takes(study: Path, call: Call) -> None:
    none, table = study.parent / "none.json", study.parent / "labels.csv"
    assert call("annotate", "import", study, none)[::2] == (2, f"error: {none}: no such file\n")
    table.write_text("item_id,annotator,harm\ns1,ann,yes\n")
    code, _, err = call("annotate", "import", study, table)
    assert (code, n_events(study)) == (2, 0)
    assert "labels.csv: is not JSON" in err
