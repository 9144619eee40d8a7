"""`judgebench compare` as it is called: run folders in, a screen, files and exit codes out."""

import csv
import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from latex_case import compile_tables, needs_latex
from python_api import JUDGE, rubric, write_bench, write_tables

import judgebench as jb
from judgebench.cli.compare import split
from judgebench.cli.exit_codes import UNMET
from judgebench.runs.folder import RunFolder

REPO = Path(__file__).resolve().parents[2]


def another(metric: str, label: str) -> str:
    (texts,) = [m.label_texts for m in rubric().metrics if m.id == metric]
    return texts[(texts.index(label) + 1) % len(texts)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folders before, after (most labels replaced, two replies unreadable) and changed (an
    answer rewritten)."""
    folder = tmp_path_factory.mktemp("compare")
    write_tables(folder)
    write_bench(folder)
    jb.run(folder / "bench.yaml", folder / "before")
    script = (folder / "script.jsonl").read_text().splitlines()
    for place, line in enumerate(script):
        reply = json.loads(line)
        if place % 4:
            said = json.loads(reply["text"])
            reply["text"] = json.dumps({m: another(m, label) for m, label in said.items()})
        if place in (1, 3):
            reply["text"] = "I cannot say."
        script[place] = json.dumps(reply)
    (folder / "script.jsonl").write_text("\n".join(script) + "\n")
    jb.run(folder / "bench.yaml", folder / "after")
    shutil.copy(folder / "answers.csv", folder / "original.csv")
    answers = (folder / "answers.csv").read_text()
    first = next(csv.DictReader(answers.splitlines()))
    (folder / "answers.csv").write_text(answers.replace(first["text"], "Rewritten.", 1))
    jb.run(folder / "bench.yaml", folder / "changed")
    return folder


def test_one_screen_says_what_changed(call, runs: Path) -> None:  # type: ignore[no-untyped-def]
    code, out, err = call("compare", runs / "before", runs / "after")
    assert (code, err) == (0, "")
    assert f"A: {JUDGE} in small" in out
    assert "24 answers with the same question and text in both; B − A on these answers." in out
    assert "A missing label counts as wrong." in out
    assert re.search(r"\d+ labels changed; \d+ of them from right to wrong, such as q\d", out)
    assert "More with -v: all tables" in out
    assert len(out.splitlines()) < 60


def test_verbose_prints_every_table_quiet_nothing_and_json_alone(call, runs: Path) -> None:  # type: ignore[no-untyped-def]
    pair = (runs / "before", runs / "after")
    _, everything, _ = call("compare", *pair, "-v")
    for heading in ("What changed", "Labels that changed", "Krippendorff's α"):
        assert heading in everything, heading
    assert call("compare", *pair, "-q") == (0, "", "")
    _, out, _ = call("compare", *pair, "--json", "--fail-on", "worse")
    found = json.loads(out)
    assert {"name", "comparison", "flips", "notes", "failed"} <= found.keys()
    rows = [row for row in found["comparison"] if row["analysis"] == "difference"]
    frame = jb.compare(*pair).to_frame("all")
    assert len(rows) == (frame.analysis == "difference").sum()
    assert {row["right"] for row in found["flips"]} <= {"A", "B", "neither", "unknown"}


def test_the_same_folder_twice_passes_every_check(call, runs: Path) -> None:  # type: ignore[no-untyped-def]
    same = (runs / "before", runs / "before")
    checks = ("--fail-on", "worse", "--fail-on", "decision", "--no-worse", "0")
    code, out, _ = call("compare", *same, *checks)
    assert code == 0
    assert "No decision changed." in out
    assert "No label changed." in out
    assert "Neither is shown to be better" in out


def test_what_is_worse_ends_with_the_documented_exit_code(call, runs: Path) -> None:  # type: ignore[no-untyped-def]
    pair = (runs / "before", runs / "after")
    code, out, _ = call("compare", *pair, "--fail-on", "worse")
    assert code == UNMET == 3
    assert re.search(
        r"failed: .*: accuracy is worse: difference -0\.\d+ \[-.*\], p after Holm", out
    )
    code, out, _ = call("compare", *pair, "--no-worse", "0.02:empathy", "--json")
    assert code == 3
    (line,) = json.loads(out)["failed"]
    assert "accuracy is not shown to be at most 0.02 worse" in line
    assert call("compare", *pair, "--no-worse", "1", "-q") == (0, "", "")
    assert call("compare", *reversed(pair), "--fail-on", "worse", "-q")[0] == 0


def test_a_decision_that_fell_fails_only_where_that_is_asked(call, runs: Path) -> None:  # type: ignore[no-untyped-def]
    fell = [one for one in jb.compare(runs / "before", runs / "after").decisions if one.fell]
    code, out, _ = call("compare", runs / "before", runs / "after", "--fail-on", "decision")
    assert code == (3 if fell else 0)
    assert out.count("the decision fell from") == len(fell)


def test_the_report_has_a_page_tables_a_figure_and_every_flip(call, runs: Path) -> None:  # type: ignore[no-untyped-def]
    to = runs / "report"
    code, out, _ = call("compare", runs / "before", runs / "after", "--to", to, "--figures")
    assert code == 0
    assert f"Report: {to / 'report.html'}" in out
    page = (to / "report.html").read_text()
    assert "what changed from A to B" in page
    assert "Labels that changed" in page
    assert (to / "plots" / "difference_accuracy.png").stat().st_size > 5000
    with (to / "flips.csv").open() as file:
        flips = list(csv.DictReader(file))
    found = jb.compare(runs / "before", runs / "after")
    assert len(flips) == len(found.flips.to_frame())
    assert {"item_id", "metric", "label_a", "label_b", "truth", "right"} <= flips[0].keys()
    assert (to / "results.csv").is_file()
    assert (to / "tables.md").is_file()
    assert list((to / "latex").iterdir())
    assert jb.report(found, runs / "again")["html"].is_file()


@needs_latex
def test_the_tables_fit_on_paper(runs: Path, tmp_path: Path) -> None:
    found = jb.compare(runs / "before", runs / "after")
    log = compile_tables([found.part], tmp_path)
    too_wide = [float(x) for x in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log)]
    assert max(too_wide, default=0) < 10


def test_an_answer_that_changed_is_said_on_the_screen(call, runs: Path) -> None:  # type: ignore[no-untyped-def]
    _, out, _ = call("compare", runs / "before", runs / "changed")
    assert re.search(r"Left out: \d answers? whose text or question is not the same in B: q", out)


def test_two_judges_of_one_run_and_controls_are_named_after_a_colon(call, runs: Path) -> None:  # type: ignore[no-untyped-def]
    before = runs / "before"
    code, out, _ = call("compare", f"{before}:constant-majority", f"{before}:{JUDGE}")
    assert code == 0
    assert "A: constant-majority in small" in out
    code, _, err = call("compare", f"{before}:nobody", before)
    assert code == 2
    assert "judge of A: is no judge of this run; found nobody; allowed:" in err


def test_imported_verdicts_are_compared_as_any_other(call, runs: Path) -> None:  # type: ignore[no-untyped-def]
    with (runs / "verdicts.csv").open() as file:
        rows = list(csv.DictReader(file))
    for place, row in enumerate(rows):
        row["judge"] = "new"
        row["empathy"] = "" if place < 2 else another("empathy", row["empathy"])
    with (runs / "new.csv").open("w") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    bench = yaml.safe_load((runs / "bench.yaml").read_text())
    named = {JUDGE: "verdicts.csv", "new": "new.csv"}
    judges = [{"name": name, "verdicts": file} for name, file in named.items()]
    (runs / "imported.yaml").write_text(json.dumps({**bench, "judges": judges}))
    shutil.copy(runs / "original.csv", runs / "answers.csv")
    jb.run(runs / "imported.yaml", runs / "imported")
    both = (f"{runs}/imported:{JUDGE}", f"{runs}/imported:new")
    code, out, err = call("compare", *both, "--no-worse", "0.1:empathy")
    assert (code, err) == (3, "")
    assert f"A: {JUDGE} in small" in out
    assert "A missing label counts as wrong." in out
    study = jb.open_run(runs / "imported")
    found = jb.compare(study, study, judges=(JUDGE, "new"))
    assert found.difference("no_label", "new", "empathy").value == pytest.approx(2 / 24)
    lost = found.difference("accuracy", "new", "empathy").value
    assert lost < 0
    before = jb.compare(runs / "before", study, judges=(JUDGE, JUDGE))
    assert not before.flips.results.rows


def test_a_colon_in_a_folder_or_a_judge_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "a:b").mkdir()
    folder = tmp_path / "a:b"
    assert split(str(folder)) == (folder, "")
    assert split(f"{folder}:llama3:8b") == (folder, "llama3:8b")
    assert split("nowhere:x") == (Path("nowhere:x"), "")


def test_folders_that_cannot_be_compared_are_clear_errors(call, runs: Path) -> None:  # type: ignore[no-untyped-def]
    code, _, err = call("compare", runs / "before", runs / "nowhere")
    assert (code, err.count("\n")) == (2, 1)
    assert "no such folder" in err
    dead = runs / "dead"
    shutil.copytree(runs / "after", dead)
    for file in dead.glob(f"verdicts-{JUDGE}*"):
        file.unlink()
    code, _, err = call("compare", runs / "before", dead)
    assert code == 2
    assert f"verdicts-{JUDGE}.jsonl: is missing; the run wrote 24 verdicts; to repair it, " in err


def test_an_unfinished_run_is_compared_on_what_there_is(call, runs: Path) -> None:  # type: ignore[no-untyped-def]
    half = runs / "half"
    shutil.copytree(runs / "after", half)
    (file,) = half.glob(f"verdicts-{JUDGE}*")
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:10]))
    folder = RunFolder(half)
    folder.write_manifest(folder.manifest(), "running")
    gap = f"{JUDGE}: 10 of 24 asked; its numbers are of these."
    with pytest.warns(UserWarning, match=gap):
        code, out, _ = call("compare", runs / "before", half)
    assert code == 0
    assert f"In B: {gap}" in out
    assert re.search(r"Left out: 1\d answers without a verdict in B: q", out)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--no-worse", "x", "--no-worse: is no margin; found x; allowed: a share from 0 to 1"),
        ("--no-worse", "0.1:x", "--no-worse: is no metric that is compared; found x; allowed: "),
        ("--fail-on", "flips", "--fail-on: cannot be checked; found flips; allowed: worse, dec"),
    ],
)
def test_checks_that_make_no_sense_are_errors(call, runs, option, value, said) -> None:  # type: ignore[no-untyped-def]
    code, _, err = call("compare", runs / "before", runs / "after", option, value)
    assert code == 2
    assert said in err


# --- the page of the documentation ----------------------------------------------------------------


def page() -> str:
    return (REPO / "docs" / "compare.md").read_text(encoding="utf-8")


def test_the_python_of_the_page_runs(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(runs)
    (runs / "runs").mkdir(exist_ok=True)
    for name, folder in (("last-month", "before"), ("today", "after")):
        if not (runs / "runs" / name).exists():
            shutil.copytree(runs / folder, runs / "runs" / name)
    blocks = re.findall(r"^```python\n(.*?)^```", page(), re.DOTALL | re.MULTILINE)
    assert blocks
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, "docs/compare.md", "exec"), names)


def test_the_action_of_the_page_calls_commands_that_exist(call, runs: Path) -> None:  # type: ignore[no-untyped-def]
    (block,) = re.findall(r"^```yaml\n(.*?)^```", page(), re.DOTALL | re.MULTILINE)
    action = yaml.safe_load(block)
    (job,) = action["jobs"].values()
    lines = "\n".join(step["run"] for step in job["steps"] if "run" in step)
    (line,) = [x for x in lines.splitlines() if x.startswith("judgebench compare")]
    words = line.replace("main-run", str(runs / "before")).replace("pr-run", str(runs / "before"))
    words = words.replace("--to comparison", f"--to {runs / 'comparison'}").split()[1:]
    code, _, _ = call(*words)
    assert code == 0


def test_the_example_of_the_function_runs(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import doctest

    (runs / "runs").mkdir(exist_ok=True)
    if not (runs / "runs" / "small").exists():
        shutil.copytree(runs / "before", runs / "runs" / "small")
    monkeypatch.chdir(runs)
    tests = doctest.DocTestFinder(recurse=False).find(jb.compare, "compare")
    (test,) = [t for t in tests if t.examples]
    assert doctest.DocTestRunner().run(test).failed == 0
