"""Rankings to report on: one with the paper's figures, one planted, one large, one hostile."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from math import erf, erfc, sqrt

from judgebench.ranking.rankers import RankedTask, RankerKind, Rankings, System, SystemKind
from judgebench.records import Estimate, Results, Row

METHOD = "jackknife-t over 147 clusters"
NOTES = ("The evaluators are small: a demonstration.",)
# What a name may hold that is markup somewhere, or a formula in a spreadsheet.
HOSTILE = "=<script>alert(1)</script>|`**$x_1$\\input{x}[a](javascript:alert(1))\x1b[31m"

# Tables 10 to 12 of the paper, in percent, in its order of the columns.
_WITH_PASSAGES = ("no-argument", "gold", "noise", "label-only", "passages", "GPT-4o",
                  "OpenBioLLM", "Llama3")  # fmt: skip
_WITHOUT = tuple(name for name in _WITH_PASSAGES if name != "passages")
PAPER: Mapping[str, tuple[str, tuple[str, ...], Mapping[str, tuple[float, ...]]]] = {
    "mcqa": ("Multiple-choice questions", _WITH_PASSAGES, {
        "baseline": (40.61, 37.25, 41.17, 40.62, 35.01, 34.73, 36.97, 35.01),
        "expert-trained": (37.81, 77.59, 31.37, 39.66, 38.38, 82.91, 64.99, 65.83),
        "llm-trained": (34.45, 72.64, 33.79, 35.89, 38.39, 78.90, 66.85, 64.98),
    }),
    "misinformation": ("Misinformation with evidence", _WITH_PASSAGES, {
        "baseline": (35.37, 40.81, 30.61, 39.45, 37.41, 44.89, 48.30, 44.21),
        "expert-trained": (46.25, 53.06, 13.60, 0.68, 56.46, 59.86, 61.22, 60.54),
        "llm-trained": (18.02, 25.85, 11.56, 5.21, 38.09, 42.85, 40.81, 49.43),
    }),
    "nli": ("Inference on trials", _WITHOUT, {
        "baseline": (60.31, 60.46, 60.80, 62.33, 60.38, 60.63, 61.50),
        "expert-trained": (65.10, 67.62, 60.61, 64.58, 61.89, 61.35, 63.06),
        "llm-trained": (54.32, 57.34, 56.15, 61.12, 58.21, 54.73, 60.58),
    }),
}  # fmt: skip


def kind_of(name: str) -> SystemKind:
    if name == "gold":
        return "gold"
    return "control" if name in ("no-argument", "noise", "label-only", "passages") else "model"


def estimate(value: float, half: float = 0.04, n: int = 147, missing: int = 0) -> Estimate:
    return Estimate(value, value - half, value + half, METHOD, n, missing)


def p_of(e: Estimate) -> Estimate:
    """Two-sided p that it is 0, by the normal theory of its interval."""
    if e.value is None or e.high is None:
        return Estimate(None, reason=e.reason)
    return Estimate(erfc(1.96 * abs(e.value) / (e.high - e.value) / sqrt(2)))


def places(scores: Sequence[float]) -> list[float]:
    """1 for the highest; ties share the mean."""
    return [sum(x > s for x in scores) + (1 + sum(x == s for x in scores)) / 2 for s in scores]


def ranking_rows(
    ranker: tuple[str, str, RankerKind], scores: Mapping[str, float], spread: float = 0.02,
    p: float | None = 0.0004, n: int = 147,
) -> Iterator[Row]:  # fmt: skip
    """A ranking (task, ranker, kind) whose p values follow from normal scores of that spread."""
    keys = dict(zip(("task", "ranker", "ranker_kind"), ranker, strict=True))
    found = dict(zip(scores, places(list(scores.values())), strict=True))
    names = sorted(scores, key=lambda name: found[name])
    for name in names:
        place = found[name]
        of = keys | {"system": name, "system_kind": kind_of(name)}
        ends = max(1.0, place - 1), min(len(scores), place + 1)
        yield Row("system", "score", estimate(scores[name], 2 * spread, n), keys=of)
        yield Row("system", "place", Estimate(place, *ends, "range", n), keys=of)
        yield Row("system", "average_rank", estimate(place * 0.8 + 0.6, 0.3, n), keys=of)
    reason = "" if p is not None else "fewer than two systems"
    tests = {"chi_square": 21.4, "p": p}
    for statistic, value in tests.items():
        e = Estimate(None if p is None else value, n=n, n_missing=2, reason=reason)
        yield Row("ranking", statistic, e, keys=keys)
    arguments = [score for name, score in scores.items() if kind_of(name) != "control"]
    none = Estimate(None, reason="there is no control case")
    below = estimate(0.71, 0.06, n) if len(arguments) < len(scores) else none
    average = estimate(sum(arguments) / len(arguments), 0.03, n)
    yield Row("ranking", "controls_below", below, keys=keys)
    yield Row("ranking", "average", average, keys=keys)
    for a, b in combinations(names, 2):
        share = _share(scores[a] - scores[b], spread)
        of = keys | {"system": a, "other": b}
        yield Row("above", "p", Estimate(2 * min(share, 1 - share)), keys=of)


def _share(difference: float, spread: float) -> float:
    """The normal probability that a difference of that size is above 0."""
    return (1 + erf(difference / spread / 2)) / 2


def ranked(name: str, title: str, systems: Sequence[str], **more: object) -> RankedTask:
    return RankedTask(name, title, tuple(System(s, kind_of(s)) for s in systems), **more)  # type: ignore[arg-type]


@cache
def paper_rankings() -> Rankings:
    """The paper's Tables 10 to 12; intervals and all else are made up."""
    tasks, rows = [], list[Row]()
    for name, (title, systems, rankers) in PAPER.items():
        tasks.append(ranked(name, title, systems))
        for ranker, percent in rankers.items():
            scores = {s: x / 100 for s, x in zip(systems, percent, strict=True)}
            rows += ranking_rows((name, ranker, ranker), scores)  # type: ignore[arg-type]
    return Rankings("paper", tuple(tasks), Results(tuple(rows)))


