"""A reporting checklist: what fills it, what is asked, and that answers stay."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pytest
import yaml
from annotate_case import give_labels, label_rows
from built_case import study_file
from latex_case import PACKAGES, compile_paper, needs_latex
from printed import blocks
from python_api import METRICS, write_bench, write_tables

import judgebench as jb
from judgebench.annotation.export import collected_as
from judgebench.annotation.init import annotate
from judgebench.annotation.store import open_store
from judgebench.checklist import FACTS, load_checklist

ASKED = "To the author:"
GRRAS = load_checklist("grras")
OWN = """
name: own
title: A list of mine
source: nobody
items:
  - item: "A. What was judged"
    facts: {sample_size: }
  - item: "B. Who judged"
    facts: {judges: Which model is it?}
    ask: And why this one?
  - item: "C. How right they were"
    facts: {estimates: }
  - item: "D. The same once more"
    facts: {estimates: }
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tables, a bench.yaml and the run folder `run`."""
    folder = tmp_path_factory.mktemp("checklist")
    write_tables(folder)
    write_bench(folder)
    jb.run(folder / "bench.yaml", folder / "run")
    return folder


@pytest.fixture(scope="module")
def reported(place: Path) -> Path:
    """The folder of a report of the run, with GRRAS filled."""
    study = jb.open_run(place / "run", truth={"blind": "yes"})
    jb.report(study, place / "report", checklist="grras")
    return place / "report"


def rows_of(folder: Path) -> dict[str, str]:
    """What the report in a folder shows of each item, by its number."""
    text = (folder / "tables.md").read_text("utf-8").partition("## Reporting checklist")[2]
    lines = [line[2:].split(" | ") for line in text.splitlines() if line.startswith("| ")]
    shown: dict[str, list[str]] = {}
    for item, sentence, _ in lines[2:]:
        number = item.partition(".")[0].strip() or [*shown][-1]
        shown.setdefault(number, []).append(sentence)
    return {item: " ".join(sentences) for item, sentences in shown.items()}


def tables_report(place: Path, to: Path, **how: object) -> dict[str, str]:
    """The items of a report of the tables alone."""
    study = jb.study(
        place / "labels.csv", place / "verdicts.csv", place / "answers.csv",
        rubric="medical-safety", **how,
    )  # fmt: skip
    jb.report(study, to, checklist="grras")
    return rows_of(to)


def answer(file: Path, answers: Mapping[int, str]) -> bytes:
    """Write the author's answers to items, by their place, into a checklist."""
    checklist = yaml.safe_load(file.read_text("utf-8"))
    for place, text in answers.items():
        checklist["items"][place]["answer"] = text
    content = yaml.safe_dump(checklist, allow_unicode=True).encode()
    file.write_bytes(content)
    return content


# --- the shipped list ---------------------------------------------------------------------------


def test_grras_has_its_fifteen_items_and_uses_every_fact() -> None:
    assert [item.item.partition(".")[0] for item in GRRAS.items] == [str(n) for n in range(1, 16)]
    assert {fact for item in GRRAS.items for fact in item.facts} == FACTS.keys()
    assert "2011;64:96-106" in GRRAS.source


def test_the_documentation_says_what_each_fact_is(tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "report.md").read_text("utf-8")
    cells = re.findall(r"^\| (`.*?) \|", page.partition("| fact |")[2], re.MULTILINE)
    assert {*re.findall(r"`(\w+)`", "".join(cells))} == {*FACTS}
    (example,) = (block.text for block in blocks(page) if block.text.startswith("name: my-list"))
    (tmp_path / "my-list.yaml").write_text(example)
    assert load_checklist(tmp_path / "my-list.yaml").items[0].ask == "Who may change the model?"


def test_list_names_the_shipped_checklists(call) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = call("list", "checklists")
    assert code == 0
    assert "grras" in out


# --- what a study shows --------------------------------------------------------------------------


