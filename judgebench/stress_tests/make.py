"""A stress test in a run folder: what it adds to the run, and how that is read again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from judgebench.errors import Problem, SetupError
from judgebench.judges.config import JudgeConfig
from judgebench.judges.llm import LLMJudge
from judgebench.models import open_backend
from judgebench.models.contract import Message, Reply, Request
from judgebench.progress import NoProgress, Progress
from judgebench.records import Answer, content_hash
from judgebench.rubric import Rubric
from judgebench.runs.bench import Extension, Loaded, Variant
from judgebench.runs.folder import BESIDE, RunFolder
from judgebench.runs.load import load_bench, no_texts
from judgebench.runs.open import verdicts_of
from judgebench.stress_tests.attacks import (
    Plan,
    StressSettings,
    altered_answer,
    make_plan,
    read_attacks,
)
from judgebench.stress_tests.item_sets import (
    SetFile,
    read_set,
    to_set_line,
    with_checks,
)
from judgebench.stress_tests.recipes import (
    AlteredAnswer,
    Area,
    Ask,
    BestOf,
    Edited,
    Recipe,
    Rephrase,
    Wording,
    Write,
    check_demand,
    load_recipe,
    not_alterable,
)
from judgebench.stress_tests.result import RecipeSummary, StressRun, VariantVerdicts
from judgebench.stress_tests.wordings import in_rubric_terms, worded_variants
from judgebench.studies.study import JUDGE_KINDS, JudgeVerdicts, Study
from judgebench.writer import (
    FENCED,
    WritingTerms,
    fenced,
    read_shape,
    schema_of,
    which_model,
    write_texts,
)


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
        given = {
            "sample": self.sample or settings.sample,
            "reviewed": self.reviewed or settings.reviewed,
        }
        settings = settings.model_copy(update=given)
        judged, where = loaded.judged, loaded.file.parent
        attacks, left_out = read_attacks(settings, loaded.rubric, judged, where)
        seed, sample = loaded.config.seed, settings.sample
        plan = make_plan(attacks, data.answers, data.labels, judged, seed=seed, sample=sample)
        plan.refuse_empty()
        not_used = (
            f"Left out, because they do not fit the metrics of {judged.name} that are judged: "
            f"{', '.join(left_out)}. To use one, name it under stress.attacks with a "
            "must_worsen of your own."
        )
        notices = [not_used] if left_out else []
        has_severe = any(metric.severe is None for metric in judged.metrics)
        return Extension(
            feature=self.feature,
            answers=plan.parents,
            beside=tuple(item.answer for item in plan.items),
            lines=[to_set_line(item) for item in plan.items],
            about={"recipes": [*map(asdict, plan.summaries)], "notices": notices},
            settings={"stress": settings},
            variants=partial(_variants, plan),
            controls=("constant-severe",) if has_severe else (),
            told=tuple(_notes(plan, notices)),
        )


def _notes(plan: Plan, left_out: Sequence[str]) -> Iterator[str]:
    """How many items each attack makes; the sentence that the main question of a stress test stays
    open, where it does; and those on attacks `left_out`."""
    if plan.made:
        yield f"Altered answers by attack: {plan.in_words}."
    if not any(item.must_worsen for item in plan.items):
        yield (
            "No altered answer is a violation: this stress test shows whether verdicts hold, not "
            "whether a judge detects violations."
        )
    yield from left_out


# --- judges asked in another way -----------------------------------------------------------------


def _variants(plan: Plan, judges: Sequence[LLMJudge]) -> Iterator[Variant]:
    return chain.from_iterable(
        worded_variants(judge, attack.recipe, attack.wordings, answers)
        if attack.wordings
        else variants(judge, attack.recipe, answers)
        for judge in judges
        for attack, answers in plan.asks
        if attack.recipe
    )


def variants(judge: LLMJudge, recipe: Recipe, answers: tuple[Answer, ...]) -> Iterator[Variant]:
    """The ways of asking that a recipe names, on the judge's own engine.

    A judge that is asked metric by metric anyway has no `per-metric` variant, and a single metric
    no other order.
    """
    ask, rubric = recipe.edit, judge.rubric
    if not isinstance(ask, Ask):
        return
    decoding = judge.config.decoding
    is_single, changes = len(rubric.metrics) == 1, list[dict[str, Any]]()
    match ask.kind:
        case "metric-order" if not is_single:
            changes = [{"rubric": rubric.model_copy(update={"metrics": rubric.metrics[::-1]})}]
        case "label-order":
            changes = [{"rubric": _labels_turned(rubric)}]
        case "per-metric" if judge.config.mode == "one_pass" and not is_single:
            changes = [{"mode": "per_metric"}]
        case "repeat":
            changes = [{"repeat": repeat} for repeat in range(1, ask.times + 1)]
    for change in changes:
        repeat, name = change.get("repeat", 0), f"{judge.name}~{recipe.name}"
        # With the same seed, sampling would say the same again.
        seed = None if decoding.seed is None else decoding.seed + repeat
        change["decoding"] = decoding.model_copy(update={"seed": seed})
        variant = judge.asked_otherwise(f"{name}~{repeat}" if repeat else name, **change)
        yield Variant(variant, judge.name, recipe.name, ask.kind, repeat, answers)


def _labels_turned(rubric: Rubric) -> Rubric:
    """The rubric whose prompts list every metric's labels the other way round."""
    metrics = tuple(
        m.model_copy(update={"prompt_order": (m.prompt_order or m.label_texts)[::-1]})
        for m in rubric.metrics
    )
    return rubric.model_copy(update={"metrics": metrics})


