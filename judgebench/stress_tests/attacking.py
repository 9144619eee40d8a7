"""A stress test in a run folder: what it adds to the run, and how that is read again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from judgebench.errors import SetupError
from judgebench.judges.llm import LLMJudge
from judgebench.records import Answer
from judgebench.rubric import Rubric
from judgebench.runs.bench import Extension, Loaded, Variant
from judgebench.runs.folder import BESIDE, RunFolder
from judgebench.runs.load import load_bench, no_texts, settings_of
from judgebench.runs.open import verdicts_of
from judgebench.stress_tests.probes.altered import AlteredAnswer, Ask, Recipe
from judgebench.stress_tests.probes.attacks import (
    Plan,
    StressSettings,
    make_plan,
    read_attacks,
)
from judgebench.stress_tests.probes.sets import read_set, to_set_line
from judgebench.stress_tests.result import RecipeSummary, StressRun, VariantVerdicts
from judgebench.studies.study import JUDGE_KINDS, Study


@dataclass(frozen=True)
class StressExtension:
    """The extension of a run by the attacks of its key `stress`, but for what is given here."""

    sample: int | None = None
    reviewed: bool = False
    feature: str = "stress"

    def __call__(self, loaded: Loaded) -> Extension:
        """The altered answers. Raises SetupError with every problem of every attack, and where the
        texts of answers are not given."""
        data = loaded.dataset
        if data.textless:
            raise SetupError(no_texts("it reads answers", data))
        settings = loaded.config.section("stress", StressSettings) or StressSettings()
        given = {"sample": self.sample} if self.sample else {}
        reviewed = self.reviewed or settings.reviewed
        settings = settings.model_copy(update={**given, "reviewed": reviewed})
        where = loaded.file.parent
        attacks, left_out = read_attacks(settings, loaded.rubric, loaded.judged, where)
        seed, sample = loaded.config.seed, settings.sample
        plan = make_plan(
            attacks, data.answers, data.labels, loaded.judged, seed=seed, sample=sample
        )
        items = plan.items
        not_used = (
            f"Left out, because they do not fit the metrics of {loaded.judged.name} that are "
            f"judged: {', '.join(left_out)}. To use one, name it under stress.attacks with a "
            "must_worsen of your own."
        )
        told = (not_used,) if left_out else ()
        return Extension(
            feature=self.feature,
            answers=plan.parents,
            beside=tuple(item.answer for item in items),
            lines=[to_set_line(item) for item in items],
            rejected=[to_set_line(item) for item in plan.rejected],
            about=plan.describe(told),
            settings={"stress": settings},
            variants=partial(_variants, plan),
            controls=("constant-severe",),
            told=tuple(_notes(plan, told)),
        )


def _notes(plan: Plan, left_out: Sequence[str]) -> Iterator[str]:
    """The sentence that the main question of a stress test stays open, where it does; those on
    attacks `left_out`; and what the others could not make."""
    if not any(item.must_worsen for item in plan.items):
        yield (
            "No altered answer is a violation: this stress test shows whether verdicts hold, not "
            "whether a judge detects violations."
        )
    yield from left_out
    for made in plan.made:
        missing = {
            f"{len(made.rejected)} failed a check": made.rejected,
            f"nothing to change in {len(made.nothing)}": made.nothing,
            f"{made.attack.undecided} not accepted": made.attack.undecided,
        }
        if gaps := ", ".join(words for words, some in missing.items() if some):
            yield f"{made.attack.name}: {len(made.items)} items; {gaps}"


# --- judges asked in another way -----------------------------------------------------------------


def _variants(plan: Plan, judges: Sequence[LLMJudge]) -> Iterator[Variant]:
    return chain.from_iterable(
        variants(judge, attack.recipe, answers)
        for judge in judges
        for attack, answers in plan.asks
        if attack.recipe
    )


def variants(judge: LLMJudge, recipe: Recipe, answers: tuple[Answer, ...]) -> Iterator[Variant]:
    """The ways of asking that a recipe names, on the judge's own engine.

    A judge that is asked metric by metric anyway has no `per-metric` variant, and a single metric
    no other order.
    """
    ask, rubric, name = recipe.edit, judge.rubric, f"{judge.name}~{recipe.name}"
    if not isinstance(ask, Ask):
        return
    decoding = judge.config.decoding
    if None not in (ask.temperature, decoding.temperature):  # what takes none draws anyway
        decoding = decoding.model_copy(update={"temperature": ask.temperature})
    found: list[LLMJudge] = []
    match ask.kind:
        case "metric-order" if len(rubric.metrics) > 1:
            turned = rubric.model_copy(update={"metrics": rubric.metrics[::-1]})
            found = [judge.asked_otherwise(name, rubric=turned, decoding=decoding)]
        case "label-order":
            found = [judge.asked_otherwise(name, rubric=_labels_turned(rubric), decoding=decoding)]
        case "per-metric" if judge.config.mode == "one_pass" and len(rubric.metrics) > 1:
            found = [judge.asked_otherwise(name, mode="per_metric", decoding=decoding)]
        case "repeat":
            for repeat in range(1, ask.times + 1):
                # With the same seed, sampling would say the same again.
                seed = None if decoding.seed is None else decoding.seed + repeat
                fresh = decoding.model_copy(update={"seed": seed})
                again = f"{name}~{repeat}"
                found.append(judge.asked_otherwise(again, repeat=repeat, decoding=fresh))
    for number, variant in enumerate(found, 1):
        repeat = number if ask.kind == "repeat" else 0
        yield Variant(variant, judge.name, recipe.name, ask.kind, repeat, answers)


def _labels_turned(rubric: Rubric) -> Rubric:
    """The rubric whose prompts list every metric's labels the other way round."""
    orders = [(metric.prompt_order or metric.label_texts)[::-1] for metric in rubric.metrics]
    turned = zip(rubric.metrics, orders, strict=True)
    metrics = tuple(m.model_copy(update={"prompt_order": order}) for m, order in turned)
    return rubric.model_copy(update={"metrics": metrics})


