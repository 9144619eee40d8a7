"""The tables that people choose for a paper, the plot of a statistic, and subgroups."""

import re
from dataclasses import replace

import numpy as np
import pytest
from align_case import aligned, answers, labels, metric, rubric, verdicts
from aligned import align
from matplotlib import pyplot as plt
from scipy.stats import permutation_test

from judgebench.alignment import STATISTICS, Alignment
from judgebench.errors import SetupError
from judgebench.records import Answer
from judgebench.stats.paired_tests import holm

CHOSEN = ["accuracy", "kappa_quadratic", "mae", "spearman"]


def of_first_metric(a: Alignment) -> Alignment:
    first = a.rubric.model_copy(update={"metrics": a.rubric.metrics[:1]})
    return replace(a, study=replace(a.study, rubric=first))


def test_a_chosen_table_holds_the_numbers_of_the_rows(realistic: Alignment) -> None:
    frame = realistic.table(CHOSEN).to_frame()
    judges = [judge.name for judge in realistic.real_judges]
    for m in realistic.rubric.metrics:
        of_metric = frame.loc[m.title]
        assert of_metric.index.to_list() == ["One annotator", *judges, "Best baseline"]
        for key in CHOSEN:
            estimate = realistic.score(key, judges[0], m.id, "worst")
            shown = of_metric.loc[judges[0]]
            assert np.isnan(shown[key]) if estimate.value is None else shown[key] == estimate.value
            if estimate.low is not None:
                assert (shown[f"{key}_low"], shown[f"{key}_high"]) == (estimate.low, estimate.high)
        one = realistic.ceiling("accuracy", m.id)
        assert of_metric.loc["One annotator", "accuracy"] == one.value


def test_a_table_shows_itself_in_every_format(realistic: Alignment) -> None:
    table = of_first_metric(realistic).table(CHOSEN)
    for text in (str(table), table._repr_html_(), table.latex(), table.markdown()):
        assert "MAE" in text
        assert "Mean absolute error: distance" in " ".join(text.split())
    assert table.latex().startswith(r"% Made by judgebench. Needs \usepackage{booktabs}")
    assert "| Scientific Consensus | One annotator | 0.921 [0.877, 0.953]" in table.markdown()


def test_intervals_are_left_out_where_they_are_not_wanted(realistic: Alignment) -> None:
    bare = of_first_metric(realistic).table(CHOSEN, intervals=False)
    assert bare.to_frame().columns.to_list() == CHOSEN
    assert not re.search(r"\[[.\d]", bare.latex().split("midrule")[1].split("bottomrule")[0])


def test_the_usual_table_has_intervals_of_shares_alone(realistic: Alignment) -> None:
    columns = realistic.table().to_frame().columns
    assert [c for c in columns if "_low" not in c and "_high" not in c] == [
        "accuracy", "kappa", "alpha", "severe_recall",
    ]  # fmt: skip
    assert [c for c in columns if "_low" in c] == ["accuracy_low", "severe_recall_low"]
    nominal = aligned({"ann": "abca"}, {"m": "abcb"}, measured=metric("nominal")).table()
    assert "severe_recall" not in nominal.to_frame()


def test_the_chosen_table_is_that_of_the_paper_and_of_the_figures(realistic: Alignment) -> None:
    name, title = realistic.real_judges[0].name, realistic.rubric.metrics[0].title
    part = replace(realistic.chosen(["mae"]), outcomes={(name, title): "REPLACE"}).part
    (table,) = [table for table in part.paper if table.key == "main"]
    assert table.columns == ("Metric", "Judge", "MAE", "Outcome")
    assert table.rows[1][-1].text == "replace"
    (figure,) = [f for b in part.blocks for f in b.figures if f.key.startswith("judges_and")]
    assert figure.key == "judges_and_controls_mae"


def test_an_unknown_column_names_those_that_are_allowed(realistic: Alignment) -> None:
    with pytest.raises(SetupError, match="did you mean 'accuracy'") as error:
        realistic.table(["acuracy", "mae", "f"])
    assert [problem.found for problem in error.value.problems] == ["acuracy", "f"]
    assert error.value.problems[0].allowed == ", ".join(STATISTICS)
    with pytest.raises(SetupError, match="is no statistic"):
        realistic.plot("kapa")


