"""Metrics on which several labels may be right: read from cells, and held against response sets."""

import json

import pandas as pd
import pytest
import yaml

import judgebench as jb
from judgebench.alignment.analysis import items_of
from judgebench.alignment.report import alignment_part
from judgebench.errors import SetupError
from judgebench.rubric import Metric, Rubric

LABELS = ["calm", "warm", "curt", "rude"]
METRIC = {
    "id": "tone", "title": "Tone", "question": "Which tone?", "kind": "nominal",
    "labels": LABELS, "several": True,
}  # fmt: skip


def rubric_file(folder, **changes):
    path = folder / "tone.yaml"
    value = {
        "name": "tone", "version": "1", "instructions": "Label the tone.",
        "metrics": [{**METRIC, **changes}],
    }  # fmt: skip
    path.write_text(yaml.safe_dump(value), encoding="utf-8")
    return path


def table(cells, who="annotator"):
    """One row per item and person, of `{"A": [cell, …]}`."""
    rows = [(f"i{i}", name, "tone", x) for name, xs in cells.items() for i, x in enumerate(xs)]
    return pd.DataFrame(rows, columns=["item_id", who, "metric", "label"])


# Of each item: two labels are defensible, and three annotators name one first that no judge gives.
PEOPLE = {
    "A": ["calm | warm", '["calm", "warm"]', "curt;rude", "calm"] * 6,
    "B": ["calm | warm", "calm | warm", "curt | rude", "calm"] * 6,
    "C": ["calm", "calm;warm", '["curt"]', "warm"] * 6,
}
JUDGES = {
    "second": ["warm", "warm", "rude", "calm"] * 6,
    "first": ["calm", "calm", "curt", "rude"] * 6,
    "both": ["calm | warm", "calm | warm", "curt | rude", "calm"] * 6,
}


@pytest.fixture
def study(tmp_path):
    return jb.study(table(PEOPLE), table(JUDGES, "judge"), rubric=rubric_file(tmp_path))


def found(study, key, **keys):
    return jb.align(study).results.find(key, "several", metric="tone", **keys)


def test_a_cell_is_read_however_it_lists_labels(study):
    sets = study.humans["tone"].ratings.sets
    assert sets.tolist()[:4] == [[3, 3, 1], [3, 3, 3], [12, 12, 4], [1, 1, 2]]
    assert study.humans["tone"].ratings.values.tolist()[2] == [2, 2, 2]  # named first


def test_the_table_of_a_paper_says_which_of_several_labels_counts(study):
    notes = " ".join(str(jb.align(study).table()).split())
    assert "Tone: of several labels the one named first counts." in notes


def test_a_label_that_enough_annotators_accept_is_right_though_another_is_named_first(study):
    # Of the items three have two accepted labels of three annotators, the last has one.
    accuracy = {j: jb.align(study).score("accuracy", j, "tone").value for j in JUDGES}
    assert accuracy["first"] > accuracy["second"]
    hit = {j: found(study, "hit", judge=j, failures="left_out").value for j in JUDGES}
    assert hit == {"second": 1.0, "first": 0.75, "both": 1.0}
    coverage = found(study, "coverage", judge="second", failures="left_out")
    assert coverage.value == pytest.approx((3 * 0.5 + 1) / 4)
    assert found(study, "exact", judge="both", failures="left_out").value == 1.0


def test_each_annotator_stands_beside_the_others(study):
    # C names calm, calm and warm, curt, warm; A and B agree on every item.
    assert found(study, "hit", who="C").value == 0.75
    assert found(study, "exact", who="C").value == 0.25
    assert found(study, "hit", who="all").n == 72


def test_a_label_that_any_annotator_accepts_may_be_enough(tmp_path):
    def hit(accepted_by):
        made = jb.study(
            table(PEOPLE), table({"j": ["calm", "calm", "curt", "warm"] * 6}, "judge"),
            rubric=rubric_file(tmp_path), truth={"accepted_by": accepted_by},
        )  # fmt: skip
        estimate = found(made, "hit", judge="j", failures="left_out")
        return estimate.value, estimate.n

    # On the last item all three agree on no label, so that it has no response set.
    assert [hit("any"), hit(0.5), hit(1)] == [(1.0, 24), (0.75, 24), (1.0, 18)]


def test_a_missing_set_is_counted_three_ways(tmp_path):
    said = ["calm", "calm", "curt", ""] * 6
    made = jb.study(table(PEOPLE), table({"j": said}, "judge"), rubric=rubric_file(tmp_path))
    three = {f: found(made, "hit", judge="j", failures=f) for f in ("left_out", "worst", "best")}
    assert {f: e.value for f, e in three.items()} == {"left_out": 1, "worst": 0.75, "best": 1}
    assert (three["left_out"].n, three["left_out"].n_missing) == (18, 6)


