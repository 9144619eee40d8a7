import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from judgebench.errors import SetupError
from judgebench.files import shipped_folder
from judgebench.ranking.task import SPLITS, TaskInstance
from judgebench.ranking.task_file import load_reader

READER = load_reader(shipped_folder("tasks") / "nli4ct.py")
LABELS = READER.LABELS
TRIAL = {
    "Clinical Trial ID": "NCT1",
    "Intervention": ["A:", "  drug  x", "B:", "  placebo"],
    "Eligibility": ["adults"],
    "Adverse Events": [],
    "Results": ["12 of 30"],
}


def read_nli4ct(paths: dict[str, Path]) -> tuple[list[TaskInstance], tuple[str, ...]]:
    return READER.read(paths, None, 0)


def item(**other: Any) -> dict[str, Any]:
    return {
        "Type": "Single", "Section_id": "Intervention", "Primary_id": "NCT1",
        "Statement": " Drug x is given. ", "Label": "Entailment", "Primary_evidence_index": [1, 0],
        **other,
    }  # fmt: skip


def files(folder: Path, *trials: dict[str, Any], **splits: dict[str, Any]) -> dict[str, Path]:
    paths = {key: folder / f"{key}.json.gz" for key in SPLITS}
    for key, path in paths.items():
        items = splits.get(key, {f"{key}-1": item()})
        path.write_bytes(gzip.compress(json.dumps(items).encode()))
    paths["trials"] = folder / "ct.jsonl"
    lines = [json.dumps(trial) for trial in (trials or (TRIAL,))]
    paths["trials"].write_text("\n".join(lines) + "\n")
    return paths


def test_the_published_files_give_the_single_trial_items_of_the_paper(shared_data: Path) -> None:
    folder = shared_data / "nli4ct-2023"
    names = dict(zip(SPLITS, ("train", "dev", "Gold_test"), strict=True))
    paths = {key: folder / f"{name}.json.gz" for key, name in names.items()}
    instances, notes = read_nli4ct({**paths, "trials": folder / "ct.jsonl.gz"})
    found = {s: Counter(i.label for i in instances if i.split == s) for s in SPLITS}
    assert {s: [found[s][label] for label in LABELS] for s in SPLITS} == {
        "train": [533, 502], "development": [70, 70], "test": [115, 114],
    }  # fmt: skip
    for i in instances:
        assert set(i.argument.split("\n")) <= set(i.context.split("\n"))
        assert i.argument
    assert notes[0] == "996 statements that compare two trials are left out."
    assert notes[1].startswith("43 of the 115 trials in the test split also occur in training (85 ")


def test_context_is_the_section_and_argument_its_lines_of_evidence(tmp_path: Path) -> None:
    two = {"x": item(Type="Comparison"), "y": item(Label="Contradiction")}
    (first, *_), notes = read_nli4ct(files(tmp_path, train=two))
    assert (first.item_id, first.label, first.group) == ("y", "Contradiction", "NCT1")
    assert first.text == "Drug x is given."
    assert first.context == "A:\ndrug x\nB:\nplacebo"
    assert first.argument == "A:\ndrug x"
    assert notes[0].startswith("1 statements")
    assert notes[1].startswith("1 of the 1 trials in the test split also occur in training (1 of 1")


def test_an_unknown_trial_and_a_line_that_is_not_there_are_told_together(tmp_path: Path) -> None:
    train = {"a": item(Primary_id="NCT9"), "b": item(Primary_evidence_index=[0, 4])}
    paths = files(tmp_path, train=train, test={"c": item(Primary_evidence_index=[])})
    with pytest.raises(SetupError) as caught:
        read_nli4ct(paths)
    assert [(p.field, p.found, p.allowed) for p in caught.value.problems] == [
        ("a.Primary_id", "NCT9", ""),
        ("b.Primary_evidence_index", "[0, 4]", "one or more of 0 to 3"),
        ("c.Primary_evidence_index", "[]", "one or more of 0 to 3"),
    ]
    assert caught.value.problems[0].file == str(paths["train"])


def test_what_is_no_json_or_no_gzip_is_told(tmp_path: Path) -> None:
    paths = files(tmp_path)
    paths["train"].write_text("{")
    paths["test"].write_bytes(b"\x1f\x8b broken")
    with pytest.raises(SetupError) as caught:
        read_nli4ct(paths)
    assert [p.file for p in caught.value.problems] == [str(paths["train"]), str(paths["test"])]


def test_trials_that_stand_twice_or_lack_lines_are_told(tmp_path: Path) -> None:
    paths = files(tmp_path, TRIAL, {**TRIAL, "Results": "text"})
    with pytest.raises(SetupError) as caught:
        read_nli4ct(paths)
    assert [(p.line, p.field) for p in caught.value.problems] == [
        (2, "Clinical Trial ID"), (2, "Results"),
    ]  # fmt: skip
