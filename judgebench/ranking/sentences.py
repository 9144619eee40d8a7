"""What the rankings show, in sentences that say no more than the intervals bear."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from judgebench.ranking.medals import against_arguments
from judgebench.ranking.rankings import OneRanking, RankedTask, Rankings
from judgebench.records import Estimate
from judgebench.report.words import counted, listed

HOW_SURE = (
    "One system is said to rank above another only where it does so in at least 95 % of "
    "resamples, pair by pair; otherwise they cannot be distinguished."
)
NO_RANKINGS = "Nothing was ranked."
_SIGNIFICANT = 0.05


def ranking_sentences(rankings: Rankings, task: RankedTask) -> list[str]:
    """What the rankings of one task show."""
    ranked, titles = rankings.of(task.name), rankings.titles
    return [
        *_grouped((r.title, _best(r, task)) for r in ranked),
        *_grouped((r.title, _controls(r, task)) for r in ranked),
        *_no_difference(ranked),
        *_with_humans(rankings, task, titles),
        *_by_length(rankings, task, titles),
        *_self_preferences(rankings, task, titles),
    ]


def _grouped(said: Iterable[tuple[str, str]]) -> Iterator[str]:
    """One sentence for all rankers of which the same is said."""
    groups: dict[str, list[str]] = {}
    for ranker, words in said:
        groups.setdefault(words, []).append(ranker)
    yield from (f"{listed(names)}: {words}." for words, names in groups.items() if words)


def _best(ranking: OneRanking, task: RankedTask) -> str:
    """Which real argument ranks first, if any clearly does."""
    wanted = set(task.arguments)
    places = {s: place for s, place in ranking.placed.items() if s in wanted}
    if len(places) < 2:
        return ""
    first = next(iter(places))
    tied = [name for name, place in places.items() if place == places[first]]
    rivals = [n for n in places if n not in tied and not ranking.clearly_above(first, n)]
    if rivals:
        have = f"{listed(tied)} {'have' if len(tied) > 1 else 'has'} the best score"
        return f"{have}, but cannot be distinguished from {listed(rivals)}"
    if len(tied) > 1:
        return f"{listed(tied)} share the best score"
    return f"{tied[0]} ranks above every other argument"


def _controls(ranking: OneRanking, task: RankedTask) -> str:
    """Whether control cases mislead the ranker."""
    controls = [name for name in task.controls if name in ranking.placed]
    arguments = sum(name in ranking.placed for name in task.arguments)
    if not controls or not arguments:
        return ""
    stands = {name: against_arguments(ranking, task, name) for name in controls}
    above = [
        f"{name} (above {count} of {counted(arguments, 'argument')})"
        for name, (count, _) in stands.items()
        if count
    ]
    unclear = [name for name, (count, open_) in stands.items() if open_ and not count]
    unsure = f"{listed(unclear)} cannot be distinguished from some arguments"
    if above:
        return f"misled by {listed(above)}" + (f"; {unsure}" if unclear else "")
    if unclear:
        return f"no control case clearly ranks above an argument, but {unsure}"
    rank = "rank" if len(controls) > 1 else "ranks"
    return f"not misled: {listed(controls)} {rank} below every argument"


def _no_difference(ranked: Sequence[OneRanking]) -> Iterator[str]:
    """The rankers whose ranks Friedman's test does not tell from chance."""
    p_values = [(r.title, e.value) for r in ranked if (e := r.whole.get("p"))]
    flat = [f"{name} (p = {p:.3f})" for name, p in p_values if p is not None and p >= _SIGNIFICANT]
    if flat:
        yield f"Friedman's test shows no difference between the systems for {listed(flat)}."


def _with_humans(rankings: Rankings, task: RankedTask, titles: Mapping[str, str]) -> Iterator[str]:
    """Whether rankers order the arguments as the humans do."""
    humans = {r.ranker for r in rankings.of(task.name) if r.kind == "humans"}
    found: list[tuple[str, Estimate]] = []
    for row in rankings.rows.select("agreement", "tau_b", task=task.name):
        others = [name for name in (row["ranker"], row["other"]) if name not in humans]
        if len(others) == 1:
            found.append((titles.get(others[0], others[0]), row.estimate))
    for words, wanted in (
        ("Agreement with the humans beyond chance", "up"),
        ("Disagreement with the humans beyond chance", "down"),
        ("No agreement with the humans is shown", ""),
    ):  # fmt: skip
        sided = [(n, e) for n, e in found if e.value is not None and direction(e) == wanted]
        named = [f"{name} (tau-b {e:.2f})" for name, e in sided]
        if named:
            yield f"{words}: {listed(named)}."


def _by_length(rankings: Rankings, task: RankedTask, titles: Mapping[str, str]) -> Iterator[str]:
    rows = rankings.rows.select("length_bias", "rho", task=task.name)
    for words, wanted in (("Longer", "up"), ("Shorter", "down")):
        sided = [(row["ranker"], row.estimate) for row in rows if direction(row.estimate) == wanted]
        named = [f"{titles.get(ranker, ranker)} (rho {e:.2f})" for ranker, e in sided]
        if named:
            yield f"{words} arguments rank higher with {listed(named)}."


def _self_preferences(
    rankings: Rankings, task: RankedTask, titles: Mapping[str, str]
) -> Iterator[str]:
    for row in rankings.rows.select("self_preference", task=task.name):
        if direction(row.estimate) == "up":
            yield (
                f"{titles.get(row['ranker'], row['ranker'])} ranks {row['system']} higher than "
                f"the other rankers do, by {row.estimate:.2f} places ({row['akin']})."
            )


def direction(estimate: Estimate) -> str:
    """`up` or `down` where the whole interval lies on that side of 0; otherwise empty."""
    if estimate.low is not None and estimate.low > 0:
        return "up"
    return "down" if estimate.high is not None and estimate.high < 0 else ""
