"""Findings as a table, as a plot and as text, in a notebook too."""

from dataclasses import replace
from itertools import cycle

import pytest
from matplotlib import pyplot as plt

from judgebench.alignment import Alignment
from judgebench.decisions.decide import decide
from judgebench.errors import SetupError
from judgebench.records import Results
from judgebench.results.blocks import Block, ReportSection
from judgebench.results.shown import Shown


def test_the_plot_is_axes_with_a_row_for_each_judge_and_metric(realistic: Alignment) -> None:
    axes = Decided(realistic).plot()
    names = [label.get_text().replace("\n", "") for label in axes.get_yticklabels()]
    metrics, judges = len(realistic.rubric.metrics), len(realistic.real_judges)
    assert len(names) == metrics * (1 + judges)
    assert realistic.real_judges[0].name.replace("\n", "") in names
    assert axes.figure in map(plt.figure, plt.get_fignums())  # so that a notebook shows it
    plt.close(axes.figure)


OUTCOMES = {"REPLACE": "good", "ASSIST": "fair", "DO NOT USE": "bad", "CAN'T TELL": "unclear"}


class Decided(Shown):
    """An alignment, whose judges have each outcome in turn."""

    def __init__(self, aligned: Alignment) -> None:
        lines = decide(aligned.study).part.standings
        self.lines = tuple(
            replace(line, outcome=outcome, look=look, margin=0.0)
            for line, (outcome, look) in zip(lines, cycle(OUTCOMES.items()), strict=False)
        )

    @property
    def part(self) -> ReportSection:  # type: ignore[override]
        return ReportSection(
            "decided", "outcomes", Results(), screen=(Block(standings=self.lines),)
        )


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


class Bare(Shown):
    """Findings of nothing."""

    @property
    def part(self) -> ReportSection:  # type: ignore[override]
        return ReportSection("bare", "nothing", Results())


def test_what_cannot_be_plotted_says_so() -> None:
    with pytest.raises(SetupError, match="nothing to plot"):
        Bare().plot()


def test_text_is_returned_and_not_printed_in_a_notebook(
    realistic: Alignment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert "Accuracy" in str(realistic)
    assert capsys.readouterr().out == ""