def test_lists_of_a_json_file_are_sets_too(tmp_path):
    lines = [
        {"item_id": f"i{i}", "annotator": who, "metric": "tone", "label": labels}
        for i in range(4) for who, labels in (("A", ["warm", "calm"]), ("B", ["warm"]))
    ]  # fmt: skip
    path = tmp_path / "labels.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    ratings = jb.study(path, rubric=rubric_file(tmp_path)).humans["tone"].ratings
    assert ratings.sets.tolist() == [[3, 2]] * 4
    assert ratings.values.tolist() == [[1, 1]] * 4


def test_the_table_has_judges_baselines_and_annotators_and_says_what_the_rest_rests_on(study):
    blocks = alignment_part(jb.align(study)).blocks
    tables = {table.key: table for block in blocks for table in block.tables}
    names = [line[1].value for line in tables["several"].rows]
    assert {"second", "first", "both", "A", "B", "C", "All pooled"} <= set(names)
    assert any(name.endswith("(baseline)") for name in names)
    assert any("the label named first" in note for note in jb.align(study).notes)


def test_metrics_with_one_right_label_are_as_before(tmp_path):
    people = {who: [x.split(" ")[0].split(";")[0] for x in xs] for who, xs in PEOPLE.items()}
    people = {who: ["calm" if x[0] == "[" else x for x in xs] for who, xs in people.items()}
    made = jb.study(table(people), rubric=rubric_file(tmp_path, several=False))
    assert made.humans["tone"].ratings.sets is None
    assert not jb.align(made).results.select("several")
    assert not any("several" in note for note in made.notes)


def test_a_list_is_no_label_where_one_is_right(tmp_path):
    with pytest.raises(SetupError, match="is not a label of tone"):
        jb.study(table(PEOPLE), rubric=rubric_file(tmp_path, several=False))


def test_each_part_of_a_list_must_be_a_label(tmp_path):
    people = {**PEOPLE, "A": ["calm | warmth", *PEOPLE["A"][1:]]}
    with pytest.raises(SetupError, match=r"is not a label of tone.*calm \| warmth"):
        jb.study(table(people), rubric=rubric_file(tmp_path))


def test_the_hash_of_a_rubric_without_several_is_what_it_was():
    def rubric(**more):
        return Rubric(name="a", version="1", instructions="b", metrics=[{**METRIC, **more}])

    plain = Rubric.model_validate(
        {"name": "a", "version": "1", "instructions": "b",
         "metrics": [{k: v for k, v in METRIC.items() if k != "several"}]}
    )  # fmt: skip
    assert rubric(several=False).content_hash == plain.content_hash
    assert rubric().content_hash != plain.content_hash


@pytest.mark.parametrize(
    "changes", [{"labels": ["a|b", "c"]}, {"kind": "preference", "labels": [*"abc"]}]
)
def test_what_cannot_take_several_is_refused(changes):
    with pytest.raises(ValueError, match="several"):
        Metric.model_validate({**METRIC, **changes})


def test_a_set_is_read_again_from_a_text():
    metric = Metric.model_validate(METRIC)
    assert metric.parse('["Warm", "calm", "warm"]') == "warm | calm"
    assert metric.set_of("warm | calm") == 3
    assert metric.index("warm | calm") == 1
    assert metric.parse("warm | cold") is None
    assert metric.parse("[]") is None
    with pytest.raises(SetupError):
        metric.set_of("warm | cold")


def test_verdicts_are_listed_with_all_their_labels(study):
    head, *rows = jb.align(study).part.files["verdicts.csv"]()
    of = {(row[head.index("item_id")], row[head.index("judge")]): row for row in rows}
    assert of["i2", "both"][head.index("tone")] == "curt | rude"
    assert of["i2", "first"][head.index("tone")] == "curt"
    assert {row[head.index("status")] for row in rows} == {"ok"}


def shown(study):
    """What stands on the page of items: texts by who, for the first four items."""
    (said,) = items_of(study).said

    def texts(signs):
        return [said.labels[ord(sign) - 48] if sign >= "0" else "" for sign in signs[:4]]

    of = {**said.annotators, **said.judges, "reference": said.reference}
    return {who: texts(signs) for who, signs in of.items()}


