"""Rankings to report on: one with the paper's figures, one planted, one large, one hostile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from math import erf

from stress_report_case import HOSTILE

from judgebench.ranking.result import (
    Above,
    LengthBias,
    RankAgreement,
    RankedSystem,
    RankedTask,
    RankerKind,
    Ranking,
    Rankings,
    SelfPreference,
    System,
    SystemKind,
    Trained,
)
from judgebench.records import Estimate

METHOD = "cluster bootstrap, percentile, 1,000 resamples"
NOTES = ("The evaluators are small: a demonstration.",)

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


def places(scores: Sequence[float]) -> list[float]:
    """1 for the highest; ties share the mean."""
    return [sum(x > s for x in scores) + (1 + sum(x == s for x in scores)) / 2 for s in scores]


def make_ranking(
    task: str, ranker: str, kind: RankerKind, scores: Mapping[str, float], spread: float = 0.02,
    p: float | None = 0.0004, n: int = 147,
) -> Ranking:  # fmt: skip
    """A ranking whose shares of resamples follow from normal scores of that spread."""
    found = dict(zip(scores, places(list(scores.values())), strict=True))
    systems = sorted(
        (
            RankedSystem(name, estimate(score, 2 * spread, n), found[name],
                         (max(1.0, found[name] - 1), min(len(scores), found[name] + 1)),
                         estimate(found[name] * 0.8 + 0.6, 0.3, n),
                         "abcdef"[min(5, int(found[name]) // 2)])
            for name, score in scores.items()
        ),
        key=lambda s: s.place,
    )  # fmt: skip
    names = [s.system for s in systems]
    above = sorted(
        combinations(names, 2), key=lambda pair: names.index(pair[1]) - names.index(pair[0])
    )
    arguments = [score for name, score in scores.items() if kind_of(name) != "control"]
    controls = len(arguments) < len(scores)
    return Ranking(
        task, ranker, kind, tuple(systems), n, 2, None if p is None else 21.4, p,
        None if p is None else 0.52, "" if p is not None else "fewer than two systems",
        tuple(Above(a, b, _share(scores[a] - scores[b], spread)) for a, b in above),
        estimate(0.71, 0.06, n) if controls else Estimate(None, reason="there is no control case"),
        estimate(sum(arguments) / len(arguments), 0.03, n),
    )  # fmt: skip


def _share(difference: float, spread: float) -> float:
    """The normal probability that a difference of that size is above 0."""
    return (1 + erf(difference / spread / 2)) / 2


@cache
def paper_rankings() -> Rankings:
    """The paper's Tables 10 to 12; intervals and all else are made up."""
    tasks, rankings = [], []
    for name, (title, systems, rankers) in PAPER.items():
        tasks.append(
            RankedTask(
                name, title, "micro_f1" if name == "nli" else "accuracy", 147,
                tuple(System(s, kind_of(s), 20.0 + 9 * i) for i, s in enumerate(systems)),
            )
        )  # fmt: skip
        for ranker, percent in rankers.items():
            scores = {s: x / 100 for s, x in zip(systems, percent, strict=True)}
            rankings.append(make_ranking(name, ranker, ranker, scores))  # type: ignore[arg-type]
    return Rankings("paper", tuple(tasks), tuple(rankings))


# --- a planted one: everything is there, and known -----------------------------------------------

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


@cache
def planted_rankings() -> Rankings:
    """Two tasks, six rankers: a trained one is misled on `claims`, one is not."""
    tasks = tuple(
        RankedTask(name, title, metric, 97, _systems(), left_out, verbatim, cut)
        for name, title, metric, left_out, verbatim, cut in (
            ("claims", "Claims about health", "accuracy", ("not enough information",), {},
             {"gold": 3, "passages": 12}),
            ("trials", "Statements about trials", "micro_f1", (),
             {"smollm2-135m": 0.42, "qwen-1.5b": 0.91}, {}),
        )
    )  # fmt: skip
    rankings = tuple(_planted(task.name, ranker) for task in tasks for ranker in RANKERS)
    return Rankings(
        "planted", tasks, rankings, agreements(tasks), length_biases(tasks),
        self_preferences(tasks), trained(tasks), NOTES,
    )  # fmt: skip


def _systems() -> tuple[System, ...]:
    words = (41.5, 88.0, 63.25, None, 1.0, 44.0, 120.5)
    return tuple(System(s, kind_of(s), w) for s, w in zip(SYSTEMS, words, strict=True))


def _planted(task: str, ranker: str) -> Ranking:
    kind, values = RANKERS[ranker]
    scores = dict(zip(SYSTEMS, values, strict=False))
    spread = 0.6 if kind == "humans" else 0.02
    flat = kind in ("baseline", "control")
    return make_ranking(task, ranker, kind, scores, spread, 0.561 if flat else 0.0004, 97)


