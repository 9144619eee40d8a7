"""What `judgebench check` and `judgebench list` find, without the command line."""

import json
from pathlib import Path

import pytest

from judgebench.errors import SetupError
from judgebench.files import shipped_folder
from judgebench.rubric import load_rubric
from judgebench.setup_files import check, listing


def test_data_files_are_read_together(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("item_id,text\na,Hello.\n")
    (tmp_path / "labels.csv").write_text("item_id,annotator,politeness\na,ann,Polite\n")
    files = [tmp_path / "labels.csv", tmp_path / "answers.csv"]
    found = check(files, "support-tone")
    assert found.errors == found.warnings == []
    assert found.facts[0] == "1 answer, 1 human label"


def test_annotators_who_share_no_item(tmp_path: Path) -> None:
    rows = [f"i{n},A,{'Polite' if n % 8 == 0 else 'Impolite'}" for n in range(100)]
    rows += [f"i{n},B,{'Polite' if n % 99 else 'Impolite'}" for n in range(100, 200)]
    rows += [f"i{n},C,{'Polite' if n % 99 else 'Impolite'}" for n in range(190, 300)]
    path = bench(tmp_path, "\n".join(["item_id,annotator,politeness", *rows, ""]))
    texts = [f"i{n},An answer with the number {n}." for n in range(300)]
    (tmp_path / "answers.csv").write_text("\n".join(["item_id,text", *texts, ""]))
    found = check([path], "support-tone")
    assert (
        "Overlap: 10 of 300 items with a label have two or more; 2 of 3 pairs of annotators share "
        "no item."
    ) in found.facts


def test_one_bad_file_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "judge.yaml").write_text("name: a b\nbackend: what:ever\nmode: both\n")
    (tmp_path / "jury.yaml").write_text("name: j\njury: [a]\n")
    (tmp_path / "other.yaml").write_text("colour: red\n")
    (tmp_path / "prompt.jinja").write_text("{% block user %}{{ nobody }}{% endblock %}")
    names = ("judge.yaml", "jury.yaml", "other.yaml", "prompt.jinja", "none.csv", "none.yaml")
    found = check([tmp_path / name for name in names], "support-tone")
    told = [str(problem).replace(f"{tmp_path}/", "") for problem in found.errors]
    for start in (
        "judge.yaml:1: name:", "judge.yaml:2: backend:", "judge.yaml:3: mode:", "jury.yaml:2: jury",
        "other.yaml: is none of: judge", "prompt.jinja", "none.csv", "none.yaml: no such file",
    ):  # fmt: skip
        assert any(line.startswith(start) for line in told), (start, told)