SYSTEMS = ("gold", "smollm2-135m", "qwen-1.5b", "no-argument", "label-only", "noise", "passages")
RANKERS: Mapping[str, tuple[RankerKind, tuple[float, ...]]] = {
    "baseline": ("baseline", (0.50, 0.51, 0.50, 0.50, 0.51, 0.49, 0.50)),
    "expert-trained": ("expert-trained", (0.90, 0.70, 0.60, 0.50, 0.80, 0.40, 0.55)),
    "llm-trained": ("llm-trained", (0.80, 0.80, 0.70, 0.40, 0.50, 0.30, 0.45)),
    "judge/one-8b": ("judge", (0.85, 0.75, 0.60, 0.10, 0.20, 0.15, 0.59)),
    "constant": ("control", (0.50,) * 7),
    "humans": ("humans", (-1.2, -2.6, -2.2)),
}
HUMAN_SYSTEMS = SYSTEMS[:3]
TRAINING = {
    "train": 518, "development": 111, "epochs": 7, "best_epoch": 4, "development_score": 0.6125,
    "seconds": 123.4, "cut": 31,
}  # fmt: skip


@cache
def planted_rankings() -> Rankings:
    """Two tasks, six rankers: a trained one is misled on `claims`, one is not."""
    tasks = (
        ranked("claims", "Claims about health", SYSTEMS,
               left_out=("not enough information",)),
        ranked("trials", "Statements about trials", SYSTEMS),
    )  # fmt: skip
    rows = [row for task in tasks for ranker in RANKERS for row in _planted(task.name, ranker)]
    for task, preference in zip(tasks, (0.5, 0.1), strict=True):
        rows += [*_agreements(task.name), *_biases(task.name, preference), *_trained(task.name)]
    cut = {"gold": {"cut": 3}, "passages": {"cut": 12}}
    for task in tasks:
        rows += _written(task, cut)
    return Rankings("planted", tasks, Results(tuple(rows)), NOTES)


def _written(task: RankedTask, more: Mapping[str, Mapping[str, float]]) -> Iterator[Row]:
    words = dict(zip(SYSTEMS, (41.5, 88.0, 63.25, None, 1.0, 44.0, 120.5), strict=True))
    for system in task.systems:
        keys = {"task": task.name, "system": system.name, "system_kind": system.kind}
        for statistic, value in {
            "mean_words": words[system.name],
            **more.get(system.name, {}),
        }.items():
            if value is not None:
                yield Row("argument", statistic, Estimate(value), keys=keys)


