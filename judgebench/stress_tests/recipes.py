"""Sentences, facts and claims of a text, found by rule: no model, and no understanding.

Everything here is lexical. It can be wrong about meaning, so what rests on it is called a check and
recorded with its reason.

Word lists: terms, what may be put in their place, and the fact that each swap breaks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import cache, lru_cache
from pathlib import Path
from random import Random
from typing import Annotated, Literal, TypeVar

from pydantic import Field, StringConstraints, model_validator

from judgebench.errors import Problem, raise_any
from judgebench.files import (
    StrictModel,
    find_file,
    load_model,
)
from judgebench.records import Answer, content_hash
from judgebench.rubric import Identifier, Metric, Rubric, normalise
from judgebench.text import Sentence, sentences

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Forms = Annotated[tuple[Text, ...], Field(min_length=1)]
Term = Text | Forms
_FOLDER = "adversarial/words"
_OF_NAMES = ("pathogens", "drugs", "tests")


class Fact(StrictModel):
    """A true claim that no longer stands once its term is swapped.

    `about`: what the question or the answer must mention, any of them; empty = no condition.
    `says` is the sound term and `instead` maps a kind of replacement to alternatives: each the
    name of one of the list's `forms`, its forms themselves, or its only form, which then stands
    for every form of `says` (a drug for another drug and its abbreviation). `unless`: words
    beside which the swapped text would contradict itself. `fact` is the claim in one sentence,
    `source` the title and organisation of a public page.
    """

    about: tuple[Text, ...] = ()
    says: Term
    instead: Annotated[
        Mapping[Text, Annotated[tuple[Term, ...], Field(min_length=1)]], Field(min_length=1)
    ]
    unless: tuple[Text, ...] = ()
    fact: Annotated[str, StringConstraints(pattern=r"^\S.*\.$")]
    source: Text


class RuleList(StrictModel):
    """A file of `adversarial/words`: the data of an edit. `about` says how the list was made."""

    name: Text
    version: Text
    about: Text
    notice: str = ""


class WordList(RuleList):
    """The facts of one kind. `forms` names terms that have several forms, such as `viruses`.

    `speaks_of`: words of which a sentence that makes such a claim, or the question, holds one;
    empty = any sentence may. So `older women need calcium` is no claim about who is at risk.
    """

    notice: Text
    forms: Mapping[Text, Forms] = Field(default_factory=dict)
    speaks_of: tuple[Text, ...] = ()
    facts: tuple[Fact, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> WordList:
        problems = [f"{fact.fact!r} {why}" for fact in self.facts for why in self._problems(fact)]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _problems(self, fact: Fact) -> Iterator[str]:
        """The contradictions between parts of the list that are each right alone."""
        says = self.forms_of(fact.says)
        if not any(mentions(fact.fact, form) for form in says):
            yield f"must hold the term: {says[0]}"
        for forms in (self.forms_of(term) for terms in fact.instead.values() for term in terms):
            if len(forms) not in (1, len(says)):
                yield f"must have one form instead, or as many as `says`: {', '.join(forms)}"

    def forms_of(self, term: Term) -> tuple[str, ...]:
        """The forms of a term, as they stand in texts."""
        return self.forms.get(term, (term,)) if isinstance(term, str) else term

    def alternatives(self, fact: Fact, to: str = "") -> list[tuple[str, ...]]:
        """The terms for the place of the fact's term, of one kind or, for '', of any: one
        form for each of the term's."""
        n = len(self.forms_of(fact.says))
        return [
            forms * n if len(forms) == 1 else forms
            for kind, terms in fact.instead.items()
            for forms in map(self.forms_of, terms)
            if to in ("", kind)
        ]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of replacement that the list offers, sorted."""
        return tuple(sorted({kind for fact in self.facts for kind in fact.instead}))


List = TypeVar("List", bound=RuleList)


def load_list(name: str | Path, model: type[List], relative_to: Path | None = None) -> List:
    """The list of that path or shipped name. Raises SetupError with every problem in it."""
    return load_model(find_file(_FOLDER, str(name), ".yaml", relative_to), model)


def list_in_words(model: type[RuleList], path: Path, rubric: str) -> str:
    """Read a list and say what it is. Raises SetupError."""
    rules = load_list(path, model)
    return f"the word list {rules.name}, version {rules.version}"


@cache
def word_names() -> frozenset[str]:
    """Every pathogen, drug and test of the shipped word lists, in all its forms: the names that
    an edit which keeps the meaning must keep."""
    return frozenset(
        form
        for words in (load_list(name, WordList) for name in _OF_NAMES)
        for fact in words.facts
        for forms in (words.forms_of(fact.says), *words.alternatives(fact))
        for form in forms
    )


_WORD = re.compile(r"\d+(?:[.,]\d+)+|[^\W_]+(?:['’-][^\W_]+)*")
NUMBER = re.compile(r"(?<![\w.,])(?>\d+(?:[.,]\d+)*)")
_UNITS = (
    "mg mcg µg g kg ml l litre litres liter liters iu units unit mmol mmhg mm cm m km second "
    "seconds minute minutes hour hours day days week weeks month months year years percent % °c °f "
    "degrees tablet tablets dose doses drops cups glasses"
)
_ANY_UNIT = "|".join(sorted(map(re.escape, _UNITS.split()), key=len, reverse=True))
NUMBER_AND_UNIT = re.compile(rf"({NUMBER.pattern})(?:[\s-]*({_ANY_UNIT})(?!\w))?", re.IGNORECASE)
_LONGEST_CLAIM = 4000  # characters
NEAR = 200  # characters on each side of a place that bear on what is said there
MOST_TRIED = 100  # places of one text that an edit chooses from
_NEGATIONS = "not no never none nor neither without cannot nobody nothing nowhere hardly unless"
NEGATIONS = frozenset(_NEGATIONS.split())
_GRAMMAR = (
    "a an the of to in on at by for from with and or but as is are was were be been being it its "
    "this that these those they them their he she his her you your we our i my me do does did has "
    "have had can could may might will would shall should must so than then there here which who "
    "whom whose what when where why how also very more most much many some any all each such into "
    "about over under between through during after before if because while both other only just "
    "too up out off own same s t"
)
_FUNCTION_WORDS = frozenset(_GRAMMAR.split())


def words(text: str) -> list[str]:
    """The words of a text, folded as labels are."""
    return list(_WORD.findall(normalise(text)))


@lru_cache(maxsize=4096)  # the search for near-duplicates asks for the same texts again and again
def content_words(text: str) -> frozenset[str]:
    """Roughly stemmed words without those that carry grammar only; negations are kept apart."""
    return frozenset(
        _stem(w) for w in words(text) if w not in _FUNCTION_WORDS and w not in NEGATIONS
    )


_ENDING = re.compile(r"(?<=..)ies$|(?<=...)(?:ing|es|ed|(?<![sui])s)$")


def _stem(word: str) -> str:
    """`viruses` and `virus` alike: the common English endings cut from words of some length."""
    word = _ENDING.sub(lambda match: "y" if match[0] == "ies" else "", word)
    return word[:-1] if word.endswith("e") and len(word) >= 5 else word


def negations(text: str) -> int:
    """The number of words that deny something."""
    return sum(w in NEGATIONS or w.endswith(("n't", "n’t")) for w in words(text))


def mentions(text: str, term: str) -> bool:
    """Return whether a term stands in a text as whole words, whatever the case."""
    if text.isascii() and term.isascii() and term.lower() not in text.lower():
        return False  # known far sooner
    return re.search(rf"(?<!\w){re.escape(term)}(?!\w)", text, re.IGNORECASE) is not None


def facts(text: str, names: Collection[str] = ()) -> Counter[str]:
    """Counts of all that an edit which keeps the meaning must keep: numbers with their units,
    negations, and every one of `names` (drugs, pathogens, tests) that is mentioned."""
    counted = Counter(
        f"{match[1]} {(match[2] or '').lower()}".strip() for match in NUMBER_AND_UNIT.finditer(text)
    )
    counted["(negations)"] = negations(text)
    for name in (name for name in names if mentions(text, name)):
        places = re.findall(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)
        counted[name.lower()] = len(places)
    return +counted


def asserts(text: str, claim: str, beyond: str = "", share: float = 0.8) -> bool:
    """Return whether a sentence of `text` says what `claim` says, as far as words can tell.

    It must hold `share` of the claim's content words, deny as often (odd or even) as the claim
    does, and hold every content word of the claim that the claim `beyond` lacks: two claims that
    differ in one word are so kept apart.
    """
    wanted = content_words(claim)
    if not wanted:
        return False
    telling = wanted - content_words(beyond) if beyond else frozenset()
    for sentence in sentences(text):
        held = content_words(sentence.text)
        says = telling <= held and len(wanted & held) >= share * len(wanted)
        if says and negations(sentence.text) % 2 == negations(claim) % 2:
            return True
    return normalise(claim) in normalise(text)


def statements(text: str) -> list[Sentence]:
    """The sentences that can say something, in order: what is longer is no sentence."""
    return [sentence for sentence in sentences(text) if len(sentence.text) <= _LONGEST_CLAIM]


# Numbers, then letters and abbreviations that are spelt, then words.
_SAID_WITH_A_VOWEL = re.compile(
    r"8|1[18](?!\d)|(?:[aefhilmnorsx]|[AEFHILMNORSX][A-Z0-9]{0,3})(?!\w)"
    r"|(?![A-Z][A-Z0-9]{0,3}(?!\w))(?!(?i:eu|one\b|u(?:[bcfhjkqrst][aeiou]|ni|\b)))[AEIOUaeiou]"
)
_ARTICLE = re.compile(r"(?<![\w'’-])(?:(a)n?)(?=\s+$)", re.IGNORECASE)


def article(word: str) -> str:
    """`a` or `an`, as the word is spoken: an x-ray, a urine test, an MRI, an 8-day course."""
    return "an" if _SAID_WITH_A_VOWEL.match(word) else "a"


def put(text: str, places: Sequence[tuple[int, int]], new: Sequence[str]) -> str:
    """The text with each span of `places` (in order, apart from each other) replaced by the text
    of `new` at the same index, and an article `a` or `an` right before it made to fit."""
    parts, end = [], 0
    for (start, stop), word in zip(places, new, strict=True):
        before = text[end:start]
        if article(word) != article(text[start:stop]):
            before = _ARTICLE.sub(rf"\1{article(word)[1:]}", before)
        parts += [before, word]
        end = stop
    return "".join([*parts, text[end:]])


# Bounds keep the time in proportion to the text: 64 characters before the @ of an address and 63 in
# a part of a host's name are the most that there can be.
REFERENCE = re.compile(  # links, mail addresses and citations
    r"(?:https?://|www\.)\S+|\S{1,64}@\S+|\b[\w-]{1,63}\.(?:gov|org|com|edu|int|net)\b\S*"
    r"|\[[^\]\n]{0,300}\]|\((?=[^()\n]*\))[^()\n]*(?:et al|doi|ISBN)[^()\n]*\)"
)
_CAPITALISED = r"[A-Z](?=\w*[a-z])\w*+"
NAME = re.compile(  # capitalised words in a row, small words between them: names and titles
    rf"\b{_CAPITALISED}(?:[ ](?:of|for|and|the|on|in|&|{_CAPITALISED}))*[ ]{_CAPITALISED}"
)


def covered(text: str, *patterns: re.Pattern[str]) -> bytearray:
    """For each character of a text 1 where a match of any of the patterns holds it, else 0."""
    marked = bytearray(len(text))
    for pattern in patterns:
        for match in pattern.finditer(text):
            marked[match.start() : match.end()] = b"\1" * len(match[0])
    return marked


MetricLabels = Mapping[str, str]  # metric -> label
AnyText = Annotated[str, StringConstraints(min_length=1)]
RecipeName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,47}$")]
Area = Literal["pathogen identification", "treatment", "diagnostic method", "risk factors"]


PLACEHOLDER = re.compile(r"\{(?:json|brackets|score|labels)\}")  # a verdict in a reply format


class Add(StrictModel):
    """Text set before or after the answer; one of `texts` is drawn.

    A text may hold `{json}`, `{brackets}`, `{score}` and `{labels}`: the whole verdict that the
    recipe's `demand` asks for, in each reply format.
    """

    kind: Literal["add"]
    where: Literal["before", "after"]
    texts: tuple[AnyText, ...] = Field(min_length=1)


class Swap(StrictModel):
    """A term of a word list made another one that breaks the list's fact.

    `to` names a kind of replacement that the list offers, such as `inside` the drug's class.
    """

    kind: Literal["swap"]
    words: str
    to: str = ""


class Rule(StrictModel):
    """An edit that needs nothing but its name."""

    kind: Literal[
        "dose-by-ten", "number", "unit", "negate-contraindication",
        "bullets", "markdown", "drop-redundant",
    ]  # fmt: skip


class Reword(StrictModel):
    """Neutral synonyms of a word list put for each other."""

    kind: Literal["reword"]
    words: str


class _ByModel(StrictModel):
    """The decoding of a model that writes: greedy, it would write the same again and again."""

    instructions: AnyText
    temperature: float = Field(default=0.9, ge=0, le=2)
    top_p: float = Field(default=0.85, gt=0, le=1)


class Write(_ByModel):
    """A model writes a false answer. `areas` says what to get wrong in each error area."""

    kind: Literal["write"]
    areas: Mapping[Area, AnyText] = Field(min_length=1)


class Rephrase(_ByModel):
    """A model writes the answer anew, `times` over, without changing what it says."""

    kind: Literal["rephrase"]
    times: int = Field(default=6, ge=1, le=64)


class BestOf(StrictModel):
    """Edits by the recipes in `of`, some of them at random, `times` over: an attacker picks the one
    that the judge likes best."""

    kind: Literal["best-of"]
    of: tuple[str, ...] = Field(min_length=1)
    times: int = Field(default=16, ge=1, le=64)


class Ask(StrictModel):
    """The answer stays as it is, and the judge is asked in another way.

    `repeat` asks the same again `times` more; `per_metric` asks for one metric a call.
    """

    kind: Literal["metric-order", "label-order", "repeat", "per-metric"]
    times: int = Field(default=1, ge=1, le=20)


class Opposite(StrictModel):
    """The opposite of a metric's question; `labels` maps the rubric's to those that then mean the
    same."""

    id: Identifier
    title: Text
    question: Text
    labels: Mapping[str, Text]


class Wording(StrictModel):
    """The judge is asked the same in other words: sentences of prompt and rubric as in `sets`,
    `times` over, and the opposite of `metrics`."""

    kind: Literal["wording"]
    sets: tuple[str, ...] = ()
    metrics: Mapping[str, Opposite] = Field(default_factory=dict)
    times: int = Field(default=1, ge=1, le=20)


EditSpec = Annotated[
    Add | Swap | Rule | Reword | Write | Rephrase | BestOf | Ask | Wording,
    Field(discriminator="kind"),
]


class Recipe(StrictModel):
    """One attack. Give either `must_worsen` (metric -> at least this label) or
    `must_not_change: true`.

    `bias` is the name of the bias in Ye et al., "Justice or Prejudice?" (CALM), where the probe is
    the same. `alters` says what: sound answers, the violations that other attacks of the same run
    made, answers that people call bad, or sentences of prompts and rubrics. `demand`: the labels
    that a planted text asks for. `area` is the error area of what becomes false.
    """

    name: RecipeName
    version: AnyText
    about: AnyText
    bias: str = ""
    must_worsen: MetricLabels = Field(default_factory=dict)
    must_not_change: bool = False
    alters: Literal["sound", "violations", "bad", "instructions"] = "sound"
    demand: Literal["least_severe", "most_severe"] | None = None
    area: Area | None = None
    edit: EditSpec

    @model_validator(mode="after")
    def _one_expectation(self) -> Recipe:
        if bool(self.must_worsen) == self.must_not_change:
            raise ValueError("give either must_worsen (metric: label) or must_not_change: true")
        if self.demand and not self.must_not_change:
            raise ValueError("a demand is planted in an answer whose verdict must_not_change")
        if (
            isinstance(self.edit, Add)
            and not self.demand
            and PLACEHOLDER.search(str(self.edit.texts))
        ):
            raise ValueError("a text has a placeholder, and the recipe demands no label")
        if isinstance(self.edit, Ask | Wording | Rephrase) and self.must_worsen:
            raise ValueError(f"an edit of the kind {self.edit.kind} must not change the verdict")
        return self

    @property
    def content_hash(self) -> str:
        """Changes with anything that could change an altered answer or what it must do."""
        return content_hash(self.model_dump(mode="json", exclude={"about"}))


def load_recipe(name: str | Path, relative_to: Path | None = None) -> Recipe:
    """The recipe of that path or shipped name. Raises SetupError with every problem in it."""
    return load_model(find_file("adversarial", str(name), ".yaml", relative_to), Recipe)


OTHER_RUBRIC = "`--rubric`, or `rubric` of a bench.yaml, names another"


def check_demand(
    must_worsen: MetricLabels, rubric: Rubric, file: str = "", line: int | None = None
) -> MetricLabels:
    """`must_worsen` with ids and exact labels of the rubric.

    Raises SetupError for every unknown metric or label, for a metric without a severe label
    (nothing is worse there), and for the least severe label, which every verdict reaches.
    """
    labels, problems = {}, []
    for name, text in must_worsen.items():
        metric = rubric.find(name)
        worse = metric.label_texts[1:] if metric else [m.id for m in rubric.metrics]
        found, allowed = text, ", ".join(worse)
        if metric is None:
            message = f"is no metric of the rubric {rubric.name}; {OTHER_RUBRIC}"
            found = name
        elif metric.kind == "nominal" or not metric.has_severe:
            message = "has no severe label that a verdict could worsen to"
        elif (label := metric.parse(text)) in worse and label:
            labels[metric.id] = label
            continue
        else:
            message = f"is not a label of {metric.id} that a verdict could worsen to"
        problems.append(Problem(message, file, line, f"must_worsen.{name}", found, allowed))
    raise_any(problems)
    return labels


def label_indices(labels: MetricLabels, metrics: Iterable[Metric]) -> list[int]:
    """The index of the label of each metric, -1 where there is none."""
    return [m.index(labels[m.id]) if m.id in labels else -1 for m in metrics]


BY_RULE = "rule"
BY_HAND = "by hand"
Piece = tuple[str, bool]  # a text, and whether it is changed
_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
# Tokens of a text: difflib's time grows with the square of the length, and more is no page to read.
_MOST_COMPARED = 10_000
# Pairs of tokens of which difflib looks at frequent ones too: a second at most.
_MOST_PAIRS = 250_000


@dataclass(frozen=True, slots=True)
class AlteredAnswer:
    """One altered answer with its provenance.

    `must_worsen` maps metrics to the least severe label that the verdict must reach; where it is
    empty the verdict must not change. `demand` is what a planted text asks for. `generator` is the
    signature of the model that wrote it, or `rule`, or `by hand`. `checks` maps each check of
    validity to the reason why it failed, '' where it passed.
    """

    item_id: str
    parent: Answer
    text: str
    recipe: str
    recipe_version: str
    recipe_hash: str
    seed: int = 0
    generator: str = BY_RULE
    must_worsen: MetricLabels = field(default_factory=dict)
    demand: MetricLabels = field(default_factory=dict)
    area: str = ""
    false_claim: str = ""
    true_claim: str = ""
    why_plausible: str = ""
    source: str = ""
    checks: Mapping[str, str] = field(default_factory=dict)

    @property
    def answer(self) -> Answer:
        """The answer that a judge is shown. It shares its parent's cluster."""
        return replace(self.parent, item_id=self.item_id, text=self.text)

    @property
    def made_by(self) -> str:
        """The author of the alteration in words: `altered by hand`, `altered by rule`, `altered by
        m:1a2b`."""
        return f"altered by {self.generator.removeprefix('by ')}"

    @property
    def is_by_hand(self) -> bool:
        """True where a person wrote it, beside a sound parent."""
        return self.generator == BY_HAND

    @property
    def by_model(self) -> bool:
        """True where a model wrote it."""
        return self.generator not in (BY_RULE, BY_HAND)

    @property
    def claims(self) -> Mapping[str, str]:
        """What is said of the alteration, by its heading."""
        return {
            "True claim": self.true_claim,
            "False claim": self.false_claim,
            "Why plausible": self.why_plausible,
            "Source": self.source,
        }

    @property
    def failed_checks(self) -> Mapping[str, str]:
        """Check -> reason, for the checks that failed. An item with any is never counted."""
        return {check: reason for check, reason in self.checks.items() if reason}