def test_an_unknown_rubric_is_told_and_nothing_is_raised(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("item_id,text\na,Hello.\n")
    (problem,) = check([tmp_path / "answers.csv"], "no-such-rubric").errors
    assert "support-tone" in str(problem)


@pytest.mark.parametrize("kind", ["rubrics", "prompts"])
def test_everything_that_ships_passes(kind: str) -> None:
    files = sorted(p for p in shipped_folder(kind).glob("*.*") if p.suffix != ".md")
    found = check(files, "support-tone")
    assert found.errors == []
    assert len(found.facts) == len(files) >= 3


def test_the_listing_names_what_can_be_used() -> None:
    everything = listing()
    kinds = ["rubrics", "prompts", "examples", "backends", "baselines", "weights"]
    assert list(everything)[: len(kinds)] == kinds
    for name, _ in everything["rubrics"]:
        load_rubric(name)
    assert listing("weights") == {"weights": everything["weights"]}
    assert all(":" in name for name, _ in listing("backends")["backends"])
    with pytest.raises(SetupError):
        load_rubric("none")


# --- a benchmark ---------------------------------------------------------------------------------

RULE = "ties go to the more severe label"


def bench(folder: Path, labels: str, judges: str = "[]", more: str = "") -> Path:
    """A bench.yaml with three answers, the labels given and these judges."""
    (folder / "answers.csv").write_text("item_id,text\na,Hello.\nb,Yes.\nc,No.\n")
    (folder / "labels.csv").write_text(labels)
    (folder / "bench.yaml").write_text(
        "name: small\nrubric: support-tone\nmetrics: [politeness]\n"
        f"data: [answers.csv, labels.csv]\njudges: {judges}\n{more}"
    )
    return folder / "bench.yaml"


LABELS = "item_id,annotator,politeness\na,ann,Polite\na,gpt-4,Polite\nb,ann,Impolite\nb,bob,\n"
SUSPICION = (
    "'gpt-4' makes the reference labels and is named like a model; if it is no person, leave it "
    "out with "
    "`truth: {annotators: [ann, bob]}` or compare it with "
    "`judges: [{name: gpt-4, verdicts: FILE}]`"
)


@pytest.mark.parametrize("names", [["bench.yaml"], ["answers.csv", "labels.csv"]])
def test_who_makes_the_truth_is_said_and_no_blank_is_a_label(
    tmp_path: Path, names: list[str]
) -> None:
    bench(tmp_path, LABELS)
    report = check([tmp_path / name for name in names], "support-tone")
    assert report.errors == []
    truth = "Reference labels: the median of ann, bob and gpt-4 (which is named like a model); "
    assert any(f"3 answers and 3 human labels. {truth}{RULE}." in fact for fact in report.facts)
    kinds = {problem.kind: problem.message for problem in report.warnings}
    assert kinds["model_in_truth"] == SUSPICION
    assert "counted as no label (1 time, row 5)" in kinds["blank_label"]


def test_a_model_left_out_of_the_truth_is_no_warning(tmp_path: Path) -> None:
    path = bench(tmp_path, LABELS, more="truth: {annotators: [ann, bob], ties: lower}\n")
    found = check([path], "medical-safety")
    assert not [p for p in found.warnings if p.kind == "model_in_truth"]
    assert "the median of ann and bob; ties go to the less severe label." in found.facts[1]


def test_an_annotator_who_read_a_label_as_its_opposite_is_a_warning(tmp_path: Path) -> None:
    rows = [
        f"i{i},{who},{'Polite' if (i % 3 == 0) != (who == 'cem') else 'Impolite'}\n"
        for i in range(60)
        for who in ("ann", "bob", "cem")
    ]
    answers = "".join(f"i{i},Reply {i}.\n" for i in range(60))
    path = bench(tmp_path, "item_id,annotator,politeness\n" + "".join(rows))
    (tmp_path / "answers.csv").write_text("item_id,text\n" + answers)
    found = check([path], "medical-safety")
    (problem,) = found.warnings
    assert "cem gave 'Polite' on 67 %" in problem.message
    assert "seems to have exchanged 'Polite' and 'Impolite'" in problem.message


def test_one_cause_is_one_message(tmp_path: Path) -> None:
    path = bench(tmp_path, LABELS)
    (tmp_path / "answers.csv").unlink()
    (problem,) = check([path], "medical-safety").errors
    assert "answers.csv" in str(problem)
    path.write_text(path.read_text().replace("support-tone", "support-tones"))
    (problem,) = check([path], "medical-safety").errors
    assert "support-tones" in str(problem)
    path = bench(tmp_path, LABELS, judges="[{name: j, bakend: 'litellm:openai/gpt-4o'}]")
    (problem,) = check([path], "medical-safety").errors
    assert "bakend: is not a known key; did you mean 'backend'?" in str(problem)


def test_a_truth_of_nobody_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = bench(tmp_path, LABELS, more="truth: {annotators: [anna]}\n")
    (problem,) = check([path], "medical-safety").errors
    assert str(problem) == (
        f"{path}: truth.annotators: fits no annotator; found anna; allowed: ann, bob, gpt-4"
    )


# --- endpoints -----------------------------------------------------------------------------------


def judge(url: str = "http://127.0.0.1:9/v1", name: str = "loopback", more: str = "") -> str:
    return (
        f"[{{name: j, backend: 'openai-compatible:{name}', settings: {{base_url: '{url}'{more}}}}}]"
    )


def test_an_unset_key_is_a_warning_that_names_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LOOPBACK_KEY", raising=False)
    path = bench(tmp_path, LABELS, judges=judge(more=", api_key_env: LOOPBACK_KEY"))
    found = check([path], "medical-safety")
    assert (
        f"{path}: judges.j.settings.api_key_env: the environment variable LOOPBACK_KEY is not set "
        "or empty"
    ) in map(str, found.warnings)
    monkeypatch.setenv("LOOPBACK_KEY", "secret-of-the-test")
    assert not [p for p in check([path], "x").warnings if "LOOPBACK_KEY" in str(p)]


def test_a_run_warns_before_anything_is_judged(call, tmp_path: Path) -> None:
    path = bench(tmp_path, LABELS)
    code, out, _ = call("run", path, "--dry-run", "--run", tmp_path / "run")
    assert code == 0
    assert f"warning: {path}: {SUSPICION}" in out
    code, out, _ = call("check", path)
    assert code == 0
    assert f"warning: {path}: {SUSPICION}" in out


def test_a_hundred_like_problems_are_one_with_three_values_and_a_count(
    call, tmp_path: Path
) -> None:
    odd = [f"{'wordy ' * 12}{i}" for i in range(40)]
    rows = [f"i{i},ann,{odd[i % 40]}" for i in range(120)]
    (tmp_path / "labels.csv").write_text("\n".join(["item_id,annotator,politeness", *rows]) + "\n")
    code, out, _ = call("check", tmp_path / "labels.csv", "--rubric", "support-tone")
    told = [line for line in out.splitlines() if line.startswith("error: ")]
    assert code == 2
    message = "labels.csv:2: politeness: is not a label of politeness (100 times, rows 2-101)"
    assert message in told[0]
    assert told[0].count("…") == 3  # of which each is cut in the middle
    assert "and 20 more such errors, 120 in all, the last in row 121" in told[1]
    assert len(told) == 2


def test_a_program_reads_a_check_as_json(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rows = [f"i{i},{who},{'Kind' if i % 2 else 'Curt'}\n" for i in range(6) for who in "ab"]
    (tmp_path / "labels.csv").write_text("item_id,annotator,tone\n" + "".join(rows))
    code, out, _ = call("check", tmp_path / "labels.csv", "--json")
    report = json.loads(out)
    assert (code, report["errors"]) == (0, [])
    assert report["supports"][1]["use"] == "alignment of judges"
    assert report["supports"][1]["adds"] == "needs a judge's verdicts"
    code, out, _ = call("check", tmp_path / "none.csv", "--json")
    assert (code, json.loads(out)["errors"][0]["kind"]) == (2, "unreadable_file")


def test_without_a_rubric_tables_are_checked_by_their_layout(call, tmp_path: Path) -> None:
    rows = [f"i{i},{who},{'Safe' if i % 3 else 'Unsafe'}" for i in range(12) for who in ("A", "B")]
    table = tmp_path / "labels.csv"
    table.write_text("\n".join(["item_id,annotator,Safety", *rows, "i12,A,"]) + "\n")
    code, out, _ = call("check", table)
    assert code == 0
    assert "metric Safety: Unsafe, Safe (no order said)" in out
    assert "13 answers, 24 human labels" in out
    assert "warning: " in out
    assert "row 26" in out
    table.write_text("item_id,annotator,Safety\na,A\n")
    code, out, _ = call("check", table)
    assert (code, "error: " in out) == (2, True)


def test_verdicts_alone_are_no_labels_of_people(call, tmp_path: Path) -> None:
    table = tmp_path / "v.csv"
    table.write_text("item_id,judge,safe\na,j7,yes\nb,j7,no\nc,j7,yes\nd,j7,no\n")
    code, out, _ = call("check", table)
    assert code == 2
    assert "verdicts, of those named in judge, and no table holds labels of people" in out
    code, out, _ = call("check", table, "--column", "judge=annotator")
    assert code == 0
    assert "4 human labels" in out


def test_a_rubric_among_the_files_is_the_one_that_labels_are_held_against(tmp_path: Path) -> None:
    text = (shipped_folder("rubrics") / "support-tone.yaml").read_text("utf-8")
    (tmp_path / "ours.yaml").write_text(text)
    (tmp_path / "labels.csv").write_text("item_id,annotator,politeness\na,ann,Civil\n")
    files = [tmp_path / "labels.csv", tmp_path / "ours.yaml"]
    assert [p.message for p in check(files).errors] == ["is not a label of politeness"]