# --- read again ----------------------------------------------------------------------------------


def read_stress(folder: RunFolder, study: Study) -> StressRun:
    """The stress test of a run folder beside its study.

    Raises SetupError where the folder is damaged.
    """
    manifest, answers = folder.manifest(), folder.indexed_answers()
    altered = read_set(folder.path / BESIDE, study.rubric) if folder.has_beside else []
    notices = list(manifest["stress"]["notices"])
    if not manifest.get("labels") and any(item.must_worsen for item in altered):
        notices.append(
            "There are no human labels: every unaltered answer is taken as sound, and a verdict "
            "against one as a false alarm."
        )
    judges, variants = list[JudgeVerdicts](), list[VariantVerdicts]()
    for name, about in manifest["judges"].items():
        if about["kind"] in JUDGE_KINDS:
            judges.append(verdicts_of(folder, name, about, answers))
        elif about["kind"] == "variant":
            verdicts = verdicts_of(folder, name, about, answers).verdicts
            asks = about.get("asks", {})
            keys = (about["of"], about["recipe"], about["asked"], about["repeat"])
            metrics = tuple(other["metric"] for other in asks.values())
            variants.append(VariantVerdicts(*keys, in_rubric_terms(verdicts, asks), metrics))
    known = [each.name for each in fields(RecipeSummary)]  # an older run says more
    recipes = [
        RecipeSummary(**{key: recipe[key] for key in known if key in recipe})
        for recipe in manifest["stress"]["recipes"]
    ]
    return StressRun(altered, judges, variants, recipes, notices)


def stress_in_words(path: Path) -> str:
    """Check the bench.yaml of a stress test and say what it runs. Raises SetupError."""
    bench = load_bench(path, extend=StressExtension())
    bench.close()
    return bench.in_words


CHARACTERS_A_TOKEN = 3  # short, so that no reply is cut off for want of tokens
_TOKENS_BESIDES = 400  # for the claims beside the answer


@dataclass
class GenerationCounts:
    """Counts of a set that was made. `failed` counts checks: an item may fail several."""

    asked: int = 0
    made_before: int = 0
    accepted: int = 0
    rejected: int = 0
    nothing_to_change: int = 0
    no_reply: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    why_no_reply: str = ""

    def count(self, item: AlteredAnswer) -> None:
        """Count one item by its checks and its area."""
        if item.failed_checks:
            self.rejected += 1
            self.failed.update(list(item.failed_checks))
        else:
            self.accepted += 1