def test_a_run_fills_items_with_its_own_facts(reported: Path) -> None:
    rows = rows_of(reported)
    assert "my-judge: " in rows["2"]
    assert "prompt.name structured" in rows["2"]
    assert "decoding.temperature 0.0" in rows["2"]
    assert "Empathy: High empathy, Moderate empathy, Lack of empathy." in rows["2"]
    assert "annotator-1, annotator-2 and annotator-3." in rows["4"]
    assert "the annotators labelled without seeing a judge's labels" in rows["4"]
    assert "24 answers to" in rows["6"]
    assert "Reference labels: the median of" in rows["10"]
    assert "my-judge: 24 of 24 answers labelled." in rows["11"]
    results = pd.read_csv(reported / "results.csv")
    (alpha,) = results.query(
        "analysis == 'agreement' and statistic == 'alpha' and metric == 'empathy' and who == 'all'"
    ).itertuples()
    shown = f"α of annotators {alpha.value:.3f} \\[{alpha.low:.3f}, {alpha.high:.3f}\\]."
    assert shown in rows["13"]
    assert "Empathy: accuracy of my-judge " in rows["13"]
    assert "Can a judge replace the annotators?" in rows["14"]
    assert rows["15"] == "All numbers and labels: results.csv and verdicts.csv."
    asked = [item for item, shown in rows.items() if ASKED in shown]
    assert asked == ["1", "3", "4", "5", "6", "7", "8", "9", "12"]


def test_tables_ask_for_the_judge_and_for_blindness(place: Path, tmp_path: Path) -> None:
    rows = tables_report(place, tmp_path)
    assert "my-judge: recorded verdicts, prompt and decoding (not known)." in rows["2"]
    assert f"{ASKED} Which model, in which version" in rows["2"]
    assert "Blindness: (not known)" in rows["4"]
    assert f"{ASKED} Did annotators see a judge's labels" in rows["4"]


def test_labels_without_a_judge_claim_nothing_of_one(place: Path, tmp_path: Path) -> None:
    labels = pd.read_csv(place / "labels.csv")[["item_id", "annotator", *METRICS]]
    study = jb.study(labels, rubric="medical-safety")
    jb.report(study, tmp_path, checklist="grras")
    rows = rows_of(tmp_path)
    assert not [item for item in ("2", "10", "13") if "judge" in rows[item]]
    assert "judge" not in rows["11"]
    assert f"(not known) {ASKED}" in rows["14"]
    assert rows["15"] == "All numbers and labels: results.csv."


def test_a_run_without_labels_asks_for_what_it_lacks(place: Path, tmp_path: Path) -> None:
    bench = place / "plain.yaml"
    bench.write_text((place / "bench.yaml").read_text().replace(", labels.csv", ""))
    jb.report(jb.run(bench, tmp_path / "run"), tmp_path / "out", checklist="grras")
    rows = rows_of(tmp_path / "out")
    assert "my-judge: 24 of 24 answers labelled." in rows["11"]
    assert rows["11"].count("answers labelled") == 1  # baselines are no raters
    assert rows["4"].startswith("(not known).")
    assert rows["10"] == "(not known)"
    assert f"(not known) {ASKED}" in rows["14"]


def test_one_annotator_is_no_sign_of_independence(place: Path, tmp_path: Path) -> None:
    rows = tables_report(place, tmp_path, truth={"annotators": ["annotator-1"]})
    assert "Copies" not in rows["9"]


def study_of_tone(labels: Mapping[str, str], n_answers: int, **how: object) -> jb.Study:
    """A study of yes and no, a letter for each answer: a letter is one annotator's label."""
    rows = [
        {"item_id": f"i{n}", "annotator": name, "tone": {"y": "yes", "n": "no"}[letter]}
        for name, letters in labels.items()
        for n, letter in enumerate(letters)
    ]
    texts = [f"Answer {n}, of {n} words." for n in range(n_answers)]
    answers = pd.DataFrame({"item_id": [f"i{n}" for n in range(n_answers)], "text": texts})
    rubric = jb.Rubric.from_labels({"tone": ["no", "yes"]})
    return jb.study(pd.DataFrame(rows), None, answers, rubric=rubric, **how)  # type: ignore[arg-type]


def test_sampling_is_asked_for_unless_it_is_declared(tmp_path: Path) -> None:
    labels = {"ann": "ynnyyn", "ben": "ynyyyn"}
    jb.report(study_of_tone(labels, 12), tmp_path / "a", checklist="grras")
    asked = "drawn from all: (not known). To the author: How were they drawn"
    assert asked in rows_of(tmp_path / "a")["7"]
    declared = study_of_tone(labels, 12, truth={"drawn": ["random"]})
    jb.report(declared, tmp_path / "b", checklist="grras")
    assert "drawn at random from all, as declared." in rows_of(tmp_path / "b")["7"]