def _planted(task: str, ranker: str) -> Iterator[Row]:
    kind, values = RANKERS[ranker]
    scores = dict(zip(SYSTEMS, values, strict=False))
    spread = 0.6 if kind == "humans" else 0.01
    flat = kind in ("baseline", "control")
    return ranking_rows((task, ranker, kind), scores, spread, 0.561 if flat else 0.0004, 97)


def _agreements(task: str) -> Iterator[Row]:
    """Of every pair; only the expert-trained evaluator is surely as the humans are."""
    undefined = Estimate(None, n=97, reason="all ranks are tied")
    for a, b in combinations(RANKERS, 2):
        tau = undefined if "constant" in (a, b) else estimate(0.05, 0.1, 97)
        if (a, b) == ("expert-trained", "humans"):
            tau = estimate(0.62, 0.2, 97)
        over = ", ".join(HUMAN_SYSTEMS if "humans" in (a, b) else SYSTEMS)
        keys = {"task": task, "ranker": a, "other": b, "over": over}
        for statistic in ("tau_b", "spearman", "tau_b_of_averages"):
            yield Row("agreement", statistic, tau, keys=keys)
        yield Row("agreement", "p", p_of(tau), keys=keys)
        yield Row("agreement", "top_1", estimate(0.5, 0.1, 97), keys=keys)


def _biases(task: str, preference: float) -> Iterator[Row]:
    for ranker, (kind, _) in RANKERS.items():
        keys = {"task": task, "ranker": ranker}
        rho = estimate(0.31 if kind == "judge" else 0.02, 0.1, 97)
        yield Row("length_bias", "rho", rho, keys=keys)
        yield Row("length_bias", "p", p_of(rho), keys=keys)
        yield Row("length_bias", "longest_first", estimate(0.4, 0.1, 97), keys=keys)
    keys = {
        "task": task, "ranker": "judge/one-8b", "system": "qwen-1.5b",
        "other": "baseline, expert-trained", "akin": "of the family qwen",
    }  # fmt: skip
    own = estimate(preference, 0.2, 97)
    yield Row("self_preference", "places", own, keys=keys)
    yield Row("self_preference", "p", p_of(own), keys=keys)


def _trained(task: str) -> Iterator[Row]:
    for kind, count in {"baseline": 1, "expert-trained": 1, "llm-trained": 3}.items():
        for draw in range(count):
            keys = {
                "task": task, "ranker": f"{kind}-{draw}" if count > 1 else kind,
                "ranker_kind": kind, "other": f"minilm, draw {draw}",
            }  # fmt: skip
            for statistic, value in TRAINING.items():
                yield Row("trained", statistic, Estimate(value), keys=keys)


def bare_rankings() -> Rankings:
    """One task, one evaluator, no control case, no humans, no judges, nothing resampled."""
    task = ranked("claims", "Claims", ("gold", "m"))
    rows = ranking_rows(("claims", "baseline", "baseline"), {"gold": 0.6, "m": 0.5}, p=None)
    kept = [row for row in rows if row.analysis != "above"]
    return Rankings("bare", (task,), Results(tuple(kept)))


def hostile_rankings() -> Rankings:
    """Every text that comes from outside is an attack on the page or on the file formats."""
    made = planted_rankings()
    named = ("ranker", "system", "other", "over", "akin")
    rows = tuple(
        replace(
            row,
            keys={k: v + HOSTILE if k in named and v else v for k, v in row.keys.items()},
            estimate=replace(row.estimate, reason=row.estimate.reason and HOSTILE),
        )
        for row in made.rows
    )
    tasks = tuple(
        replace(
            task, title=task.title + HOSTILE, left_out=(HOSTILE,),
            systems=tuple(replace(s, name=s.name + HOSTILE) for s in task.systems),
        )
        for task in made.tasks
    )  # fmt: skip
    return Rankings(HOSTILE, tasks, Results(rows), (HOSTILE,))