# --- read again ----------------------------------------------------------------------------------


def read_stress(folder: RunFolder, study: Study) -> StressRun:
    """The stress test of a run folder beside its study.

    Raises SetupError where the folder is damaged.
    """
    manifest = folder.manifest()
    altered = read_set(folder.path / BESIDE) if folder.has_beside else []
    answers = folder.indexed_answers()
    asked = {k: about for k, about in manifest["judges"].items() if about["kind"] == "variant"}
    judges = {k: about for k, about in manifest["judges"].items() if about["kind"] in JUDGE_KINDS}
    settings = settings_of(manifest).section("stress", StressSettings) or StressSettings()
    return StressRun(
        altered,
        [verdicts_of(folder, name, about, answers) for name, about in judges.items()],
        [
            VariantVerdicts(
                about["of"],
                about["recipe"],
                about["asked"],
                about["repeat"],
                verdicts_of(folder, name, about, answers).verdicts,
            )
            for name, about in asked.items()
        ],
        [RecipeSummary(**recipe) for recipe in manifest["stress"]["recipes"]],
        (*manifest["stress"]["notices"], *_unsound(manifest, altered)),
        settings.half_width,
    )


def _unsound(manifest: Mapping[str, Any], altered: Sequence[AlteredAnswer]) -> Iterator[str]:
    """A sentence that nobody has said that the parents are sound, where nobody has."""
    if not manifest.get("labels") and any(item.must_worsen for item in altered):
        yield (
            "There are no human labels: every unaltered answer is taken as sound, and a verdict "
            "against one as a false alarm."
        )


def stress_in_words(path: Path) -> str:
    """Check the bench.yaml of a stress test and say what it runs. Raises SetupError."""
    bench = load_bench(path, extend=StressExtension())
    bench.close()
    return bench.in_words
