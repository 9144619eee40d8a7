"""The shipped example from its annotate.yaml to a decision, and every task through its reader."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
from annotate_case import give_labels, served
from built_case import study_file, table

import judgebench as jb
from judgebench.annotation.export import export
from judgebench.annotation.init import annotate
from judgebench.annotation.screens import Screen, ScreenField
from judgebench.annotation.store import SERVED, open_store
from judgebench.annotation.tasks import read_key
from judgebench.data.conversation import WantedPairs
from judgebench.data.load import load_data
from judgebench.features import FEATURES
from judgebench.files import shipped_folder
from judgebench.records import Dataset, HumanLabel
from judgebench.rubric import load_rubric

Call = Callable[..., tuple[int, str, str]]
PEOPLE = {"ann": "annotator-1", "ben": "annotator-2", "cem": "annotator-3"}  # of the demo


# --- labels: the example --------------------------------------------------------------------------


@dataclass(frozen=True)
class Example:
    """The example in a folder of its own, labelled as the demo's annotators did."""

    folder: Path
    expected: pd.DataFrame  # the demo's rows of the same items and annotators

    @property
    def bench(self) -> Path:
        return self.folder / "annotate" / "bench.yaml"

    def study(self, labels: pd.DataFrame | Path, **columns: str) -> jb.Study:
        demo = self.folder / "demo"
        verdicts = {"qwen": demo / "qwen2.5-coder-1.5b.csv"}
        return jb.study(
            labels, verdicts, demo / "answers.csv", rubric="medical-safety", columns=columns,
        )  # fmt: skip


def labelled_by_http(study: Path, labels: pd.DataFrame) -> set[tuple[str, str]]:
    """Everybody labels what is theirs and the demo knows. Returns the cells without calibration."""
    cells = {(row["item_id"], row["annotator"]): row for row in labels.to_dict("records")}
    screens, done = read_key(study / "key.json").screens, set()
    with served(study) as site:
        for who in PEOPLE:
            person = site.enters(who)
            for item in person.gets("/api/work")["items"]:
                item_id = next(iter(screens[item["id"]].values())).columns["item_id"]
                if (row := cells.get((item_id, who))) is None:
                    continue
                shown = person.gets(f"/api/screen/{item['id']}")
                events = [
                    person.event(item["id"], f["key"], row[f["key"]], hash=shown["hash"])
                    for f in shown["screen"]["fields"]
                ]
                assert len(person.save(*events)["saved"]) == len(events) == 3
                if item["round"] != "calibration":
                    done.add((item_id, who))
    return done


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    folder = tmp_path_factory.mktemp("examples")
    for name in ("annotate", "demo"):
        shutil.copytree(shipped_folder("examples") / name, folder / name)
    names = {of_demo: who for who, of_demo in PEOPLE.items()}
    labels = pd.read_csv(folder / "demo" / "labels.csv", dtype=str, keep_default_na=False)
    labels["annotator"] = labels["annotator"].map(names)
    labels = labels[["item_id", "annotator", "scientific_consensus", "extent_of_harm", "empathy"]]
    study = folder / "annotate" / "study"
    annotate(folder / "annotate" / "annotate.yaml", study)
    done = labelled_by_http(study, labels)
    at = pd.Series(list(zip(labels["item_id"], labels["annotator"], strict=True)))
    export(study, folder / "annotate" / "labels.csv")
    return Example(folder, labels[at.isin(done)])


def cells(labels: pd.DataFrame) -> set[tuple[str, ...]]:
    long = labels.melt(["item_id", "annotator"], var_name="metric", value_name="label")
    return set(long[long["label"] != ""].itertuples(index=False, name=None))


