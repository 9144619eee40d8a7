"""`--columns` and `--by`: people choose the table of a paper, and groups of answers."""

from pathlib import Path

import pandas as pd
import pytest

TABLES = Path(__file__).parents[2] / "docs" / "tables"
FILES = [TABLES / name for name in ("labels.csv", "my-judge.csv")]
GROUPS = (TABLES / "replies.csv", "--by", "language")


def test_align_prints_the_chosen_columns_and_the_groups(call) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = call("align", *FILES, *GROUPS, "--columns", "accuracy,macro_f1, kappa")
    assert code == 0
    (heading,) = [line for line in out.splitlines() if line.startswith(" Judge ")]
    assert heading.split() == ["Judge", "Accuracy", "Macro-F1", "κ", "Outcome"]
    groups = out.split("By language: the judges in each group of answers")[1]
    first = groups.split("Refused: my-judge")[1].splitlines()[1]
    assert first.split()[:3] == ["de", "200", ".98"]


def test_a_report_holds_the_chosen_table_and_the_rows_of_groups(  # type: ignore[no-untyped-def]
    call, tmp_path: Path
) -> None:
    given = (*GROUPS, "--columns", "macro_f1", "--to", tmp_path / "out")
    assert call("report", *FILES, *given)[0] == 0
    main = (tmp_path / "out" / "latex" / "main.tex").read_text("utf-8")
    assert "Macro-F1" in main.replace("{}", "").replace("\\\\", "")
    assert "By language: the judges" in main
    results = pd.read_csv(tmp_path / "out" / "results.csv", low_memory=False)
    rows = results[results.analysis == "subgroup"]
    assert {*rows.group} == {"de", "en"}
    assert {*rows.statistic} == {"accuracy", "annotator_gap", "permutation_p", "p_holm"}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--columns", "acuracy"), "--columns: is no statistic of this table; did you mean"),
        (("--by", "system"), "--by: was not kept with the answers"),
        (("--by", "langauge"), "--by: no table has this column"),
    ],
)
def test_an_unknown_column_is_an_error_that_says_which_there_are(  # type: ignore[no-untyped-def]
    call, options: tuple[str, str], told: str
) -> None:
    code, _, err = call("align", *FILES, *options)
    assert code == 2
    assert told in err


def test_an_annotator_is_no_group_of_answers_by_accident(  # type: ignore[no-untyped-def]
    call, tmp_path: Path
) -> None:
    table = tmp_path / "wide.csv"
    cells = ["yes,yes,yes,yes", "no,yes,no,no", "no,no,no,no", "yes,yes,yes,yes", "no,no,no,yes"]
    rows = [f"i{i},{cells[i % 5]}" for i in range(30)]
    table.write_text("\n".join(["item_id,ann,ben,cat,gpt", *rows]))
    code, _, err = call("align", table, "--by", "ann")
    assert code == 2
    assert "--by: it holds labels of Label, which then count for nobody" in err
    code, out, _ = call("align", table, "--by", "ann", "--column", "ann=kept")
    assert code == 0
    assert "By ann: the judges in each group of answers" in out
