"""Findings as a table, as a plot and as text, in a notebook too."""

import math
from dataclasses import replace
from itertools import cycle

import pytest
from matplotlib import pyplot as plt

from judgebench.alignment import Alignment
from judgebench.errors import SetupError
from judgebench.results.part import Part
from judgebench.results.rows import Results
from judgebench.results.shown import Shown


def test_the_table_has_judges_by_statistics_with_the_numbers_of_the_rows(
    realistic: Alignment,
) -> None:
    table = realistic.table()
    judges = [judge.name for judge in realistic.real_judges]
    for metric in realistic.rubric.metrics:
        of_metric = table.loc[metric.title]
        assert of_metric.index.to_list() == ["annotators", *judges, "best baseline"]
        for key in ("accuracy", "kappa", "alpha", "severe_recall"):
            value = realistic.score(key, judges[0], metric.id).value
            shown = of_metric.loc[judges[0], key]
            assert math.isnan(shown) if value is None else shown == value
        assert (
            of_metric.loc["annotators", "accuracy"]
            == realistic.ceiling("accuracy", metric.id).value
        )
    one = replace(
        realistic, rubric=realistic.rubric.model_copy(update={"metrics": [metric]})
    ).table()
    assert one.index.to_list() == ["annotators", *judges, "best baseline"]


def test_the_plot_is_axes_with_a_row_for_each_judge_and_metric(realistic: Alignment) -> None:
    axes = realistic.plot()
    names = [label.get_text().replace("\n", "") for label in axes.get_yticklabels()]
    metrics, judges = len(realistic.rubric.metrics), len(realistic.real_judges)
    assert len(names) == metrics * (1 + judges)
    assert realistic.real_judges[0].name.replace("\n", "") in names
    legend = [text.get_text() for text in axes.figure.legends[0].get_texts()]
    assert legend == ["annotator", "best baseline", "judge, with its interval"]
    assert axes.figure in map(plt.figure, plt.get_fignums())  # so that a notebook shows it
    plt.close(axes.figure)


OUTCOMES = {"REPLACE": "good", "ASSIST": "fair", "DO NOT USE": "bad", "CAN'T TELL": "unclear"}


class Decided(Shown):
    """An alignment, whose judges have each outcome in turn."""

    def __init__(self, aligned: Alignment) -> None:
        self.lines = tuple(
            replace(line, outcome=outcome, look=look)
            for line, (outcome, look) in zip(
                aligned.part.accuracies, cycle(OUTCOMES.items()), strict=False
            )
        )

    @property
    def part(self) -> Part:  # type: ignore[override]
        return Part("decided", "outcomes", Results(), accuracies=self.lines)


def test_in_a_column_of_a_paper_all_text_is_read_and_nothing_overlaps(
    realistic: Alignment,
) -> None:
    axes = Decided(realistic).plot(width=3.4)
    axes.figure.canvas.draw()
    assert axes.figure.get_figwidth() == 3.4
    texts = [*axes.get_yticklabels(), *axes.get_xticklabels(), axes.xaxis.label, *axes.texts]
    texts += axes.figure.legends[0].get_texts()
    assert min(text.get_fontsize() for text in texts) >= 7
    boxes = [text.get_window_extent() for text in texts if text.get_text()]
    assert all(box.x0 >= 0 and box.x1 <= axes.figure.bbox.width for box in boxes)
    assert not any(a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[:n])
    assert axes.get_position().width * 3.4 > 1.2  # inches are left for the plot
    plt.close(axes.figure)


def test_a_plot_is_drawn_into_axes_that_are_given(realistic: Alignment) -> None:
    figure, (first, second) = plt.subplots(1, 2, layout="constrained")
    assert realistic.plot(ax=first) is first
    assert first.get_legend()
    assert not [*figure.legends, *second.lines]
    assert len(first.get_yticklabels()) == len(realistic.plot().get_yticklabels())
    plt.close("all")


class Bare(Shown):
    """Findings of nothing."""

    @property
    def part(self) -> Part:  # type: ignore[override]
        return Part("bare", "nothing", Results())


def test_what_cannot_be_plotted_says_so() -> None:
    with pytest.raises(SetupError, match="nothing to plot"):
        Bare().plot()


def test_text_is_returned_and_not_printed_in_a_notebook(
    realistic: Alignment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert "Accuracy" in str(realistic)
    assert capsys.readouterr().out == ""