@pytest.mark.parametrize("statistic", STATISTICS)
def test_every_statistic_has_a_plot(realistic: Alignment, statistic: str) -> None:
    axes = realistic.plot(statistic, width=3.4)
    legend = [text.get_text() for text in axes.figure.legends[0].get_texts()]
    assert legend[0] == realistic.real_judges[0].name
    assert legend[-1] == "One annotator"
    assert len(legend) == len(realistic.study.judges) + 1
    assert axes.get_xlabel().startswith(STATISTICS[statistic].heading)
    plt.close("all")


def test_an_error_of_two_labels_is_inside_the_axes() -> None:
    axes = aligned({"ann": "aacc" * 10, "bob": "aacc" * 10}, {"m": "ccaa" * 10}).plot("mae")
    assert axes.get_xlim()[1] > 2.0
    plt.close(axes.figure)


def test_one_column_may_be_a_text(realistic: Alignment) -> None:
    assert str(realistic.table("accuracy")) == str(realistic.table(["accuracy"]))


def test_agreement_alone_is_chosen_by_its_columns() -> None:
    agreed = aligned({"ann": "abcabc", "bob": "abccbc"}).chosen(["icc2", "fleiss"])
    assert agreed.part.paper[0].columns == ("Metric", "ICC(2,1)", "κ")


def test_a_plot_is_drawn_into_axes_that_are_given(realistic: Alignment) -> None:
    figure, (first, second) = plt.subplots(1, 2, layout="constrained")
    assert realistic.plot(ax=first) is first
    assert first.get_legend()
    assert not [*figure.legends, *second.lines]
    plt.close("all")
    with pytest.raises(SetupError, match="nothing to plot"):
        aligned({"ann": "abc", "bob": "abc"}).plot()


# --- subgroups ------------------------------------------------------------------------------------


