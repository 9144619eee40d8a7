"""What section 4 of the paper on proxy tasks and rankings reports, by the command line: scores of
arguments and controls, medals, Friedman's test, agreement with people, and two biases."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from rank_folder_case import ITEMS, TEXTS, decided, judged, make, ranking, train, write

from judgebench.ranking.rankers import files_of

Call = Callable[..., tuple[int, str, str]]
TEXTS_OF = {**TEXTS, "m2": {item: f"No reason, {item} is so." for item in ITEMS}}
BEST_FIRST = ("gold", "m1", "m2", "noise")
RELATIVE_FIRST = ("m1", "gold", "m2", "noise")
GRADES = ("Strong", "Weak", "None", "None")
RANKS = {"gold": 1, "m1": 2, "m2": 3}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A ranking in which `kin`, a judge of the family of m1, alone puts m1 above gold."""
    texts = {
        system: {item: {"text": text} for item, text in of_items.items()}
        for system, of_items in TEXTS_OF.items()
    }
    judges = [{"name": name, "backend": f"llamacpp:{name}"} for name in ("kin", "stranger")]
    folder = make(tmp_path / "run", ranking(("m1", "m2"), arguments=texts), judges)
    for evaluator in ("t-baseline", "t-baseline-1"):
        train(folder, evaluator, "baseline", int(evaluator.endswith("1")))
        for place, system in enumerate(BEST_FIRST):
            p_right = 0.95 - 0.25 * place
            p_yes = {
                item: p_right if label == "yes" else 1 - p_right for item, label in ITEMS.items()
            }
            write(folder, [
                decided(evaluator, item, system, p_yes[item], text=text)
                for item, text in TEXTS_OF[system].items()
            ])  # fmt: skip
    for judge, order in (("kin", RELATIVE_FIRST), ("stranger", BEST_FIRST)):
        for system, grade in zip(order, GRADES, strict=True):
            labels = {"reasons": grade, "truth": "False" if system == "noise" else "True"}
            write(folder, [
                judged(judge, item, system, labels, text=text)
                for item, text in TEXTS_OF[system].items()
            ])  # fmt: skip
    (folder.path / "human").mkdir()
    rows = [
        f"t,{item},{annotator},{system},{rank}\n"
        for item in ITEMS
        for annotator in ("ann", "ben")
        for system, rank in RANKS.items()
    ]
    (folder.path / "human" / "t.csv").write_text(
        "task,item_id,annotator,system,rank\n" + "".join(rows)
    )
    folder.write_manifest(folder.manifest(), "finished", files_of(folder.path))
    return folder.path


def test_a_ranking_reports_what_the_paper_does(run: Path, call: Call) -> None:
    code, _, err = call("report", run)
    assert code == 0, err
    with (run / "report" / "results.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["part"] == "rankings"]

    def value(analysis: str, statistic: str, ranker: str, **keys: str) -> float:
        (row,) = (
            row
            for row in rows
            if (row["analysis"], row["statistic"], row["ranker"]) == (analysis, statistic, ranker)
            and all(row[key] == wanted for key, wanted in keys.items())
        )
        return float(row["value"])

    scores = [value("system", "score", "baseline", system=system) for system in BEST_FIRST]
    assert scores == [1, 1, 0, 0]  # the right label is given .95, .7, .45 and .2
    for ranker in ("baseline", "stranger", "humans"):
        assert value("ranking", "chi_square", ranker) == pytest.approx(4)  # 2 trials, 3 arguments
    assert value("ranking", "controls_below", "baseline") == 1
    assert value("agreement", "tau_b", "stranger", other="humans") == pytest.approx(1)
    assert value("agreement", "tau_b", "kin", other="humans") == pytest.approx(1 / 3)
    assert value("self_preference", "places", "kin", system="m1") == pytest.approx(1)
    assert -1 <= value("length_bias", "rho", "humans") <= 1
    page = (run / "report" / "tables.md").read_text("utf-8")
    medals = page.split("| Ranker | 🥇 | 🥈 | 🥉 |")[1].split("\n\n")[0].splitlines()
    assert any(line.startswith("| humans | gold | m1 | m2") for line in medals)
