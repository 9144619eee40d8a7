"""rankings.csv: every number of the rankings in one long table.

A row with `table` = `system` is one task, ranker and system: its score, place and average rank.
It is read as alignment.csv is: undefined is an empty `value` with a `reason`, and a text that a
spreadsheet would run gets a leading apostrophe.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from judgebench.ranking.result import RankedTask, Ranking, Rankings
from judgebench.report.csv_file import ESTIMATE_COLUMNS, csv_text, estimate_columns

COLUMNS = (
    # system, ranking, above, agreement, length_bias, self_preference, trained, task, argument
    "table",
    "task",
    "ranker",
    "ranker_kind",
    "system",  # the upper one in `above`, the generator in `self_preference`
    "system_kind",  # gold, model, control
    "other",  # the lower system in `above`; the other ranker in `agreement`; encoder and draw
    # in `trained`; classes left out in `task`
    "statistic",
    "place",
    "place_low",
    "place_high",
    "average_rank",
    "average_rank_low",
    "average_rank_high",
    "group",  # Nemenyi's letters
    *ESTIMATE_COLUMNS,
)
_NUMBERS = (
    "train", "development", "epochs", "best_epoch", "development_score", "seconds", "cut",
    "cut_arguments",
)  # fmt: skip
Rows = Iterator[dict[str, Any]]


def to_rankings_csv(rankings: Rankings) -> str:
    """The text of rankings.csv, lines ended by a line feed."""
    return csv_text(COLUMNS, _rows(rankings))


def _rows(rankings: Rankings) -> Rows:
    kinds = {(task.name, s.name): s.kind for task in rankings.tasks for s in task.systems}
    for ranking in rankings.rankings:
        yield from _systems(ranking, kinds)
    for ranking in rankings.rankings:
        yield from _whole(ranking)
    yield from _between_rankers(rankings)
    yield from _biases(rankings)
    yield from _training(rankings)
    for task in rankings.tasks:
        yield from _task(task)


def _about(ranking: Ranking) -> dict[str, Any]:
    return {"task": ranking.task, "ranker": ranking.ranker, "ranker_kind": ranking.kind}


def _systems(ranking: Ranking, kinds: dict[tuple[str, str], Any]) -> Rows:
    for s in ranking.systems:
        low, high = s.place_range or (None, None)
        placed = s.score.value is not None
        yield {
            **_about(ranking), "table": "system", "system": s.system,
            "system_kind": kinds.get((ranking.task, s.system), ""), "statistic": "score",
            "place": s.place if placed else None, "place_low": low, "place_high": high,
            "average_rank": s.average_rank.value, "average_rank_low": s.average_rank.low,
            "average_rank_high": s.average_rank.high, "group": s.group,
            **estimate_columns(s.score),
        }  # fmt: skip


def _whole(ranking: Ranking) -> Rows:
    about = {**_about(ranking), "table": "ranking"}
    counts = {"n": ranking.n, "n_missing": ranking.n_missing, "reason": ranking.reason}
    for statistic in ("chi_square", "p", "critical_difference"):
        yield {**about, "statistic": statistic, "value": getattr(ranking, statistic), **counts}
    for statistic in ("controls_below", "average"):
        yield {**about, "statistic": statistic, **estimate_columns(getattr(ranking, statistic))}
    for above in ranking.above:
        yield {
            **_about(ranking), "table": "above", "system": above.upper, "other": above.lower,
            "statistic": "share_of_resamples", "value": above.share,
        }  # fmt: skip


def _between_rankers(rankings: Rankings) -> Rows:
    for a in rankings.agreements:
        about = {"table": "agreement", "task": a.task, "ranker": a.ranker, "other": a.other}
        for statistic in ("tau_b", "spearman", "tau_b_of_averages", "top_1"):
            yield {**about, "statistic": statistic, **estimate_columns(getattr(a, statistic))}


def _biases(rankings: Rankings) -> Rows:
    for b in rankings.length_biases:
        about = {"table": "length_bias", "task": b.task, "ranker": b.ranker}
        for statistic in ("rho", "longest_first"):
            yield {**about, "statistic": statistic, **estimate_columns(getattr(b, statistic))}
    for p in rankings.self_preferences:
        yield {
            "table": "self_preference", "task": p.task, "ranker": p.ranker, "system": p.generator,
            "other": ", ".join(p.others), "statistic": "places", **estimate_columns(p.places),
        }  # fmt: skip


def _training(rankings: Rankings) -> Rows:
    for t in rankings.trained:
        about = {
            "table": "trained", "task": t.task, "ranker": t.evaluator, "ranker_kind": t.kind,
            "other": f"{t.encoder}, draw {t.draw}",
        }  # fmt: skip
        yield from ({**about, "statistic": name, "value": getattr(t, name)} for name in _NUMBERS)


def _task(task: RankedTask) -> Rows:
    left_out = ", ".join(task.left_out)
    yield {
        "table": "task", "task": task.name, "statistic": "instances", "value": task.n,
        "other": left_out,
    }  # fmt: skip
    for s in task.systems:
        about = {
            "table": "argument", "task": task.name, "system": s.name, "system_kind": s.kind,
        }  # fmt: skip
        found = (s.mean_words, task.verbatim.get(s.name), task.cut.get(s.name))
        for statistic, value in zip(("mean_words", "verbatim", "cut"), found, strict=True):
            if value is not None:
                yield {**about, "statistic": statistic, "value": value}