def in_two_languages(n: int = 60) -> Alignment:
    """A judge who is as good as people in English, and worse in German."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, n)

    def said(skill: np.ndarray) -> str:
        guess = rng.integers(0, 3, n)
        return "".join("abc"[x] for x in np.where(rng.random(n) < skill, truth, guess))

    people = {name: said(np.full(n, 0.9)) for name in ("ann", "bob", "cy")}
    judge = said(np.where(np.arange(n) % 2, 0.3, 0.9))
    items = [
        Answer(item.item_id, item.text, group=item.group,
               metadata={"language": "en" if i % 2 == 0 else "de"})
        for i, item in enumerate(answers(n))
    ]  # fmt: skip
    return align("x", rubric(), items, labels(people), [verdicts("m", judge, items)])


def of_german(a: Alignment) -> tuple[np.ndarray, np.ndarray]:
    """By item in German: the sum of judge minus annotator over pairs, and the number of pairs."""
    study, humans = a.study, a.study.humans["harm"]
    values, judged = humans.ratings.values, study.judged(study.judges[0], a.rubric.metrics[0])
    sums, pairs = [], []
    for item in range(1, len(values), 2):
        ahead = []
        for annotator in range(values.shape[1]):
            first, second = np.delete(values[item], annotator)
            if first == second:  # else the two others tie
                right = [judged[item] == first, values[item, annotator] == first]
                ahead.append(int(right[0]) - int(right[1]))
        sums.append(sum(ahead))
        pairs.append(len(ahead))
    return np.array(sums), np.array(pairs)


def test_a_subgroup_is_measured_as_it_would_be_alone() -> None:
    found = in_two_languages()
    frame = found.by("language").to_frame().loc["Harm", "m"]
    assert frame.index.to_list() == ["de", "en"]
    assert frame.n.to_list() == [30, 30]
    truth, judge = found.study.humans["harm"].truth, found.study.judges[0]
    judged = found.study.judged(judge, found.rubric.metrics[0])
    for language, rows in (("en", slice(0, None, 2)), ("de", slice(1, None, 2))):
        assert frame.accuracy[language] == np.mean(judged[rows] == truth[rows])


def test_the_gap_to_annotators_and_its_p_are_those_of_pairs() -> None:
    found = in_two_languages()
    de = found.by("language").to_frame().loc["Harm", "m", "de"]
    sums, pairs = of_german(found)
    assert de.annotator_gap == pytest.approx(sums.sum() / pairs.sum())
    assert de.annotator_gap_low < de.annotator_gap < de.annotator_gap_high < 0
    test = permutation_test(
        (sums,), np.sum, permutation_type="samples", n_resamples=100_000, random_state=1
    )
    assert de.permutation_p == pytest.approx(test.pvalue, abs=0.002)


def test_holms_correction_is_over_the_groups() -> None:
    found = in_two_languages().chosen(by="language")
    rows = found.results.select("subgroup", by="language")
    p = [row.estimate.value for row in rows if row.statistic == "permutation_p"]
    corrected = [row.estimate for row in rows if row.statistic == "p_holm"]
    assert [estimate.value for estimate in corrected] == holm(p)
    assert corrected[0].method.startswith("Holm's correction over 2 tests")
    assert "By language" in [block.heading for block in found.part.blocks]
    assert "subgroups-language" in [table.key for table in found.part.paper]


def test_a_column_that_was_not_kept_names_those_that_were() -> None:
    found = in_two_languages()
    with pytest.raises(SetupError, match="by: was not kept with the answers") as error:
        found.by("languge")
    assert "did you mean 'language'" in str(error.value)
    assert error.value.problems[0].allowed == "language"


def test_too_many_values_are_no_groups() -> None:
    items = [replace(item, system=item.item_id) for item in answers(50)]
    said = "ab" * 25
    found = align("x", rubric(), items, labels({"ann": said}), [verdicts("m", said, items)])
    with pytest.raises(SetupError, match="50 values, and at most 40 are groups"):
        found.by("system")


def test_one_annotator_leaves_the_gap_undefined_with_a_reason() -> None:
    items = [replace(item, system="st"[i % 2]) for i, item in enumerate(answers(20))]
    judge = verdicts("m", "aa" * 10, items)
    found = align("x", rubric(), items, labels({"ann": "ab" * 10}), [judge])
    rows = found.chosen(by="system").results.select("subgroup", "annotator_gap")
    assert [row.estimate.value for row in rows] == [None, None]
    assert all("compared with others" in row.estimate.reason for row in rows)


# --- every item -----------------------------------------------------------------------------------


def test_items_hold_the_labels_of_everybody() -> None:
    found = in_two_languages(6)
    items = found.study.items()
    assert items.columns.to_list() == [
        "item_id", "question", "group", "system", "language", "metric", "reference",
        "annotator ann", "annotator bob", "annotator cy", "judge m", "status m",
    ]  # fmt: skip
    assert len(items) == 6
    assert items.language.to_list() == ["en", "de"] * 3
    label = [found.rubric.metrics[0].label_texts[i] for i in found.study.humans["harm"].truth]
    assert items.reference.to_list() == label


def test_a_missing_label_says_how_the_verdict_ended() -> None:
    items = aligned({"ann": "ab.c"}, {"m": "a.bc"}).study.items()
    assert items.isna().sum()[["judge m", "annotator ann", "reference"]].to_list() == [1, 1, 1]
    items = items.fillna("")
    assert items["judge m"].to_list() == ["a", "", "b", "c"]
    assert items["status m"].to_list() == ["ok", "unparsed", "ok", "ok"]
    assert items["annotator ann"].to_list() == items.reference.to_list() == ["a", "b", "", "c"]


def test_items_stand_once_for_each_metric(realistic: Alignment) -> None:
    items = realistic.study.items()
    assert len(items) == realistic.n_answers * len(realistic.rubric.metrics)
    first = items[items.metric == realistic.rubric.metrics[0].id]
    counts = realistic.results.select("distribution", metric=realistic.rubric.metrics[0].id)
    assert {r["human_label"]: r.estimate.value for r in counts if r.estimate.value} == (
        first.reference.value_counts().to_dict()
    )
