"""A stress test in a run folder: what it adds to the run, and how that is read again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from judgebench.errors import Problem, SetupError
from judgebench.files import find_file
from judgebench.judges.config import JudgeConfig
from judgebench.judges.llm import LLMJudge
from judgebench.models import open_backend
from judgebench.models.contract import Backend, Message, Reply, Request
from judgebench.progress import NoProgress, Progress
from judgebench.records import Answer, content_hash
from judgebench.rubric import Rubric
from judgebench.runs.bench import Extension, Loaded, Variant
from judgebench.runs.folder import BESIDE, RunFolder
from judgebench.runs.load import load_bench, no_texts, settings_of
from judgebench.runs.open import verdicts_of
from judgebench.stress_tests.attacks import (
    AttackEntry,
    Plan,
    StressSettings,
    altered_answer,
    make_plan,
    read_attacks,
)
from judgebench.stress_tests.item_sets import (
    SetFile,
    check_same_meaning,
    check_violations,
    read_set,
    to_set_line,
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
    word_names,
)
from judgebench.stress_tests.result import RecipeSummary, StressRun, VariantVerdicts
from judgebench.stress_tests.wordings import in_rubric_terms, worded_variants
from judgebench.studies.study import JUDGE_KINDS, Study
from judgebench.writer import (
    FENCED,
    WritingTerms,
    Written,
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
            controls=(
                ("constant-severe",)
                if any(metric.severe is None for metric in loaded.judged.metrics)
                else ()
            ),
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
                in_rubric_terms(
                    verdicts_of(folder, name, about, answers).verdicts, about.get("asks", {})
                ),
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


NO_AREA = "no area"  # what an item without an error area is counted under
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
    areas: Counter[str] = field(default_factory=Counter)
    why_no_reply: str = ""
    second_asked: int = 0
    second_against: int = 0  # violations of the set that the second model did not see as such

    def count(self, item: AlteredAnswer) -> None:
        """Count one item by its checks and its area."""
        if item.failed_checks:
            self.rejected += 1
            self.failed.update(list(item.failed_checks))
        else:
            self.accepted += 1
            self.areas[item.area or NO_AREA] += 1


@dataclass(frozen=True)
class SetOrder:
    """The order of a set: `by` is the model that writes, `second` the one that is asked whether a
    violation is one; at most `limit` answers are altered, drawn by the seed."""

    by: JudgeConfig | None = None
    second: JudgeConfig | None = None
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
    file = SetFile(to)
    if isinstance(recipe.edit, Write | Rephrase):
        if order.by is None:
            message = "needs a model to write: a judge's YAML file"
            raise SetupError(Problem(message, field="recipe", found=recipe.name))
        path = find_file("adversarial", name, ".yaml")
        demand = check_demand(recipe.must_worsen, rubric, str(path))
        recipe = recipe.model_copy(update={"must_worsen": dict(demand)})
        made = _by_model(
            drafts(recipe, answers, order.seed), order.by, rubric, file, order, progress
        )
    elif isinstance(recipe.edit, Ask | Wording | BestOf) or recipe.alters == "violations":
        message = "alters no sound answer by itself: name it under `stress` in a bench.yaml"
        raise SetupError(Problem(message, field="recipe", found=recipe.name))
    else:
        made = _by_rule(name, answers, rubric, file, order, progress)
    if order.second is not None:
        _ask_second(file, order.second, order.seed, made, progress)
    return made


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
        attacker = Attacker(f"{by.name}:{way}", rubric, order.seed, word_names(), longest)
        if order.limit is not None and wanted:
            edit = wanted[0].recipe.edit
            wanted = wanted[: order.limit * (edit.times if isinstance(edit, Rephrase) else 1)]
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
    settings = StressSettings(attacks=(AttackEntry(attack=name),))
    attacks, _ = read_attacks(settings, rubric, rubric)
    (of_rule,) = make_plan(attacks, answers, (), rubric, seed=order.seed, sample=order.limit).made
    every = [*of_rule.items, *of_rule.rejected]
    new = [i for i in every if not file.has(i.item_id, i.recipe_hash, i.generator, order.seed)]
    before = len(every) - len(new)
    made = GenerationCounts(
        asked=len(new), made_before=before, nothing_to_change=len(of_rule.nothing)
    )
    progress.start(name, len(every), before)
    for item in new:
        file.add(item)
        made.count(item)
        progress.advance(name)
    return made


def _ask_second(
    file: SetFile, second: JudgeConfig, seed: int, made: GenerationCounts, progress: Progress
) -> None:
    """Ask about every violation and every rephrasing of the file that no second model has judged
    yet."""
    asked = (item for item in file.accepted if item.must_worsen or item.by_model)
    unchecked = [item for item in asked if "second_opinion" not in item.checks]
    if not unchecked:
        return
    answered: list[AlteredAnswer] = []
    terms = WritingTerms(second.name, progress, left_out=second.decoding.left_out)
    try:
        with closing(open_backend(second.backend, second.settings)) as backend:
            second_opinions(unchecked, backend, seed, answered.append, terms)
    finally:
        file.replace_checked(answered)
        made.second_asked = len(answered)
        made.second_against = sum(bool(item.failed_checks) for item in answered)


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


def drafts(recipe: Recipe, answers: Iterable[Answer], seed: int) -> list[Draft]:
    """The drafts that are to be written, in an order that the seed decides.

    An answer that is empty or not a single text is not altered. The error areas take turns, so that
    any first part of the drafts is balanced over them. Raises SetupError for a recipe that needs no
    model.
    """
    filled = (answer for answer in answers if not not_alterable(answer))
    drawn = sorted(filled, key=lambda answer: content_hash([seed, answer.item_id]))
    match recipe.edit:
        case Write(areas=areas):
            turns = tuple(areas)
            return [Draft(a, None, turns[i % len(turns)], recipe) for i, a in enumerate(drawn)]
        case Rephrase(times=times):
            return [Draft(a, n, None, recipe) for a in drawn for n in range(1, times + 1)]
        case _:
            message = "needs no model to carry it out"
            raise SetupError(Problem(message, field="edit", found=recipe.name))


@dataclass(frozen=True)
class Attacker:
    """The writer of a set, and its purpose: `generator` is the signature of the model, `names` are
    those that a rephrased answer must keep."""

    generator: str
    rubric: Rubric
    seed: int
    names: Collection[str]
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
        checks: dict[str, str] = {}
        try:
            values = read_shape(reply, _shape(draft)).model_dump()
            text = values["answer"].strip()
        except ValueError as error:
            values, text, checks = {}, reply.text, {"reply": str(error)}
        if (area := values.get("area")) and area != draft.area:
            message = f"the reply is of the area {area!r}, and {draft.area!r} was asked for"
            checks = {"area": message}
        edited = Edited(text, values.get("false_claim", ""), values.get("true_claim", ""))
        item = altered_answer(draft.recipe, draft.parent, edited, self.rubric, self.seed)
        item = replace(
            item, item_id=draft.item_id, generator=self.generator, checks=checks,
            area=draft.area or item.area, why_plausible=values.get("why_plausible", ""),
        )  # fmt: skip
        if "reply" in checks:
            return item
        if item.must_worsen:
            return check_violations([item], earlier)[0]
        return check_same_meaning([item], self.names)[0]


def _shape(draft: Draft) -> type[BaseModel]:
    return _FalseAnswer if isinstance(draft.recipe.edit, Write) else _Rephrased


_CANNOT_TELL = "cannot tell"
_YOU_CHECK = "You check medical texts. You are given an answer to a question and "
# Of violations and of other items: what is asked, what agrees, what disagrees, and with what.
_SECOND = {
    True: (
        f"{_YOU_CHECK}one claim that is true. Say whether the answer contradicts that claim. The "
        "claim stands between such tags too. ",
        "contradicts", "does not contradict", "the true claim",
    ),
    False: (
        f"{_YOU_CHECK}an original that it words anew. Say whether the answer says the same as the "
        "original: nothing added, nothing left out, nothing changed in what it means or in how "
        "sure it is. The original stands between such tags too. ",
        "says the same as", "does not say the same as", "its parent",
    ),
}  # fmt: skip


class _Opinion(BaseModel):
    the_answer: str


def second_opinions(
    items: Sequence[AlteredAnswer],
    backend: Backend,
    seed: int,
    keep: Callable[[AlteredAnswer], None],
    terms: WritingTerms,
) -> Written:
    """Ask another model whether violations contradict the true claim and whether others say the
    same as their parents: `keep` gets each with the check `second_opinion`, or unchecked where the
    reply cannot be read. The name in `terms` is that of the model."""

    def ask(key: str, item: AlteredAnswer) -> Request:
        worse, parent = bool(item.must_worsen), item.parent
        beside = {"claim": item.true_claim} if worse else {"original": parent.text}
        instructions, agrees, differs, _ = _SECOND[worse]
        user = fenced(parent.question, item.text, **beside)
        messages = (Message("system", instructions + FENCED), Message("user", user))
        schema = schema_of(_Opinion, the_answer=[agrees, differs, _CANNOT_TELL])
        return Request(key, messages, schema, max_tokens=60, seed=seed)

    def read(item: AlteredAnswer, reply: Reply) -> None:
        opinion = None
        with suppress(ValueError):
            opinion = read_shape(reply, _Opinion).the_answer if reply.finish == "stop" else None
        _, agrees, differs, what = _SECOND[bool(item.must_worsen)]
        told = {
            agrees: "",
            differs: f"{terms.name} says that it {differs} {what}",
            _CANNOT_TELL: f"{terms.name} cannot tell whether it {agrees} {what}",
        }
        checks = {"second_opinion": told[opinion]} if opinion in told else {}
        keep(replace(item, checks={**item.checks, **checks}))

    by_key = {str(number): item for number, item in enumerate(items)}
    return write_texts(by_key, backend, ask, read, terms)