@dataclass(frozen=True)
class SetOrder:
    """The order of a set: `by` is the model that writes; at most `limit` answers are altered, drawn
    by the seed."""

    by: JudgeConfig | None = None
    seed: int = 0
    limit: int | None = None


def make_set(
    name: str,
    answers: Sequence[Answer],
    rubric: Rubric,
    to: Path,
    order: SetOrder,
    progress: Progress | None = None,
) -> GenerationCounts:
    """Alter answers by the recipe of that path or name and add them to the set file `to`.

    What was made before by the same recipe, model and seed is not made again. Raises SetupError
    where recipe, rubric, answers and models do not fit together, or where the file holds other
    items of the same ids.
    """
    recipe, progress = load_recipe(name), progress or NoProgress()
    if not answers:
        raise SetupError(Problem("there is no answer to alter", field="data"))
    if isinstance(recipe.edit, Ask | Wording | BestOf) or recipe.alters == "violations":
        message = "alters no sound answer by itself: name it under `stress` in a bench.yaml"
        raise SetupError(Problem(message, field="recipe", found=recipe.name))
    if not isinstance(recipe.edit, Write | Rephrase):
        return _by_rule(name, answers, rubric, SetFile(to), order, progress)
    if order.by is None:
        message = "needs a model to write: a judge's YAML file"
        raise SetupError(Problem(message, field="recipe", found=recipe.name))
    demand = check_demand(recipe.must_worsen, rubric, name)
    recipe = recipe.model_copy(update={"must_worsen": dict(demand)})
    todo = drafts(recipe, answers, order.seed, order.limit)
    return _by_model(todo, order.by, rubric, SetFile(to), order, progress)


def _by_model(
    wanted: Sequence[Draft],
    by: JudgeConfig,
    rubric: Rubric,
    file: SetFile,
    order: SetOrder,
    progress: Progress,
) -> GenerationCounts:
    with closing(open_backend(by.backend, by.settings)) as backend:
        # The recipe holds its decoding, except for the length of a reply and what is left out.
        left_out, longest = by.decoding.left_out, by.decoding.max_tokens
        way = content_hash([which_model(backend), longest, *left_out])
        attacker = Attacker(f"{by.name}:{way}", rubric, order.seed, longest)
        todo = {
            str(number): draft
            for number, draft in enumerate(wanted)
            if not file.has(
                draft.item_id, draft.recipe.content_hash, attacker.generator, order.seed
            )
        }
        made = GenerationCounts(asked=len(todo), made_before=len(wanted) - len(todo))

        def keep(draft: Draft, reply: Reply) -> None:
            item = attacker.read(draft, reply, file.accepted)
            file.add(item)
            made.count(item)

        terms = WritingTerms(f"{by.name} writes", progress, left_out=left_out)
        written = write_texts(todo, backend, attacker.ask, keep, terms, made.made_before)
    made.no_reply, made.why_no_reply = written.failed, written.why_failed
    return made


def _by_rule(
    name: str,
    answers: Sequence[Answer],
    rubric: Rubric,
    file: SetFile,
    order: SetOrder,
    progress: Progress,
) -> GenerationCounts:
    attacks, _ = read_attacks(StressSettings(attacks=(name,)), rubric, rubric)
    plan = make_plan(attacks, answers, (), rubric, seed=order.seed, sample=order.limit)
    (of_rule,) = plan.made
    every = [*of_rule.items, *of_rule.rejected]
    if not every:
        plan.refuse_empty()
    new = [i for i in every if not file.has(i.item_id, i.recipe_hash, i.generator, order.seed)]
    made = GenerationCounts(
        asked=len(new), made_before=len(every) - len(new), nothing_to_change=len(of_rule.nothing)
    )
    progress.start(name, len(every), made.made_before)
    for item in new:
        file.add(item)
        made.count(item)
        progress.advance(name)
    return made