def test_the_items_page_shows_whole_sets(study):
    found = shown(study)
    assert found["A"] == ["calm | warm", "calm | warm", "curt | rude", "calm"]
    assert found["C"] == ["calm", "calm | warm", "curt", "warm"]
    assert found["both"] == found["A"] == found["reference"]
    assert found["second"] == ["warm", "warm", "rude", "calm"]


def test_adjudicated_sets_are_the_response_sets_where_they_count(tmp_path):
    settled = pd.DataFrame(
        [("i0", "adjudicated", "tone", "rude | curt"), ("i3", "adjudicated", "tone", "warm")],
        columns=["item_id", "annotator", "metric", "label"],
    )
    given = pd.concat([table(PEOPLE), settled]), table(JUDGES, "judge")
    plain, counts = (
        jb.study(*given, rubric=rubric_file(tmp_path), truth={"adjudicated": yes})
        for yes in (False, True)
    )
    assert shown(counts)["reference"] == ["curt | rude", "calm | warm", "curt | rude", "warm"]
    assert shown(plain)["reference"][0] == "calm | warm"
    assert counts.n_adjudicated == 2
    # Of 24 items two are settled against "both"; between annotators nothing changes.
    hits = [found(one, "hit", judge="both", failures="left_out").value for one in (plain, counts)]
    assert hits == [1, pytest.approx(22 / 24)]
    for who in "ABC":
        assert found(plain, "hit", who=who) == found(counts, "hit", who=who)
    said = counts.config.in_words(counts.rubric.metrics[0])
    assert said.startswith("the adjudicated label, and without one every label that at least 50 %")
    decided = [jb.decide(one).results.select("decision") for one in (plain, counts)]
    assert decided[0] != decided[1]


def test_baselines_learn_from_every_label_of_a_set(tmp_path):
    people = {
        "A": ["calm | rude", "warm | rude", "curt | rude", "calm | rude"] * 6,
        "B": ["warm | rude", "curt | rude", "calm | rude", "warm | rude"] * 6,
    }
    made = jb.study(table(people), rubric=rubric_file(tmp_path))
    (majority,) = [judge for judge in made.controls if judge.name == "constant-majority"]
    assert {v.labels["tone"] for v in majority.verdicts.values()} == {"rude"}
    (prior,) = [judge for judge in made.controls if judge.name == "prior"]
    assert {v.labels["tone"] for v in prior.verdicts.values()} == {"calm", "warm", "curt", "rude"}


def plain(cells, name):
    """A table without a rubric: a row for each cell."""
    rows = [(f"i{i}", who, x) for who, xs in cells.items() for i, x in enumerate(xs)]
    return pd.DataFrame(rows, columns=["item_id", name, "tone"])


@pytest.mark.parametrize("as_lists", [False, True])
def test_several_labels_in_a_cell_are_asked_about(as_lists):
    people = {
        "A": ["calm; warm", "warm; calm", "curt;rude", "calm"] * 6,
        "B": ["calm; warm", "warm", "rude", "calm"] * 6,
        "C": ["calm", "warm", "curt", "warm"] * 6,
    }
    judges = {"one": ["warm", "calm", "rude; curt", "rude"] * 6}
    given = plain(people, "annotator"), plain(judges, "judge")
    for frame in given if as_lists else ():
        frame["tone"] = [[x.strip() for x in text.split(";")] for text in frame.tone]
    columns = {"tone": "label"} if as_lists else {}
    with pytest.raises(jb.Unsettled, match="row 2 of tone holds") as unsettled:
        jb.study(*given, columns=columns)
    columns |= next(r.columns for r in unsettled.value.questions[0].readings if "sev" in r.means)
    made = jb.study(*given, columns=columns)
    (metric,) = made.rubric.metrics
    assert (metric.several, sorted(metric.label_texts)) == (True, sorted(LABELS))
    # Response sets: calm, warm; warm, calm; curt, rude (rude and curt by two of three); calm.
    assert found(made, "hit", judge="one", failures="left_out").value == pytest.approx(0.5)


@pytest.mark.parametrize("cells", [["yes", "no", "yes; with caveats", "no"], ["1;2;2", "1", "2"]])
def test_other_signs_between_words_make_no_sets_if_so_said(cells):
    frame = plain({"A": cells * 6, "B": cells * 6}, "annotator")
    with pytest.raises(jb.Unsettled) as unsettled:
        jb.study(frame)
    columns = next(
        r.columns for r in unsettled.value.questions[0].readings if "is a label" in r.means
    )
    (metric,) = jb.study(frame, columns=columns).rubric.metrics
    assert (metric.several, {*metric.label_texts}) == (False, {*cells})