def test_the_export_goes_through_run_and_decide_without_an_edit(
    example: Example, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(example.folder)
    assert len(example.expected) > 90
    code, _, err = call("check", example.bench)
    assert (code, err) == (0, "")
    jb.run(example.bench)  # as `judgebench run`, but for its report
    code, out, _ = call("decide", "runs/demo-labels")
    assert code == 0
    assert "Reference labels: the median of ann, ben and cem" in out
    lines = (example.folder / "runs" / "demo-labels" / "labels.jsonl").read_text().splitlines()
    kept = [HumanLabel(**json.loads(line)) for line in lines]
    found = {(x.item_id, x.annotator, x.metric, x.label) for x in kept if x.label is not None}
    assert found == cells(example.expected)


def test_labels_are_those_of_the_same_cells_whichever_way_they_come(example: Example) -> None:
    annotate = example.folder / "annotate"
    # An export says that its labels are blind, and which items are of one question.
    blind = example.expected.assign(made_blind="yes")
    expected = jb.decide(example.study(blind, question="question")).to_frame()
    for source in ("labels.csv", f"study/{SERVED}"):
        found = jb.decide(example.study(annotate / source)).to_frame()
        pd.testing.assert_frame_equal(found, expected)
    direct = annotate / "direct.yaml"
    direct.write_text(example.bench.read_text().replace("labels.csv", f"study/{SERVED}"))
    labels = [jb.load_bench(bench).dataset.labels for bench in (example.bench, direct)]
    assert labels[0] == labels[1]


def test_decide_needs_no_flag_for_what_was_labelled_blind(example: Example, call: Call) -> None:
    table = example.folder / "annotate" / "labels.csv"
    rows = pd.read_csv(table, dtype=str)
    assert {"annotator", "made_blind", "labelled_at", "queue_position"} < {*rows}
    assert rows["labelled_at"].notna().equals(rows["annotator"].notna())
    judge = example.folder / "demo" / "qwen2.5-coder-1.5b.csv"
    study = example.folder / "annotate" / "study"
    for source in (["--rubric", "medical-safety", table], [study]):
        code, out, _ = call("decide", *source, judge)
        assert code == 0
        assert "The annotators labelled without seeing a judge's labels" in " ".join(out.split())


def test_verdicts_on_every_item_need_no_other_table(tmp_path: Path, call: Call) -> None:
    rows = [["q1a", "I cough."], ["q1b", "I cough."], ["q2a", "Fever?"], ["q2b", "Fever?"]]
    items = [[*row, f"Rest {row[0]}."] for row in rows]
    table(tmp_path / "own.csv", ["item_id", "question", "answer"], items)
    rubric = {
        "name": "r", "version": "1", "instructions": "Say it.",
        "metrics": [{"id": "tone", "title": "Tone", "kind": "nominal", "several": True,
                     "question": "How?", "labels": ["kind", "cold", "odd"]}],
    }  # fmt: skip
    (tmp_path / "rubric.yaml").write_text(json.dumps(rubric))
    settings = {"items": "own.csv", "rubric": "rubric.yaml", "calibration": 1}
    study = annotate(study_file(tmp_path, per_item=3, **settings), tmp_path / "study").study
    with open_store(study) as store:
        for who in store.annotators:
            labels = ("odd", "kind | cold", "kind", "cold")
            for name, label in zip(store.assigned(who), labels, strict=True):
                give_labels(store, who, name, {"tone": label})
    assert call("annotate", "export", study)[0] == 0
    judge = tmp_path / "judge.csv"
    table(judge, ["item_id", "judge", "tone"], [[row[0], "gpt", "kind | cold"] for row in rows])
    for source in (study, study / "labels.csv"):
        code, out, err = call("decide", source, judge)
        assert code == 0, err
        assert "4 answers to 2 questions · 3 labelled" in out
        assert "not confirmed" not in out
        assert "every label that at least" in out


# --- every task -----------------------------------------------------------------------------------


def labelled(folder: Path, task: str, says: Callable[[ScreenField, list[str]], str]) -> Path:
    """A study of two annotators for each item, who all `say` the same of a field and of the texts
    that it is about: all those that are compared, or one."""
    made = annotate(study_file(folder, task, per_item=2), folder / "study")
    with open_store(made.study) as store:
        for who in store.annotators:
            for name in store.assigned(who):
                screen = store.screens[name]
                said = {f.key: says(f, _texts(screen, f)) for f in screen.fields}
                give_labels(store, who, name, said)
    return made.study


def _texts(screen: Screen, field: ScreenField) -> list[str]:
    slots = [s for s in screen.sections if s.slot is not None and s.slot == field.slot]
    compared = [s for s in screen.sections if s.slot is not None and field.prefers]
    return [s.text for s in slots or compared or screen.sections[-1:]]


def read(folder: Path, items: str, rubric: str, pairs: WantedPairs | None = None) -> Dataset:
    """Items with the labels of the study, which are the same from its table and from its file."""
    export(folder / "study")
    items_and = [folder / name for name in items.split()]
    own = load_rubric(rubric, relative_to=folder)
    found = [
        load_data([*items_and, folder / "study" / name], own, pairs=pairs)
        for name in ("labels.csv", str(SERVED))
    ]
    assert found[0].labels == found[1].labels
    assert not [w for one in found for w in one.warnings if "study" in w.file]
    assert set(Counter((x.item_id, x.metric) for x in found[0].labels).values()) == {2}
    return found[0]


def test_criteria_are_read_as_those_of_the_answers(tmp_path: Path) -> None:
    labelled(tmp_path, "criteria", lambda f, _: "met" if f.title.startswith("Names") else "not met")
    data = read(tmp_path, "criteria.csv", "criteria")
    wanted = {"quartz-x": "met", "quartz-y": "not met"}
    assert len(data.labels) == 2 * len(data.answers) == 48
    for label in data.labels:
        assert label.label == wanted[label.item_id.split("#")[1]]


@pytest.mark.skipif("ranking" not in FEATURES, reason="needs the feature `ranking`")
def test_ranks_are_read_by_the_ranking(tmp_path: Path) -> None:
    from judgebench.ranking.human import read_ranks

    labelled(tmp_path, "ranking", lambda _, texts: "1" if "a to you" in texts[0] else "3")
    told = export(tmp_path / "study")
    assert told[-1] == f"Next: judgebench rank suitability {tmp_path / 'study' / 'ranks.csv'}"
    ranks = read_ranks([tmp_path / "study" / "ranks.csv"])
    assert ranks.tasks == ("demo",)
    assert not ranks.warnings
    assert {(r.system, r.rank) for r in ranks.ranks} == {
        ("secretgpt", 3), ("hiddenllama", 1), ("maskedclaude", 3),
    }  # fmt: skip
    assert len(ranks.ranks) == 2 * 12
