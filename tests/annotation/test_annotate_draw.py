"""Items that are drawn to be labelled once more, and what these labels say: of experts, of whoever
adjudicates, of an annotator who labels again."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from annotate_case import served
from browser import Browser, NewTab, needs_browser
from page_case import SAVED, TITLE, press, signed_in
from scipy.stats import beta, binomtest

import judgebench as jb
from judgebench.annotation.draw import LEVEL, p_of_new_labels
from judgebench.annotation.tasks import read_key

Call = Callable[..., tuple[int, str, str]]
N = 200
IDS = np.array([f"i{n}" for n in range(N)])
LABELS = np.array(["ok", "odd", "bad"])
PEOPLE = ("ann", "ben", "cem")
RNG = np.random.default_rng(0)
TRUE = RNG.integers(0, 3, N)
GIVEN = {
    name: LABELS[np.where(RNG.random(N) < 0.1, (TRUE + 1) % 3, TRUE)] for name in (*PEOPLE, "j")
}
GIVEN["k"] = np.where(np.arange(N) < 20, "", GIVEN["ann"])  # a judge that failed on 20 items


def labels_table(people: tuple[str, ...] = PEOPLE) -> pd.DataFrame:
    wide = pd.DataFrame({"item_id": IDS, **{name: GIVEN[name] for name in people}})
    return wide.melt("item_id", var_name="annotator", value_name="tone")


def study_of(people: tuple[str, ...] = PEOPLE, judges: tuple[str, ...] = ("j",)) -> jb.Study:
    verdicts = {j: pd.DataFrame({"item_id": IDS, "tone": GIVEN[j]}) for j in judges} or None
    answers = pd.DataFrame({"item_id": IDS, "text": IDS})
    rubric = jb.Rubric.from_labels({"tone": [*LABELS]})
    return jb.study(labels_table(people), verdicts, answers, rubric=rubric)


@pytest.fixture(scope="module")
def study() -> jb.Study:
    return study_of()


def by(who: str, drawn: pd.DataFrame, labels: dict[str, str]) -> pd.DataFrame:
    """The labels of somebody on drawn items."""
    tone = [labels[item_id] for item_id in drawn.item_id]
    return pd.DataFrame({"item_id": drawn.item_id, "annotator": who, "tone": tone})


def rows_of(drawn: pd.DataFrame) -> list[int]:
    return [int(item_id[1:]) for item_id in drawn.item_id]


def differ(*names: str) -> set[str]:
    return {str(IDS[n]) for n in range(N) if len({GIVEN[name][n] for name in names}) > 1}


# --- agreed: shared errors ------------------------------------------------------------------------


def test_agreed_items_hide_their_label(study: jb.Study) -> None:
    drawn = jb.draw(study, "agreed")
    assert len(drawn) == 59 == drawn.item_id.nunique()
    assert differ(*PEOPLE, "j").isdisjoint(drawn.item_id)
    assert list(drawn) == ["item_id", "group", "system", "question", "reference", "text"]
    assert jb.draw(study, "agreed").equals(drawn)
    assert not jb.draw(study, "agreed", seed=1).equals(drawn)


def test_contradictions_have_an_exact_interval(study: jb.Study) -> None:
    drawn = jb.draw(study, "agreed")
    labels = dict(zip(IDS, GIVEN["j"], strict=True))
    for item_id in drawn.item_id[:2]:
        labels[item_id] = next(label for label in LABELS if label != labels[item_id])
    sentence = jb.count_drawn(study, "agreed", by("dr-x", drawn, labels))
    low, high = beta.ppf(0.025, 2, 58), beta.ppf(0.975, 3, 57)
    assert "contradicts 2 of 59" in sentence
    assert f"{2 / 59:.3f} [{low:.3f}, {high:.3f}]" in sentence


# --- disagreements: gold --------------------------------------------------------------------------


def test_disagreements_are_all_items_on_which_somebody_differs(study: jb.Study) -> None:
    drawn = jb.draw(study, "disagreements")
    assert {*drawn.item_id} == differ(*PEOPLE, "j")
    for row, cell in zip(rows_of(drawn), drawn.labels_in_question, strict=True):
        names = {GIVEN[name][row] for name in (*PEOPLE, "j")}
        assert cell == " | ".join(label for label in LABELS if label in names)
    assert rows_of(drawn) != sorted(rows_of(drawn))
    few = jb.draw(study, "disagreements", items=30)
    assert few.equals(drawn[:30])


def test_a_judge_without_a_label_disagrees_and_any_judge_counts() -> None:
    study = study_of(judges=("j", "k"))
    failed, split = {*IDS[:20]}, differ(*PEOPLE)
    assert {*jb.draw(study, "disagreements").item_id} == differ(*PEOPLE, "j") | failed
    alone = jb.draw(study, "disagreements", judge="k")
    assert {*alone.item_id} == split | failed
    agreed = alone[[item_id not in split for item_id in alone.item_id]]
    assert [*agreed.labels_in_question] == [GIVEN["ann"][row] for row in rows_of(agreed)]


# --- again: labels made in sight of the judge -----------------------------------------------------


def test_labels_made_again_are_compared_as_pairs(study: jb.Study) -> None:
    """Of one label of record the exact test is that of McNemar (1947), as scipy has it."""
    one = study_of(("ann", "ben")), GIVEN["ben"]
    rng = np.random.default_rng(1)
    record, new = rng.random(80) < 0.8, rng.random(80) < 0.6
    p = p_of_new_labels(record.astype(int), np.ones(80, dtype=int), new)
    n_record, n_new = int((record & ~new).sum()), int((new & ~record).sum())
    assert p == pytest.approx(binomtest(n_new, n_new + n_record, alternative="less").pvalue)
    drawn = jb.draw(one[0], "again")
    assert len(drawn) == 100 == drawn.item_id.nunique()
    assert "labels_in_question" not in drawn
    same = jb.count_drawn(study, "again", by("ann", drawn, dict(zip(IDS, one[1], strict=True))))
    assert "of 100 items that annotators of the bar labelled, the judge gives " in same
    assert "no sign that labels of record were made in sight" in same
    other = dict(zip(IDS, LABELS[(TRUE + 2) % 3], strict=True))
    sentence = jb.count_drawn(study, "again", by("ann", drawn, other))
    share = np.mean([[GIVEN[a][n] == GIVEN["j"][n] for a in PEOPLE] for n in rows_of(drawn)])
    assert f"{100 * share:.1f} % of the labels of record and 0.0 % of the new ones" in sentence
    assert "labels of record may have been made in sight of the judge" in sentence


def share_found(kept: float, n_items: int, n_people: int, new: float = 0.9) -> float:
    """The share of 1,000 simulated studies in which labels of record seem to be made in sight of
    the judge: people are right in 90 % of the items, or `new` where they label again, the judge in
    85 %, and of the labels of record the share `kept` is the judge's."""
    rng, n_found = np.random.default_rng(0), 0
    for _ in range(1000):
        judge = rng.random(n_items) < 0.85  # right; of two labels
        people = rng.random((n_items, n_people)) < 0.9
        record = np.where(rng.random(people.shape) < kept, judge[:, None], people)
        is_match = (rng.random(n_items) < new) == judge
        n_matches = (record == judge[:, None]).sum(axis=1)
        p = p_of_new_labels(n_matches, np.full(n_items, n_people), is_match)
        n_found += p <= LEVEL
    return n_found / 1000


