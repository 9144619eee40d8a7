"""Tables of scores: the command, the function, what is refused, and a published figure."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import judgebench as jb
from judgebench.results.shown import Shown
from judgebench.stats.paired_tests import holm
from judgebench.stats.ranks import JUMPS

SYSTEMS = list("abcdefghi")
RNG = np.random.default_rng(7)
SKILL = RNG.normal(size=9)
TABLE = pd.DataFrame(
    {
        "model": SYSTEMS, "closed": SKILL.round(3), "open": (SKILL + RNG.normal(size=9)).round(3),
        "bits": np.linspace(0.4, 1.9, 9)[RNG.permutation(9)].round(3), "note": "same",
    }
)  # fmt: skip
TABLE["perplexity"] = (2 ** TABLE["bits"]).round(3)


def written(folder: Path, table: pd.DataFrame = TABLE) -> Path:
    table.to_csv(folder / "scores.csv", index=False)
    return folder / "scores.csv"


def joined(text: str) -> str:
    return " ".join(text.split())


def test_a_table_of_systems_has_fishers_intervals_and_holms_correction() -> None:
    found = jb.correlate(TABLE, ["closed"], flip=["perp*"]).results
    ps = []
    for column, sign in (("open", 1), ("bits", 1), ("perplexity", -1)):
        whole = stats.pearsonr(sign * TABLE[column], TABLE["closed"])
        one = found.find("pearson", "correlation", judge=column, scope="system")
        interval = whole.confidence_interval()
        expected = (whole.statistic, interval.low, interval.high)
        assert (one.value, one.low, one.high) == pytest.approx(expected)
        assert (one.n, one.n_missing, one.method) == (9, 0, "Fisher's z over systems")
        ps.append(whole.pvalue)
    rows = found.select("test", "p_holm", of="pearson")
    assert [row.estimate.value for row in rows] == pytest.approx(holm(ps))


def test_the_command_says_what_so_few_systems_cannot_show(call, tmp_path: Path) -> None:
    to = ("--to", tmp_path / "r")
    code, out, err = call("score", "correlate", written(tmp_path), "--against", "closed", *to)
    assert (code, err) == (0, "")
    said = joined(out)
    assert "With 9 systems, |r| below .67 shows nothing." in said
    assert "of 3 columns with p < .05 after Holm's correction." in said
    assert (tmp_path / "r" / "report.html").is_file()


def test_gaps_are_left_out_and_counted() -> None:
    table = TABLE.assign(open=TABLE["open"].where(TABLE["model"] != "c"))
    one = jb.correlate(table, ["closed"]).results.find("pearson", "correlation", judge="open")
    kept = table["open"].notna()
    assert one.value == pytest.approx(stats.pearsonr(table["open"][kept], table["closed"][kept])[0])
    assert (one.n, one.n_missing) == (8, 1)


def test_only_some_columns_are_looked_at(call, tmp_path: Path) -> None:
    given = ("--against", "closed", "--column", "o*", "--json")
    code, out, _ = call("score", "correlate", str(written(tmp_path)), *given)
    assert code == 0
    rows = json.loads(out)["correlations"]
    assert {row["judge"] for row in rows if row["analysis"] == "correlation"} == {"open"}


def test_items_are_looked_at_at_three_levels() -> None:
    n = 120
    human = RNG.integers(0, 4, n)
    items = pd.DataFrame(
        {
            "question": [f"q{i // 6}" for i in range(n)], "system": [f"s{i % 6}" for i in range(n)],
            "human": human, "score": human + RNG.normal(size=n),
        }
    )  # fmt: skip
    found = jb.correlate(items, ["human"], group="question", system="system")
    scopes = ["pooled", "within", "system", "given the system"]
    assert found.results.values("scope", "correlation") == scopes
    one = found.results.find("kendall", "correlation", judge="score", scope="pooled")
    assert one.value == pytest.approx(stats.kendalltau(items["human"], items["score"])[0])
    assert "20 clusters" in one.method
    chance = found.results.find("pairwise", "chance", judge="score", scope="pooled").value
    assert chance < found.results.find("pairwise", "correlation", judge="score").value


def rated(systems: int = 6, questions: int = 40) -> pd.DataFrame:
    """Systems near each other; two scores that go together, one of which knows what is good."""
    rng = np.random.default_rng(9)
    shape = (questions, systems)
    good, shared = 0.2 * rng.normal(size=systems) + rng.normal(size=shape), rng.normal(size=shape)
    human = np.clip(np.round(2 + good + 0.5 * rng.normal(size=shape)), 0, 4)
    scores = {
        "one": shared + 0.55 * good, "other": shared - 0.05 * good,
        "copy": shared + 0.55 * good + 0.02 * rng.normal(size=shape),
    }  # fmt: skip
    at = np.indices(shape)
    return pd.DataFrame(
        {
            "question": [f"q{i}" for i in at[0].ravel()],
            "system": [f"s{i}" for i in at[1].ravel()],
            "human": human.ravel(), **{name: x.ravel() for name, x in scores.items()},
        }
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_an_estimate_lies_in_its_interval(seed: int) -> None:
    rng = np.random.default_rng(seed)
    good, shape = 0.2 * rng.normal(size=14), (30, 14)
    human, score = (np.round(good + rng.normal(size=shape)) for _ in range(2))
    at = np.indices(shape)
    items = pd.DataFrame(
        {"q": [f"q{i}" for i in at[0].ravel()], "system": [f"s{i}" for i in at[1].ravel()],
         "human": human.ravel(), "score": score.ravel()}
    )  # fmt: skip
    rows = jb.correlate(items, ["human"], group="q", system="system").results
    for row in rows.select("correlation"):
        estimate = row.estimate
        if row["scope"] == "system" and row.statistic != "pearson":
            assert (estimate.low, estimate.reason) == (None, JUMPS)
        else:
            assert estimate.low <= estimate.value <= estimate.high, row
            assert estimate.method.startswith("jackknife-t over 30 clusters")


def test_the_partial_correlation_is_that_of_what_the_systems_leave() -> None:
    """FRANK's measure: the correlation of residuals, once each system's mean is taken off both."""
    items = rated(systems=5, questions=30)
    found = jb.correlate(items, ["human"], group="question", system="system").results
    rest = {c: items[c] - items.groupby("system")[c].transform("mean") for c in ("one", "human")}
    keys = {"judge": "one", "scope": "given the system"}
    estimate = found.find("pearson", "correlation", **keys)
    assert estimate.value == pytest.approx(stats.pearsonr(rest["one"], rest["human"])[0])
    assert estimate.low < estimate.value < estimate.high
    ranked = items[["one", "human"]].rank().assign(system=items["system"])
    rest = {c: ranked[c] - ranked.groupby("system")[c].transform("mean") for c in ("one", "human")}
    rho = found.find("spearman", "correlation", **keys).value
    assert rho == pytest.approx(stats.pearsonr(rest["one"], rest["human"])[0])


# Scores of a metric and of humans, the best pairwise accuracy and the tie that reaches it: the
# examples of mt_metrics_eval/tau_optimization_test.py (google-research/mt-metrics-eval, acc_23).
# A row is a group.
TIES = [
    ([[0, 2, 6, 8]], [[1, 2, 3, 4]], 1.0, 0),
    ([[0, 2, 6, 8]], [[1, 1, 1, 4]], 4 / 6, 4),
    (
        [[0, 5, 2, 3, 2], [None, 2, 1, 5, 3], [9, 1, 5, 3, 8], [9, 3, 4, 4, 1], [None] * 5],
        [[1, 5, 2, 1, 1], [4, 2, 2, 1, 4], [5, 9, 2, 8, 7], [7, 6, None, 3, 2], [None] * 5],
        0.4916666666666668, 1,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("metric", "human", "accuracy", "tie"), TIES)
def test_ties_are_calibrated_as_mt_metrics_eval_does(metric, human, accuracy, tie) -> None:
    rows = [
        {"item": f"q{i}", "metric": x, "human": y}
        for i, (xs, ys) in enumerate(zip(metric, human, strict=True))
        for x, y in zip(xs, ys, strict=True)
    ]
    found = jb.correlate(pd.DataFrame(rows), ["human"], group="item").results
    keys = {"judge": "metric", "scope": "within"}
    assert found.find("pairwise", "correlation", **keys).value == pytest.approx(accuracy)
    assert found.find("pairwise", "tie", **keys).value == pytest.approx(tie)


def ratings() -> pd.DataFrame:
    """Three raters on a scale of 0 to 100, with gaps, and a metric that knows their mean."""
    rng = np.random.default_rng(3)
    true = rng.uniform(20, 80, 60)
    each = np.clip(true[:, None] + rng.normal(0, 12, (60, 3)), 0, 100).round()
    each[::7, 1] = np.nan
    people = {name: each[:, i] for i, name in enumerate(("ann", "ben", "cem"))}
    metric = true + rng.normal(0, 20, 60)
    return pd.DataFrame({"question": np.arange(60) // 3, **people, "metric": metric})


def test_raters_on_a_scale_have_krippendorffs_alpha(call, tmp_path: Path) -> None:
    krippendorff = pytest.importorskip("krippendorff")
    table, names = ratings(), ["ann", "ben", "cem"]
    expected = krippendorff.alpha(
        reliability_data=table[names].to_numpy().T, level_of_measurement="interval"
    )
    found = jb.correlate(table, {"human": names}, group="question").results
    alpha = found.find("alpha", "agreement", metric="human")
    assert alpha.value == pytest.approx(expected)
    assert alpha.low < alpha.value < alpha.high
    mean = table[names].mean(axis=1)
    r = found.find("pearson", "correlation", judge="metric", scope="pooled").value
    assert r == pytest.approx(stats.pearsonr(table["metric"], mean)[0])
    assert found.values("judge", "correlation") == ["metric"]
    options = ("--against", "human=ann,ben,cem", "--group", "question")
    code, out, _ = call("score", "correlate", written(tmp_path, table), *options)
    assert code == 0
    assert "human: Krippendorff's α (interval) of ann, ben, cem is 0." in joined(out)


def test_nested_columns_are_read(tmp_path: Path) -> None:
    """Objects are columns by their path, a list of ratings is a column for each of them."""
    table, path = ratings(), tmp_path / "nested.jsonl"
    lines = [
        {"question": f"q{row.question}", "scores": {"metric": row.metric},
         "ratings": [None if np.isnan(x) else x for x in (row.ann, row.cem)]}
        for row in table.itertuples()
    ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = jb.correlate(path, ["ratings"], group="question").results
    assert found.find("alpha", "agreement").value is not None
    r = found.find("pearson", "correlation", judge="scores.metric", scope="pooled").value
    mean = table[["ann", "cem"]].mean(axis=1)
    assert r == pytest.approx(stats.pearsonr(table["metric"], mean)[0])


def test_several_files_add_rows_or_columns(call, tmp_path: Path) -> None:
    items = rated(systems=4, questions=10).drop(columns=["copy", "other"])
    roles = {"group": "question", "system": "system"}
    whole = jb.correlate(items, ["human"], **roles).results
    scores, human = items.drop(columns="human"), items.drop(columns="one")
    parts = [scores[scores["system"] < "s2"], scores[scores["system"] >= "s2"], human]
    paths = [tmp_path / f"{name}.csv" for name in ("first", "second", "people")]
    for part, path in zip(parts, paths, strict=True):
        part.to_csv(path, index=False)
    options = ("--against", "human", "--group", "question", "--system", "system", "--json")
    code, out, _ = call("score", "correlate", *paths, *options)
    assert code == 0
    rows = json.loads(out)["correlations"]
    for scope in ("pooled", "within", "system", "given the system"):
        (row,) = (
            row for row in rows
            if (row["analysis"], row["statistic"], row.get("scope")) ==
            ("correlation", "pearson", scope)
        )  # fmt: skip
        value = whole.find("pearson", "correlation", judge="one", scope=scope).value
        assert row["value"] == pytest.approx(value)
    with pytest.raises(jb.SetupError, match="several tables need the columns that name question"):
        jb.correlate([TABLE, TABLE], ["closed"])
    with pytest.raises(jb.SetupError, match="no question and system is in both tables"):
        jb.correlate([scores, human.assign(system="z")], ["human"], **roles)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"against": ["close"]}, "against: fits no column; found close"),
        ({"against": ["note"]}, "note: is no number"),
        ({"flip": ["x*"]}, "flip: fits no column; found x\\*; allowed: closed"),
        ({"scores": ["o*", "x*"]}, "column: fits no column; found x\\*; allowed: closed"),
        ({"against": {"m": ["clozed", "open"]}}, "against: fits no column; found clozed"),
        ({"group": "question"}, "question: the column is missing"),
    ],
)
def test_what_is_wrong_is_said(given: dict[str, object], message: str) -> None:
    with pytest.raises(jb.SetupError, match=message):
        jb.correlate(TABLE, **given)


def test_a_system_with_two_rows_needs_a_group(tmp_path: Path) -> None:
    path = written(tmp_path, pd.concat([TABLE, TABLE.head(1)]))
    with pytest.raises(jb.SetupError, match="a system has two rows: --group names the column"):
        jb.correlate(path)
    # An unknown column is named first: the other message would hide it.
    with pytest.raises(jb.SetupError, match="flip: fits no column; found opne"):
        jb.correlate(path, flip=["opne"])


def test_two_systems_have_no_correlation() -> None:
    rows = jb.correlate(TABLE.head(2)).results.select("redundancy")
    assert {row.estimate.reason for row in rows} == {"fewer than 3 items have both"}


def test_every_item_has_a_question() -> None:
    some = TABLE.assign(question=["a", "", "a", "b", " ", *"bccc"[: len(TABLE) - 5]])
    with pytest.raises(jb.SetupError, match=r"(?s)3: question: is blank.*6: question: is blank"):
        jb.correlate(some, group="question")
    with pytest.raises(jb.SetupError, match=r"(?s)3: question: is blank.*6: question: is blank"):
        jb.consistency(some, group="question")


def test_one_column_goes_with_nothing() -> None:
    with pytest.raises(jb.SetupError, match="needs two columns of numbers"):
        jb.correlate(TABLE[["model", "open"]])


# The figure of a paper --------------------------------------------------------------------------

LEFT_OUT = ("Meta-Llama-3.1-70B-Instruct", "Mixtral-8x7B-Instruct-v0.1", "Yi-1.5-34B-Chat")
MCQA = {
    "MedMCQA: accuracy": 4183.0, "MedQA: accuracy": 1273.0, "CareQA (en): accuracy": 5621.0,
    "PubMedQA: accuracy": 500.0, "MMLU: accuracy": 1089.0,
}  # fmt: skip
# Paper 004 ("Automatic evaluation of healthcare LLMs beyond question answering"), Figure 1, as its
# text prints the cells.
FIGURE_1 = {
    "Med Text Classification: accuracy": "-0.63", "Med Transcriptions: accuracy": "0.35",
    "BioRED: accuracy": "-0.47",
    **{f"CareQA-Open: {m}": r for m, r in (
        ("ROUGE1", "-0.38"), ("BLEU", "0.017"), ("word perplexity", "0.58"),
        ("Prometheus", "-0.042"))},
    **{f"MedDialog Raw: {m}": r for m, r in (
        ("ROUGE1", "-0.37"), ("BLEU", "-0.2"), ("word perplexity", "-0.08"),
        ("Prometheus", "-0.075"))},
    **{f"MEDIQA2019: {m}": r for m, r in (
        ("ROUGE1", "0.15"), ("BLEU", "-0.26"), ("word perplexity", "0.18"),
        ("Prometheus", "0.032"))},
    **{f"MedText: {m}": r for m, r in (
        ("ROUGE1", "-0.056"), ("BLEU", "-0.068"), ("word perplexity", "0.41"),
        ("Prometheus", "-0.073"))},
    **{f"ACI-Bench: {m}": r for m, r in (
        ("ROUGE1", "0.35"), ("BLEU", "0.32"), ("word perplexity", "0.057"),
        ("Prometheus", "0.36"))},
    **{f"MTS-Dialog: {m}": r for m, r in (
        ("ROUGE1", "-0.12"), ("BLEU", "0.048"), ("word perplexity", "0.44"),
        ("Prometheus", "-0.44"))},
    **{f"MIMIC-III: {m}": r for m, r in (
        ("ROUGE1", "-0.26"), ("BLEU", "-0.18"), ("F1-RadGraph", "-0.66"),
        ("word perplexity", "0.17"), ("Prometheus", "-0.6"))},
    **{f"MedDialog Qsumm: {m}": r for m, r in (
        ("ROUGE1", "-0.65"), ("BLEU", "-0.74"), ("Prometheus", "-0.38"))},
    **{f"OLAPH: {m}": r for m, r in (
        ("ROUGE1", "-0.21"), ("BLEU", "-0.23"), ("word perplexity", "-0.25"),
        ("relaxed perplexity", "0.33"))},
}  # fmt: skip


@pytest.fixture(scope="module")
def tables(shared_data: Path) -> pd.DataFrame:
    """Tables 7-20 of the paper: a row for each model, a column for each benchmark and metric."""
    text = (shared_data.parent / "papers" / "004_tables.json").read_text(encoding="utf-8")
    parts = [
        pd.DataFrame.from_dict(table["rows"], orient="index", columns=table["columns"])
        for table in json.loads(text)["tables"].values()
    ]
    return pd.concat(parts, axis=1).astype(float).rename_axis("model").reset_index()


def rounding_moves(x: np.ndarray, y: np.ndarray) -> float:
    """How far half a unit of the third decimal of every y moves Pearson's r, at most (to first
    order, with a fifth more for what is beyond it)."""
    u, v = ((z - z.mean()) / np.sqrt(((z - z.mean()) ** 2).sum()) for z in (x, y))
    slope = (u - (u @ v) * v) / np.sqrt(((y - y.mean()) ** 2).sum())
    return 1.2 * float(np.abs(slope).sum()) * 0.0005


@pytest.fixture(scope="module")
def nine(tables: pd.DataFrame) -> pd.DataFrame:
    found = tables[~tables["model"].isin(LEFT_OUT)][["model", *MCQA, *FIGURE_1]]
    assert len(found) == 9
    return found


@pytest.fixture(scope="module")
def figure(nine: pd.DataFrame) -> Shown:
    mcqa = sum(w * nine[c] for c, w in MCQA.items()) / sum(MCQA.values())
    return jb.correlate(nine.assign(mcqa=mcqa)[["model", "mcqa", *FIGURE_1]], ["mcqa"],
                        flip=["*perplexity"])  # fmt: skip


def test_the_figure_of_the_paper_but_for_one_cell(nine: pd.DataFrame, figure: Shown) -> None:
    mcqa = sum(w * nine[c] for c, w in MCQA.items()) / sum(MCQA.values())
    odd = {}
    for column, printed in FIGURE_1.items():
        one = figure.results.find("pearson", "correlation", judge=column)
        assert one.n == 9
        moved = rounding_moves(nine[column].to_numpy(), mcqa.to_numpy())
        moved += rounding_moves(mcqa.to_numpy(), nine[column].to_numpy())
        rounded = 0.5 * 10.0 ** -len(printed.partition(".")[2])
        if abs(one.value - float(printed)) > rounded + moved:
            odd[column] = round(one.value, 3)
    assert len(FIGURE_1) == 39
    assert odd == {"MTS-Dialog: Prometheus": -0.47}


def test_nine_systems_show_one_cell_and_none_after_correction(figure: Shown) -> None:
    rows = figure.results.select("correlation", "pearson")
    r = {row.judge: row.estimate.value for row in rows}
    assert [column for column, value in r.items() if abs(value) > 0.666] == [
        "MedDialog Qsumm: BLEU"
    ]
    assert (
        min(p.estimate.value for p in figure.results.select("test", "p_holm", of="pearson")) > 0.05
    )
    assert "mcqa: none of 39 columns with p < .05 after Holm's" in joined(str(figure))
