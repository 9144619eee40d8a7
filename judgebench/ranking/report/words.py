"""What the rankings show, in sentences that say no more than the intervals bear."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from judgebench.ranking.report.lookup import (
    argument_names,
    placed_systems,
    ranker_titles,
    shares_above,
    shown_ranker,
    surely_above,
)
from judgebench.ranking.report.medals import against_arguments
from judgebench.ranking.result import RankAgreement, RankedTask, Ranking, Rankings
from judgebench.records import Estimate
from judgebench.report.words import counted, listed

HOW_SURE = (
    "One system is said to stand above another only where it does in at least 95 % of resamples, "
    "pair by pair; otherwise they cannot be told apart."
)
NO_RANKINGS = "Nothing was ranked."
_SIGNIFICANT = 0.05


def summary(rankings: Rankings) -> list[tuple[str, list[str]]]:
    """For each task its title and its sentences; tasks of which nothing is to be said are out."""
    titles = ranker_titles(rankings)
    found = [(task.title, _sentences(rankings, task, titles)) for task in rankings.tasks]
    return [(title, sentences) for title, sentences in found if sentences]


def _sentences(rankings: Rankings, task: RankedTask, titles: Mapping[str, str]) -> list[str]:
    ranked = rankings.of(task.name)
    return [
        *_grouped((shown_ranker(r), _best(r, task)) for r in ranked),
        *_grouped((shown_ranker(r), _controls(r, task)) for r in ranked),
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


def _best(ranking: Ranking, task: RankedTask) -> str:
    """Which real argument stands first, if any surely does."""
    wanted = set(argument_names(task))
    names = [s.system for s in placed_systems(ranking) if s.system in wanted]
    if len(names) < 2:
        return ""
    shares, first = shares_above(ranking), names[0]
    tied = [name for name in names if _place(ranking, name) == _place(ranking, first)]
    rivals = [n for n in names if n not in tied and not surely_above(shares, first, n)]
    if not rivals:
        return _alone(tied)
    have = "have" if len(tied) > 1 else "has"
    return f"{listed(tied)} {have} the best score, but cannot be told apart from {listed(rivals)}"


def _alone(tied: Sequence[str]) -> str:
    if len(tied) > 1:
        return f"{listed(tied)} share the best score"
    return f"{tied[0]} stands above every other argument"


def _place(ranking: Ranking, name: str) -> float:
    return next(s.place for s in ranking.systems if s.system == name)


def _controls(ranking: Ranking, task: RankedTask) -> str:
    """Whether control cases mislead the ranker."""
    placed = {s.system for s in placed_systems(ranking)}
    controls = [s.name for s in task.systems if not s.is_argument and s.name in placed]
    arguments = sum(name in placed for name in argument_names(task))
    if not controls or not arguments:
        return ""
    stands = {name: against_arguments(ranking, task, name) for name in controls}
    above = [
        f"{name} (above {count} of {counted(arguments, 'argument')})"
        for name, (count, _) in stands.items()
        if count
    ]
    unclear = [name for name, (count, open_) in stands.items() if open_ and not count]
    unsure = f"{listed(unclear)} cannot be told apart from some of the arguments"
    if above:
        return f"misled by {listed(above)}" + (f"; {unsure}" if unclear else "")
    if unclear:
        return f"no control case surely stands above an argument, but {unsure}"
    return f"not misled: {_each(controls)} below every argument"


def _each(controls: Sequence[str]) -> str:
    many = len(controls) > 1
    return f"{listed(controls)} stand" + ("" if many else "s")


def _no_difference(ranked: Sequence[Ranking]) -> Iterator[str]:
    """The rankers whose ranks Friedman's test does not tell from chance."""
    flat = [
        f"{shown_ranker(r)} (p = {r.p:.3f})"
        for r in ranked
        if r.p is not None and r.p >= _SIGNIFICANT
    ]
    if flat:
        yield f"Friedman's test shows no difference between the systems for {listed(flat)}."


def _with_humans(rankings: Rankings, task: RankedTask, titles: Mapping[str, str]) -> Iterator[str]:
    """Whether rankers order the arguments as the humans do."""
    humans = {r.ranker for r in rankings.of(task.name) if r.kind == "humans"}
    found = [
        (titles.get(other, other), agreement.tau_b)
        for agreement in rankings.agreements
        if agreement.task == task.name and (other := other_than(humans, agreement))
    ]
    for words, wanted in (
        ("Agreement with the humans beyond chance", "up"),
        ("Disagreement with the humans beyond chance", "down"),
        ("No agreement with the humans is shown", ""),
    ):  # fmt: skip
        named = [
            f"{name} (tau-b {e:.2f})" for name, e in found
            if e.value is not None and direction(e) == wanted
        ]  # fmt: skip
        if named:
            yield f"{words}: {listed(named)}."


def other_than(humans: set[str], agreement: RankAgreement) -> str:
    """Who is held against the humans; empty where they are not in it."""
    pair = (agreement.ranker, agreement.other)
    others = [name for name in pair if name not in humans]
    return others[0] if len(others) == 1 else ""


def _by_length(rankings: Rankings, task: RankedTask, titles: Mapping[str, str]) -> Iterator[str]:
    for words, wanted in (("Longer", "up"), ("Shorter", "down")):
        named = [
            f"{titles.get(b.ranker, b.ranker)} (rho {b.rho:.2f})"
            for b in rankings.length_biases
            if b.task == task.name and direction(b.rho) == wanted
        ]
        if named:
            yield f"{words} arguments stand higher with {listed(named)}."


def _self_preferences(
    rankings: Rankings, task: RankedTask, titles: Mapping[str, str]
) -> Iterator[str]:
    for p in rankings.self_preferences:
        if p.task == task.name and direction(p.places) == "up":
            name = titles.get(p.ranker, p.ranker)
            yield (
                f"{name} sets {p.generator} higher than the other rankers do, by {p.places:.2f} "
                f"places ({p.akin})."
            )


def direction(estimate: Estimate) -> str:
    """`up` or `down` where the whole interval lies on that side of 0; otherwise empty."""
    if estimate.low is not None and estimate.low > 0:
        return "up"
    return "down" if estimate.high is not None and estimate.high < 0 else ""
