"""What the rankings show, in sentences that say no more than the intervals bear."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from judgebench.ranking.rankers import WRONG_CLAIMS, OneRanking, RankedTask, Rankings
from judgebench.ranking.suitability import against_arguments
from judgebench.results.rows import Row
from judgebench.words import counted, listed

HOW_SURE = (
    "One system is said to rank above another only where its lead holds over other items and other "
    "trainings, corrected for the number of rankers and pairs: where nothing is so, each kind of "
    "sentence is there for a task in at most 5 % of studies. Otherwise they cannot be "
    "distinguished. Nothing is claimed of control rankers."
)
NO_RANKINGS = "Nothing was ranked."


def ranking_sentences(rankings: Rankings, task: RankedTask) -> list[str]:
    """What the rankings of one task show."""
    ranked, titles = claiming(rankings, task), rankings.titles
    return [
        *_grouped((r.title, _best(r, task)) for r in ranked),
        *_grouped((r.title, _controls(r, task)) for r in ranked),
        *_no_difference(ranked),
        *_with_humans(rankings, task, titles),
        *_by_length(rankings, task, titles),
        *_self_preferences(rankings, task, titles),
    ]


def claiming(rankings: Rankings, task: RankedTask) -> list[OneRanking]:
    """The rankers of a task of which anything is said: not the control rankers."""
    return [r for r in rankings.of(task.name) if r.kind != "control"]


def conclusion(rankings: Rankings, task: RankedTask) -> str:
    """Which arguments rank clearly first and with how many rankers, in one sentence."""
    ranked = [r for r in claiming(rankings, task) if len(_arguments(r, task)) > 1]
    if not ranked:
        return ""
    first = Counter(next(iter(_arguments(r, task))) for r in ranked if not _rivals(r, task))
    of = counted(len(ranked), "ranker")
    if not first:
        return f"No argument ranks clearly first with any of {of}."
    named = [f"{system} with {n:,}" for system, n in first.most_common()]
    return f"Of {of}, so many rank one argument clearly first: {listed(named)}."


def _grouped(said: Iterable[tuple[str, str]]) -> Iterator[str]:
    """One sentence for all rankers of which the same is said."""
    groups: dict[str, list[str]] = {}
    for ranker, words in said:
        groups.setdefault(words, []).append(ranker)
    yield from (f"{listed(names)}: {words}." for words, names in groups.items() if words)


def _best(ranking: OneRanking, task: RankedTask) -> str:
    """Which real argument ranks first, if any clearly does."""
    places = _arguments(ranking, task)
    if len(places) < 2:
        return ""
    first = next(iter(places))
    tied = [name for name, place in places.items() if place == places[first]]
    rivals = [name for name in _rivals(ranking, task) if name not in tied]
    have = f"{listed(tied)} {'have' if len(tied) > 1 else 'has'} the best score"
    if rivals and ranking.unsure:
        return f"{have}, but {ranking.unsure}"
    if rivals:
        return f"{have}, but cannot be distinguished from {listed(rivals)}"
    if len(tied) > 1:
        return f"{listed(tied)} share the best score"
    return f"{tied[0]} ranks above every other argument"


def _arguments(ranking: OneRanking, task: RankedTask) -> dict[str, float]:
    """The places of the real arguments, best first."""
    return {s: place for s, place in ranking.placed.items() if s in set(task.arguments)}


def _rivals(ranking: OneRanking, task: RankedTask) -> list[str]:
    """The arguments that the first one is not clearly above."""
    first, *others = _arguments(ranking, task)
    return [name for name in others if not ranking.clearly_above(first, name)]


def _controls(ranking: OneRanking, task: RankedTask) -> str:
    """Whether control cases mislead the ranker."""
    controls = [name for name in task.controls if name in ranking.placed]
    arguments = sum(name in ranking.placed for name in task.arguments)
    if not controls or not arguments or ranking.unsure:
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
    flat = [f"{name} (p = {p:.3f})" for name, p in p_values if p is not None and p >= WRONG_CLAIMS]
    if flat:
        yield f"Friedman's test shows no difference between the real arguments for {listed(flat)}."


def _with_humans(rankings: Rankings, task: RankedTask, titles: Mapping[str, str]) -> Iterator[str]:
    """Whether rankers order the arguments as the humans do."""
    humans = {r.ranker for r in rankings.of(task.name) if r.kind == "humans"}
    found: list[tuple[str, Row]] = []
    for row in rankings.rows.select("agreement", "tau_b", task=task.name):
        others = [name for name in (row["ranker"], row["other"]) if name not in humans]
        if len(others) == 1:
            found.append((others[0], row))
    sided = _sided(rankings, task, found)
    for words, wanted in (
        ("Agreement with the humans beyond chance", "up"),
        ("Disagreement with the humans beyond chance", "down"),
        ("No agreement with the humans is shown", ""),
    ):  # fmt: skip
        named = [f"{titles.get(n, n)} (tau-b {r.estimate:.2f})" for n, r, s in sided if s == wanted]
        if named:
            yield f"{words}: {listed(named)}."


def _by_length(rankings: Rankings, task: RankedTask, titles: Mapping[str, str]) -> Iterator[str]:
    rows = rankings.rows.select("length_bias", "rho", task=task.name)
    sided = _sided(rankings, task, [(row["ranker"], row) for row in rows])
    for words, wanted in (("Longer", "up"), ("Shorter", "down")):
        named = [f"{titles.get(n, n)} (rho {r.estimate:.2f})" for n, r, s in sided if s == wanted]
        if named:
            yield f"{words} arguments rank higher with {listed(named)}."


def _self_preferences(
    rankings: Rankings, task: RankedTask, titles: Mapping[str, str]
) -> Iterator[str]:
    rows = rankings.rows.select("self_preference", "places", task=task.name)
    for _, row, side in _sided(rankings, task, [(row["ranker"], row) for row in rows]):
        if side == "up":
            yield (
                f"{titles.get(row['ranker'], row['ranker'])} ranks {row['system']} higher than "
                f"the other rankers do, by {row.estimate:.2f} places ({row['akin']})."
            )


def _sided(
    rankings: Rankings, task: RankedTask, rows: Sequence[tuple[str, Row]]
) -> list[tuple[str, Row, str]]:
    """Ranker, row, and `up` or `down` where it lies on that side of 0, whatever the number of
    rankers that this may be said of; otherwise empty. Control rankers and what is undefined go."""
    said = {r.ranker for r in claiming(rankings, task)}
    kept = [(name, row) for name, row in rows if name in said and row.estimate.value is not None]
    found = []
    for name, row in kept:
        keys = {key: row[key] for key in row.keys}
        p = rankings.rows.find("p", row.analysis, **keys).value
        value = row.estimate.value or 0.0
        side = "up" if value > 0 else "down"
        found.append((name, row, side if p and p * len(kept) < WRONG_CLAIMS else ""))
    return found