def agreements(tasks: Sequence[RankedTask]) -> tuple[RankAgreement, ...]:
    """Of every pair; only the expert-trained evaluator is surely as the humans are."""
    found = []
    undefined = Estimate(None, n=97, reason="all ranks are tied")
    for task in tasks:
        for a, b in combinations(RANKERS, 2):
            tau = undefined if "constant" in (a, b) else estimate(0.05, 0.1, 97)
            if (a, b) == ("expert-trained", "humans"):
                tau = estimate(0.62, 0.2, 97)
            shared = HUMAN_SYSTEMS if "humans" in (a, b) else SYSTEMS
            found.append(
                RankAgreement(task.name, a, b, shared, tau, tau, tau, estimate(0.5, 0.1, 97))
            )
    return tuple(found)


def length_biases(tasks: Sequence[RankedTask]) -> tuple[LengthBias, ...]:
    return tuple(
        LengthBias(task.name, ranker, estimate(0.31 if kind == "judge" else 0.02, 0.1, 97),
                   estimate(0.4, 0.1, 97))
        for task in tasks
        for ranker, (kind, _) in RANKERS.items()
    )  # fmt: skip


def self_preferences(tasks: Sequence[RankedTask]) -> tuple[SelfPreference, ...]:
    return tuple(
        SelfPreference(task.name, "judge/one-8b", "qwen-1.5b", "of the family qwen",
                       ("baseline", "expert-trained"), estimate(value, 0.2, 97))
        for task, value in zip(tasks, (0.5, 0.1), strict=True)
    )  # fmt: skip


def trained(tasks: Sequence[RankedTask]) -> tuple[Trained, ...]:
    draws = {"baseline": 1, "expert-trained": 1, "llm-trained": 3}
    return tuple(
        Trained(task.name, kind, kind, draw, "minilm", 518, 111, 7, 4, 0.6125, 123.4, 31, 5)  # type: ignore[arg-type]
        for task in tasks
        for kind, count in draws.items()
        for draw in range(count)
    )


# --- one task without anything, a large one, a hostile one ----------------------------------------


def bare_rankings() -> Rankings:
    """One task, one evaluator, no control case, no humans, no judges, nothing resampled."""
    task = RankedTask(
        "claims", "Claims", "accuracy", 12, (System("gold", "gold"), System("m", "model"))
    )
    ranking = make_ranking("claims", "baseline", "baseline", {"gold": 0.6, "m": 0.5}, p=None)
    return Rankings("bare", (task,), (replace(ranking, above=()),))


@cache
def large_rankings() -> Rankings:
    """Six tasks, nine rankers, twelve systems, with long names."""
    models = [f"organisation/very-long-model-name-{i}B-instruct-v0.{i}" for i in range(7)]
    systems = ("gold", *models, "no-argument", "label-only", "noise", "passages")
    kinds: Sequence[RankerKind] = (
        "baseline",
        "expert-trained",
        "llm-trained",
        *["judge"] * 5,
        "humans",
    )
    tasks = tuple(
        RankedTask(f"task-{t}", f"A task with a rather long title, number {t}", "accuracy", 300,
                   tuple(System(s, kind_of(s), 30.0 + i) for i, s in enumerate(systems)))
        for t in range(6)
    )  # fmt: skip
    rankings = tuple(
        make_ranking(
            task.name,
            kind if kind != "judge" else f"litellm:openai/some-judge-model-2025-08-0{r}",
            kind,
            {s: ((7 * i + 3 * r + t) % 13) / 13 for i, s in enumerate(systems)},
        )
        for t, task in enumerate(tasks)
        for r, kind in enumerate(kinds)
    )
    return Rankings("large", tasks, rankings)


def hostile_rankings() -> Rankings:
    """Every text that comes from outside is an attack on the page or on the file formats."""
    made = planted_rankings()
    return replace(
        made,
        name=HOSTILE,
        tasks=tuple(
            replace(
                task, title=task.title + HOSTILE, left_out=(HOSTILE,), verbatim={}, cut={},
                systems=tuple(replace(s, name=s.name + HOSTILE) for s in task.systems),
            )
            for task in made.tasks
        ),
        rankings=tuple(_hostile(ranking) for ranking in made.rankings),
        agreements=tuple(
            replace(a, ranker=a.ranker + HOSTILE, other=a.other + HOSTILE, systems=(HOSTILE,))
            for a in made.agreements
        ),
        length_biases=tuple(replace(b, ranker=b.ranker + HOSTILE) for b in made.length_biases),
        self_preferences=tuple(
            replace(p, ranker=HOSTILE, generator=HOSTILE, akin=HOSTILE, others=(HOSTILE,))
            for p in made.self_preferences
        ),
        trained=tuple(replace(t, evaluator=HOSTILE, encoder=HOSTILE) for t in made.trained),
        notes=(HOSTILE,),
    )  # fmt: skip


def _hostile(ranking: Ranking) -> Ranking:
    return replace(
        ranking,
        ranker=ranking.ranker + HOSTILE,
        reason=HOSTILE,
        systems=tuple(replace(s, system=s.system + HOSTILE) for s in ranking.systems),
        above=tuple(
            replace(a, upper=a.upper + HOSTILE, lower=a.lower + HOSTILE) for a in ranking.above
        ),
    )