@pytest.mark.parametrize("n_people", [1, 3])
def test_half_of_the_labels_kept_is_found_and_honest_labels_are_not(n_people: int) -> None:
    assert share_found(0.5, 100, n_people) > {1: 0.45, 3: 0.65}[n_people]
    assert share_found(0.5, 200, n_people) > {1: 0.8, 3: 0.9}[n_people]
    assert share_found(0, 100, n_people) < 0.02
    assert 0.1 < share_found(0, 100, n_people, new=0.8) < 0.3  # who errs twice as often


# --- what cannot be drawn or counted --------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("agreed", {"items": 500}, "items: cannot be drawn; found 500; allowed: 1 to"),
        ("disagreements", {"items": 150}, "found 150; allowed: 1 to 62, on which annotators and"),
        ("again", {"items": 201}, "allowed: 1 to 200, that annotators of the bar labelled"),
        ("disagreements", {"judge": "k"}, "judge: is not in the study; found k; allowed: j"),
        ("agreed", {"metric": "x"}, "metric: is not in the study; found x; allowed: tone"),
        ("all", {}, "kind: is no draw; found all; allowed: agreed, disagreements, again"),
    ],
)
def test_what_cannot_be_drawn(
    study: jb.Study, kind: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises(jb.SetupError, match=message):
        jb.draw(study, kind, **options)  # type: ignore[arg-type]


def test_disagreements_need_two_annotators_and_a_disagreement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(jb.SetupError, match="no item has labels of two annotators of the bar"):
        jb.draw(study_of(("ann",)), "disagreements")
    with pytest.raises(jb.SetupError, match="judge: is not in the study"):
        jb.draw(study_of(judges=()), "disagreements")
    for name in ("ben", "j"):
        monkeypatch.setitem(GIVEN, name, GIVEN["ann"])
    with pytest.raises(jb.SetupError, match="there is no item on which annotators and judges diff"):
        jb.draw(study_of(("ann", "ben")), "disagreements")


def test_items_without_texts_are_not_drawn_and_no_screen_shows_them(
    tmp_path: Path, call: Call
) -> None:
    folder = adjudication(tmp_path, call)
    tables = [tmp_path / "labels.csv", tmp_path / "verdicts.csv"]
    save = ("--order", "ok < odd < bad", "--save", tmp_path / "bare")
    assert call("decide", *tables, *save)[0] == 0
    draw = ("annotate", "draw", "disagreements", tmp_path / "bare", "--to", tmp_path / "bare.csv")
    code, _, err = call(*draw)
    assert (code, "give the answers, too, in the run or with --save FOLDER" in err) == (2, True)
    drawn = pd.read_csv(tmp_path / "drawn.csv").assign(text="", question="")
    drawn.to_csv(tmp_path / "drawn.csv", index=False)
    init = ("annotate", "init", folder.parent / "annotate.yaml", "--to", tmp_path / "blank")
    code, _, err = call(*init)
    assert (code, "items: hold 8 rows without any text" in err) == (2, True)


def test_labels_of_one_expert_on_drawn_items_are_counted(study: jb.Study) -> None:
    drawn = by("dr-x", jb.draw(study, "agreed"), dict(zip(IDS, GIVEN["j"], strict=True)))
    both = pd.concat([drawn, drawn.assign(annotator="dr-y")])
    with pytest.raises(jb.SetupError, match="labels of one annotator; found dr-x, dr-y"):
        jb.count_drawn(study, "agreed", both)
    other = drawn.assign(item_id=[f"z{n}" for n in range(59)])
    with pytest.raises(jb.SetupError, match="no label of an item on which annotators and judge"):
        jb.count_drawn(study, "agreed", other)
    with pytest.raises(jb.SetupError, match="are not counted: their labels are gold"):
        jb.count_drawn(study, "disagreements", drawn)
    with pytest.raises(jb.SetupError, match="judge: name one; allowed: j, k"):
        jb.count_drawn(study_of(judges=("j", "k")), "agreed", drawn)


# --- from tables to gold labels -------------------------------------------------------------------


def adjudication(folder: Path, call: Call, n_items: int = 8) -> Path:
    """A study of disagreements of three annotators and a judge, drawn by the commands."""
    labels_table().to_csv(folder / "labels.csv", index=False)
    judge = pd.DataFrame({"item_id": IDS, "judge": "j", "tone": GIVEN["j"]})
    judge.to_csv(folder / "verdicts.csv", index=False)
    questions = [f"Question {n // 2}?" for n in range(N)]
    answers = pd.DataFrame({"item_id": IDS, "question": questions, "text": IDS + " is the answer."})
    answers.to_csv(folder / "answers.csv", index=False)
    tables = [folder / f"{name}.csv" for name in ("labels", "verdicts", "answers")]
    order = ("--order", "ok < odd < bad", "--question", "question")
    assert call("init", *tables, *order, "--to", folder)[0] == 0
    drawn = ("annotate", "draw", "disagreements", folder / "layout.yaml", "--items", n_items)
    code, out, _ = call(*drawn, "--to", folder / "drawn.csv")
    assert (code, f"{n_items} items, to be `items` of an annotate.yaml" in out) == (0, True)
    config = {
        "name": "gold", "items": "drawn.csv", "rubric": "rubric.yaml", "per_item": 1,
        "annotators": ["adjudicated"],
    }  # fmt: skip
    (folder / "annotate.yaml").write_text(yaml.safe_dump(config), "utf-8")
    assert call("annotate", "init", folder / "annotate.yaml", "--to", folder / "gold")[0] == 0
    return folder / "gold"


def gold_is_used(folder: Path, call: Call) -> dict[str, str]:
    """The gold labels by item, read by every way that takes them beside the others."""
    code, out, _ = call("annotate", "export", folder / "gold", "--to", folder / "gold.csv")
    assert (code, "Next: judgebench decide LABELS.csv" in out) == (0, True)
    gold = pd.read_csv(folder / "gold.csv")
    assert {"item_id", "annotator", "metric", "label", "study"} < {*gold}
    assert "made_blind" not in gold
    columns = {"order": "ok < odd < bad", "question": "question"}
    for table in ("gold.csv", "gold"):
        study = jb.study(
            [labels_table().assign(made_blind="yes"), folder / table], folder / "verdicts.csv",
            folder / "answers.csv", columns=columns,
        )  # fmt: skip
        assert study.n_adjudicated == len(gold)
        assert study.makers == PEOPLE
        assert study.config.blind == "yes"
    tables = [folder / name for name in ("labels.csv", "gold.csv", "verdicts.csv", "answers.csv")]
    options = ("--order", columns["order"], "--question", "question")
    code, out, _ = call("decide", *tables, *options, "--save", folder / "saved")
    assert (code, f"Adjudicated labels, on {len(gold)} items" in out) == (0, True)
    assert jb.study(folder / "saved" / "layout.yaml").n_adjudicated == len(gold)
    others = ("annotate", "draw", "disagreements", folder / "saved", "--to", folder / "others.csv")
    assert call(*others)[0] == 0
    open_ids = differ(*PEOPLE, "j") - {*gold.item_id}
    assert {*pd.read_csv(folder / "others.csv").item_id} == open_ids
    return dict(zip(gold.item_id, gold.label, strict=True))


def test_labels_of_whoever_adjudicates_become_gold(tmp_path: Path, call: Call) -> None:
    folder = adjudication(tmp_path, call)
    screens = read_key(folder / "key.json").screens
    drawn = pd.read_csv(tmp_path / "drawn.csv", index_col="item_id")
    expected = dict[str, str]()
    with served(folder) as site:
        person = site.enters("adjudicated")
        for item in person.gets("/api/work")["items"]:
            shown = person.gets(f"/api/screen/{item['id']}")["screen"]
            item_id = screens[item["id"]]["tone"].columns["item_id"]
            last = shown["sections"][-1]
            assert last["heading"] == "Labels in question"
            assert last["text"].split(", ") == drawn.labels_in_question[item_id].split(" | ")
            assert [option["value"] for option in shown["fields"][0]["options"]] == [*LABELS]
            assert not {"ann", "ben", "cem", "j"} & set(json.dumps(shown).split('"'))
            expected[item_id] = str(LABELS[TRUE[int(item_id[1:])]])
            event = person.event(item["id"], "tone", expected[item_id], remark="sure")
            assert not person.save(event)["refused"]
        assert len(site.enters("lead").gets("/api/lead")["words"]) == 8  # remarks reach the lead
    assert gold_is_used(tmp_path, call) == expected
    assert "8 of 8 items" in call("annotate", "status", folder)[1]


@needs_browser
def test_the_adjudicator_labels_in_a_browser(tmp_path: Path, call: Call, browser: Browser) -> None:
    folder = adjudication(tmp_path, call)
    texts = "[...document.querySelectorAll('#texts .text')].map(e => e.textContent)"
    with served(folder) as site:

        async def visit(new_tab: NewTab) -> None:
            tab = await signed_in(new_tab, site, "adjudicated")
            await press(tab, "Enter")  # the instructions are read
            await tab.sees("document.body.innerText.includes('Labels in question')")
            assert ", " in (await tab.value(texts))[-1]
            for n, key in enumerate("12321231", 1):
                await tab.sees(TITLE, f"Item {n} of 8")
                await press(tab, key, "Enter")
            await tab.sees(TITLE, "All 8 items are labelled. Thank you.")
            await tab.sees(SAVED, "Saved")

        browser.run(visit)
    gold = gold_is_used(tmp_path, call)
    assert sorted(gold.values()) == ["bad", "bad", "odd", "odd", "odd", "ok", "ok", "ok"]


def test_nobody_else_sees_the_labels_in_question(tmp_path: Path, call: Call) -> None:
    adjudication(tmp_path, call)
    file = tmp_path / "annotate.yaml"
    config = yaml.safe_load(file.read_text("utf-8"))
    file.write_text(yaml.safe_dump({**config, "annotators": ["ann"]}), "utf-8")
    jb.annotate(file, tmp_path / "blind")
    with served(tmp_path / "blind") as site:
        person = site.enters("ann")
        item = person.gets("/api/work")["items"][0]["id"]
        shown = person.gets(f"/api/screen/{item}")["screen"]["sections"]
    assert [section["heading"] for section in shown] == ["Question", "Answer"]
    both = {**config, "annotators": ["ann", "adjudicated"]}
    file.write_text(yaml.safe_dump(both), "utf-8")
    with pytest.raises(jb.SetupError, match="is reserved, or named twice; found 'adju"):
        jb.annotate(file, tmp_path / "both")
    rubric = {
        "metrics": [{"id": m, "kind": "nominal", "labels": LABELS.tolist()} for m in ("tone", "x")]
    }
    (tmp_path / "two.yaml").write_text(yaml.safe_dump({"name": "two", **rubric}), "utf-8")
    file.write_text(yaml.safe_dump({**config, "rubric": "two.yaml"}), "utf-8")
    with pytest.raises(jb.SetupError, match="metrics: labels_in_question are those of one metric"):
        jb.annotate(file, tmp_path / "two")


def test_the_command_draws_and_counts(tmp_path: Path, call: Call) -> None:
    adjudication(tmp_path, call)
    draw = ("annotate", "draw")
    run, labels = tmp_path / "layout.yaml", dict(zip(IDS, GIVEN["j"], strict=True))
    for kind, n, result in (("agreed", 59, "contradicts 0 of 59"), ("again", 100, "of 100 items")):
        drawn, new = tmp_path / f"{kind}.csv", tmp_path / f"new-{kind}.csv"
        code, out, _ = call(*draw, kind, run, "--to", drawn)
        assert (code, f"{kind}.csv: {n} items" in out) == (0, True)
        by("dr-x", pd.read_csv(drawn), labels).to_csv(new, index=False)
        code, out, _ = call(*draw, kind, run, "--count", new)
        assert (code, result in out) == (0, True)
    assert call(*draw, "agreed", run)[0] == 2
    assert call(*draw, "other", run, "--to", tmp_path / "x.csv")[0] == 2