def test_labels_that_look_copied_are_named(tmp_path: Path) -> None:
    ann, cem = "ynnyyn" * 50, "ynynyy" * 50
    jb.report(study_of_tone({"ann": ann, "ben": ann, "cem": cem}, 300), tmp_path, checklist="grras")
    assert "ann and ben gave the same labels" in rows_of(tmp_path)["9"]


def test_where_leads_to_what_the_report_has(reported: Path) -> None:
    page = (reported / "report.html").read_text("utf-8")
    table = page.partition('<section id="checklist">')[2].partition("</section>")[0]
    links = set(re.findall(r'<a href="([^"]+)"', table))
    assert {"results.csv", "decisions.csv", "#q-people"} <= links
    for link in links:
        found = f'id="{link[1:]}"' in page if link[0] == "#" else (reported / link).is_file()
        assert found, link


# --- labels that `annotate` collected -------------------------------------------------------------


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of annotation, whole, with verdicts.csv of a judge beside it."""
    folder = tmp_path_factory.mktemp("collected")
    background = "Two nurses and a physician, trained on ten answers."
    file = study_file(folder / "in", calibration=2, background=background)
    study = annotate(file, folder / "study").study
    with open_store(study) as store:
        for name in store.annotators:
            for screen in store.assigned(name):
                fields = store.screens[screen].fields
                give_labels(store, name, screen, {f.key: f.options[0].value for f in fields})
    verdicts = pd.DataFrame(label_rows(study)).drop_duplicates(["item_id", "metric"])
    verdicts = verdicts[["item_id", "metric", "label"]].assign(judge="m")
    verdicts.to_csv(folder / "verdicts.csv", index=False)
    return folder


PLAN = "Plan of the labels: 10 items, each for 2 of 3 annotators; 2 more for all, as calibration."


def check_collected(rows: Mapping[str, str]) -> None:
    assert PLAN in rows["6"]
    assert "How labels were collected: judgebench annotate" in rows["8"]
    assert "nobody else's label before theirs" in rows["9"]
    assert "Who the annotators are: Two nurses and a physician" in rows["12"]
    for item in ("6", "8", "9", "12"):
        assert ASKED not in rows[item]


def test_a_study_of_annotate_fills_plan_process_and_raters(
    collected: Path,
    tmp_path: Path,
    call,  # type: ignore[no-untyped-def]
) -> None:
    tables = [collected / "study", collected / "verdicts.csv"]
    code, _, _ = call("report", *tables, "--to", tmp_path, "--checklist", "grras")
    assert code == 0
    check_collected(rows_of(tmp_path))
    assert PLAN in (tmp_path / "report.html").read_text("utf-8").partition("q-people")[0]


def test_a_run_keeps_how_its_labels_were_collected(collected: Path, tmp_path: Path) -> None:
    bench = collected / "bench.yaml"
    bench.write_text(
        "name: small\nrubric: in/mine.yaml\ndata: [in/answers.csv, study/served/study.sqlite]\n"
        "judges: [{name: m, verdicts: verdicts.csv}]\n"
    )
    jb.report(jb.run(bench, tmp_path / "run"), tmp_path / "out", checklist="grras")
    check_collected(rows_of(tmp_path / "out"))


def test_init_asks_who_the_annotators_are(tmp_path: Path) -> None:
    asked = "Who are the annotators, with which training and experience?"
    assert asked in repr(annotate(study_file(tmp_path / "a"), tmp_path / "one"))
    described = study_file(tmp_path / "b", background="Nurses.")
    assert asked not in repr(annotate(described, tmp_path / "two"))


def test_a_new_version_takes_what_is_said_of_annotators(tmp_path: Path) -> None:
    study = annotate(study_file(tmp_path / "in"), tmp_path / "study").study
    plan, process = collected_as(study)
    assert plan.endswith("0 more for all, as calibration.")
    assert process.startswith("How labels were collected: judgebench annotate")
    annotate(study_file(tmp_path / "in", background="Nurses."), study, new_version=True)
    assert collected_as(study)[-1] == "Who the annotators are: Nurses."


# --- the author's answers -------------------------------------------------------------------------


def test_answers_are_shown_kept_and_no_longer_asked_for(place: Path, tmp_path: Path) -> None:
    jb.report(place / "run", tmp_path, checklist="grras")
    file = tmp_path / "checklist-grras.yaml"
    assert ASKED in rows_of(tmp_path)["5"]
    content = answer(file, {4: "Agreement was not measured before.", 0: "It is in our title."})
    jb.report(place / "run", tmp_path, checklist="grras")
    assert rows_of(tmp_path)["5"] == "Agreement was not measured before."
    assert rows_of(tmp_path)["1"].endswith("It is in our title.")
    assert file.read_bytes() == content


def test_the_command_says_how_many_items_are_open(  # type: ignore[no-untyped-def]
    place: Path, tmp_path: Path, call
) -> None:
    how = ("report", place / "run", "--to", tmp_path, "--checklist", "grras")
    assert "9 of 15 items ask for answers in checklist-grras.yaml." in call(*how)[1]
    answer(tmp_path / "checklist-grras.yaml", dict.fromkeys(range(15), "Answered."))
    assert "0 of 15 items ask for answers" in call(*how)[1]


def test_json_has_the_items(place: Path, tmp_path: Path, call) -> None:  # type: ignore[no-untyped-def]
    how = ("report", place / "run", "--to", tmp_path, "--checklist", "grras", "--json")
    code, out, _ = call(*how)
    assert code == 0
    items = json.loads(out)["checklist"]
    assert len(items) == 15
    sentence = "All numbers and labels: results.csv and verdicts.csv."
    assert items[-1][1] == [[sentence, "results.csv"]]


# --- other lists, and what is wrong in them -------------------------------------------------------


def test_a_list_of_your_own_is_filled(place: Path, tmp_path: Path) -> None:
    own = tmp_path / "mine.yaml"
    own.write_text(OWN)
    jb.report(place / "run", tmp_path / "out", checklist=own)
    rows = rows_of(tmp_path / "out")
    assert " · 24 answers to" in rows["A"]
    assert rows["B"].endswith(f"{ASKED} And why this one?")
    assert rows["C"] == rows["D"] != ""
    assert (tmp_path / "out" / "checklist-own.yaml").read_text() == OWN


def test_an_unknown_checklist_names_the_shipped_ones(  # type: ignore[no-untyped-def]
    place: Path, tmp_path: Path, call
) -> None:
    to = tmp_path / "out"
    code, _, err = call("report", place / "run", "--to", to, "--checklist", "gras")
    assert code == 2
    assert "'gras'" in err
    assert "grras" in err
    assert not to.exists()


@pytest.mark.parametrize(
    ("was", "by", "named"),
    [
        ("{sample_size: }", "{size: }", "mine.yaml:7: items.0.facts.size"),
        ("    ask: And", "    asks: And", "asks: is not a known key; did you mean 'ask'?"),
        ("items:", "things:", "things"),
    ],
)
def test_a_bad_item_is_named_with_its_line(
    place: Path, tmp_path: Path, was: str, by: str, named: str
) -> None:
    own = tmp_path / "mine.yaml"
    own.write_text(OWN.replace(was, by))
    with pytest.raises(jb.SetupError) as error:
        jb.report(place / "run", tmp_path / "out", checklist=own)
    assert named in str(error.value)
    assert not (tmp_path / "out").exists()


def test_a_checklist_is_of_a_study(place: Path, tmp_path: Path) -> None:
    found = jb.align(place / "run")
    with pytest.raises(jb.SetupError, match="filled from a study or a run folder"):
        jb.report(found, tmp_path, checklist="grras")


# --- formats -------------------------------------------------------------------------------------


@needs_latex
def test_the_appendix_with_a_checklist_compiles(reported: Path) -> None:
    log = compile_paper(r"\input{latex/appendix}", reported, preamble=PACKAGES, runs=1)
    assert GRRAS.title in (reported / "latex" / "appendix.tex").read_text("utf-8")
    assert "Overfull" not in log


def test_without_a_checklist_nothing_is_asked(place: Path, tmp_path: Path) -> None:
    jb.report(place / "run", tmp_path)
    assert not [*tmp_path.glob("checklist*")]
    assert ASKED not in (tmp_path / "tables.md").read_text("utf-8")