# --- by a model ---


class _FalseAnswer(BaseModel):
    """A false answer as the model replies it."""

    area: str = ""
    answer: str
    false_claim: str
    true_claim: str
    why_plausible: str = ""


class _Rephrased(BaseModel):
    answer: str


@dataclass(frozen=True)
class Draft:
    """One altered answer to be written: its parent, its number, its area."""

    parent: Answer
    number: int | None
    area: Area | None
    recipe: Recipe

    @property
    def item_id(self) -> str:
        """The id of the item that it becomes."""
        number = f"~{self.number}" if self.number else ""
        return f"{self.parent.item_id}~{self.recipe.name}{number}"


def drafts(
    recipe: Recipe, answers: Iterable[Answer], seed: int, limit: int | None = None
) -> list[Draft]:
    """The drafts that are to be written of at most `limit` answers, drawn by the seed.

    An answer that is empty or not a single text is not altered. The error areas take turns, so that
    any first part of the drafts is balanced over them.
    """
    filled = (answer for answer in answers if not not_alterable(answer))
    drawn = sorted(filled, key=lambda answer: content_hash([seed, answer.item_id]))[:limit]
    if isinstance(recipe.edit, Write):
        areas = tuple(recipe.edit.areas)
        return [Draft(a, None, areas[i % len(areas)], recipe) for i, a in enumerate(drawn)]
    times = recipe.edit.times if isinstance(recipe.edit, Rephrase) else 1
    return [Draft(a, n, None, recipe) for a in drawn for n in range(1, times + 1)]


@dataclass(frozen=True)
class Attacker:
    """The writer of a set, and its purpose: `generator` is the signature of the model."""

    generator: str
    rubric: Rubric
    seed: int
    max_tokens: int | None = None

    def ask(self, key: str, draft: Draft) -> Request:
        """The request that asks for one draft."""
        edit, parent = draft.recipe.edit, draft.parent
        assert isinstance(edit, Write | Rephrase)
        instructions = edit.instructions
        if isinstance(edit, Write) and draft.area:
            instructions += f"\n\nError area: {draft.area}. {edit.areas[draft.area]}"
        enough = 2 * len(parent.text) // CHARACTERS_A_TOKEN + _TOKENS_BESIDES
        # The area comes first, so that the model writes it down before it writes the answer.
        choices: dict[str, list[str]] = {"area": [draft.area]} if draft.area else {}
        return Request(
            key=key,
            messages=(
                Message("system", f"{instructions}\n\n{FENCED}"),
                Message("user", fenced(parent.question, parent.text)),
            ),
            schema=schema_of(_shape(draft), **choices),
            max_tokens=self.max_tokens or enough,
            temperature=edit.temperature,
            top_p=edit.top_p,
            seed=self.seed + (draft.number or 0),
        )

    def read(
        self, draft: Draft, reply: Reply, earlier: Sequence[AlteredAnswer] = ()
    ) -> AlteredAnswer:
        """The altered answer of a reply, its checks recorded; it may repeat none of `earlier`.

        A reply that cannot be read, or that declines, has the failed check `reply` and the raw
        text.
        """
        values, checks = {"answer": reply.text}, dict[str, str]()
        try:
            values = read_shape(reply, _shape(draft)).model_dump()
        except ValueError as error:
            checks = {"reply": str(error)}
        text, claims = values["answer"].strip(), ("false_claim", "true_claim")
        edited = Edited(text, *(values.get(claim, "") for claim in claims))
        item = replace(
            altered_answer(draft.recipe, draft.parent, edited, self.rubric, self.seed),
            item_id=draft.item_id,
            generator=self.generator,
            checks=checks,
            area=draft.area or draft.recipe.area or "",
            why_plausible=values.get("why_plausible", ""),
        )
        return item if "reply" in checks else with_checks([item], earlier)[0]


def _shape(draft: Draft) -> type[BaseModel]:
    return _FalseAnswer if isinstance(draft.recipe.edit, Write) else _Rephrased