@dataclass(frozen=True, slots=True)
class Edited:
    """A new text. A rule that makes an answer worse also says which claim is now false, as it
    stands in the new text, and which true claim it breaks."""

    text: str
    false_claim: str = ""
    true_claim: str = ""


@dataclass(frozen=True, slots=True)
class Nothing:
    """The rule found nothing to change; `reason` says what it looked for."""

    reason: str


def not_alterable(answer: Answer) -> str:
    """The reason why an answer is never altered; empty where it may be."""
    if not answer.text.strip():
        return "the answer is empty"
    single = answer.kind == "answer" and not answer.is_conversation
    return "" if single else "pairs, criteria and whole conversations are not altered"


Outcome = Edited | Nothing

# All chance comes from the generator, which depends on seed, recipe and answer alone: the same
# seed gives the same set, whatever is edited before.
Edit = Callable[[Answer, Random], Outcome]


def marked(item: AlteredAnswer) -> tuple[list[Piece], list[Piece]]:
    """The sound and the altered text in pieces, with what differs marked word by word.

    Pieces of the two stand beside each other in order; one is '' where something was left out or
    added. Pieces come from here because a browser counts characters otherwise.
    """
    old, new = (_TOKEN.findall(text) for text in (item.parent.text, item.text))
    if max(len(old), len(new)) > _MOST_COMPARED:
        return [(item.parent.text, True)], [(item.text, True)]
    matcher = SequenceMatcher(None, old, new, autojunk=len(old) * len(new) > _MOST_PAIRS)
    pieces = [
        ("".join(old[i1:i2]), "".join(new[j1:j2]), tag != "equal")
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
    ]
    return [(a, differs) for a, _, differs in pieces], [(b, differs) for _, b, differs in pieces]
