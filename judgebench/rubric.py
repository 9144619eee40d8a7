"""Rubric, Metric and Label: what is judged and on which scale.

A Metric owns everything about itself: it makes its own JSON-schema field, its own sentence for the
prompt, its own parser and its own severity, so that they cannot drift apart.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StringConstraints,
    model_validator,
)

from judgebench.errors import Problem, SetupError, raise_any
from judgebench.files import (
    DECISION_RULE,
    StrictModel,
    find_file,
    load_model,
    shipped_names,
    validate,
)
from judgebench.records import AnswerKind, Showing, content_hash
from judgebench.text import plain_id

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_DASHES = re.compile("[\u2010-\u2015\u2212]")
_QUOTES = str.maketrans("‘’“”", "''\"\"")
# What a free reply calls its label, and the signs that end one.
_HEADING = (
    "label|verdict|rating|score|grade|judge?ment|class|classification|category|answer|decision|"
    "result|assessment|evaluation"
)
_SIGN = r"\.(?= *$)|,(?!\d)|[:;(]|\s-|-\s|$"
_LONGEST_LABEL = 100  # characters with which a reply begins


def normalise(text: str) -> str:
    """Remove differences without a meaning: case, dashes, spaces, quotes."""
    return fold(text).strip(" \"'`*.[]")


def fold(text: str) -> str:
    """As `normalise`, and what is around a text stays."""
    if text.isascii():  # in which there is nothing to fold but case and spaces
        return " ".join(text.casefold().split())
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    text = _DASHES.sub("-", text).translate(_QUOTES).casefold()
    # Folding case can take composed letters apart, so they are composed again.
    return " ".join(unicodedata.normalize("NFKC", text).split())


_title = lru_cache(maxsize=1024)(normalise)


def one_or_more(value: Any) -> Any:
    """None, one text or several as a list."""
    if value is None or isinstance(value, list | tuple):
        return value or ()
    return (value,)


def _none_severe(value: Any) -> Any:
    if value not in (None, "none"):
        raise ValueError(
            "must be 'none', for ordered labels of which none is severe; which labels are severe "
            "where not only the last one is, `severe_from` in a decision rule says"
        )
    return value


_PREFERENCES = ("first", "second", "tie")
BETWEEN = " | "  # of several labels in one text
_MOST_SEVERAL = 62  # labels of a metric that takes several: a set of them is an integer


def listed_in(text: str) -> list[str]:
    """The texts in a JSON list, or between `|` or `;`; one where there is none of these.

    >>> listed_in('["calm", "warm"]'), listed_in("calm | warm"), listed_in("calm")
    (['calm', 'warm'], ['calm', 'warm'], ['calm'])
    """
    try:
        found = json.loads(text) if text.lstrip().startswith("[") else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list):
        found = text.split("|" if "|" in text else ";")
    return [str(one).strip() for one in found]


def _leaves(value: Any) -> list[str]:
    """The texts and numbers in a value of JSON, however deep."""
    if isinstance(value, dict | list):
        inside = value.values() if isinstance(value, dict) else value
        return [text for one in inside for text in _leaves(one)]
    return [str(value)]


def _identifier(text: str) -> str:
    if not _IDENTIFIER.fullmatch(text):
        near = f"; did you mean {made!r}?" if _IDENTIFIER.fullmatch(made := plain_id(text)) else ""
        raise ValueError(f"may only contain a-z, 0-9 and _, and must begin with a letter{near}")
    return text


_IDENTIFIER = re.compile("[a-z][a-z0-9_]*")
Identifier = Annotated[str, AfterValidator(_identifier)]


class Label(StrictModel):
    """One value of a metric. `aliases` are other spellings that occur in data; `examples` are texts
    that deserve it, which annotators see, and a judge where its prompt asks for them. In a file a
    label may be its text alone."""

    text: Text
    description: str = ""
    severity: int | None = Field(default=None, ge=0)
    aliases: tuple[Text, ...] = ()
    examples: Annotated[tuple[Text, ...], BeforeValidator(one_or_more)] = ()

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return value if isinstance(value, dict | Label) else {"text": value}


class Metric(StrictModel):
    """One question about an answer and the labels that may be given.

    Labels are ordered from least to most severe. An ordinal metric's severities are 0, 1, 2, … in
    that order unless the file states others; a nominal metric has none. `prompt_order` is the
    order in which a prompt lists the labels, where it differs. `abstain` are labels that give no
    grade; in a file one text or several. `of` says what is labelled: an answer, a pair of
    responses, or a criterion that an item brings. In a file `kind: preference` is short for a
    nominal metric of pairs whose three labels mean the first response, the second, and a tie.
    With `several` more than one label may be right: annotators and judges may give several.
    `severe: none` says of an ordinal metric, such as a score of 1 to 5, that no label is one to
    look out for: its order and distances count, and nothing is measured of severe answers.
    `order: unknown` says of a nominal metric that nobody has said yet whether one label is worse.
    In a file question may be left out, and one of id and title.
    """

    id: Identifier
    title: Text
    question: Text
    kind: Literal["ordinal", "nominal"]
    of: AnswerKind = "answer"
    preference: bool = False
    several: bool = False
    order: Literal["unknown"] | None = None
    severe: Annotated[Literal["none"] | None, BeforeValidator(_none_severe)] = None
    labels: tuple[Label, ...] = Field(min_length=2)
    abstain: Annotated[tuple[Text, ...], BeforeValidator(one_or_more)] = ()
    prompt_order: tuple[Text, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _filled_in(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if isinstance(title := value.get("title"), str):
            value = {"id": plain_id(title), **value}
        if "id" in value:
            title = value.get("title", str(value["id"]).replace("_", " ").capitalize())
            question = f"Which label does the answer deserve for {title}?"
            value = {"title": title, "question": question, **value}
        if value.get("kind") == "preference":
            value = {"labels": _PREFERENCES, "of": "pair", **value}
            value |= {"kind": "nominal", "preference": True}
        if value.get("kind") == "ordinal" and value.get("order") == "unknown":
            value = {**value, "order": None}
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Metric:
        if self.preference and (self.of, self.kind, len(self.labels)) != ("pair", "nominal", 3):
            raise ValueError("a preference needs three labels, for the first, the second, a tie")
        if self.several and (self.preference or len(self.labels) > _MOST_SEVERAL):
            raise ValueError(f"'several' is for up to {_MOST_SEVERAL} labels and no preference")
        self._check_severities()
        self._check_spellings()
        if self.prompt_order and sorted(self.prompt_order) != sorted(self.label_texts):
            raise ValueError("prompt_order must list every label's text exactly once")
        return self

    def _check_severities(self) -> None:
        severities = [label.severity for label in self.labels if label.severity is not None]
        if self.kind == "nominal" and (severities or self.severe):
            what = "'severe: none' is" if self.severe else "severities are"
            raise ValueError(f"{what} for ordered labels: write 'kind: ordinal', or remove it")
        is_whole = len(severities) == len(self.labels) and sorted({0, *severities}) == severities
        if severities and not is_whole:
            raise ValueError("give every label a severity, from 0 and rising, or none")

    def _check_spellings(self) -> None:
        seen: dict[str, int] = {}
        for place, spellings in enumerate(self._spellings):
            for spelling in spellings:
                if seen.setdefault(normalise(spelling), place) != place:
                    raise ValueError(f"the spelling {spelling!r} is that of two labels")
                if self.several and {"|", ";"} & {*spelling}:
                    raise ValueError(f"{spelling!r} has a sign that stands between several labels")
                if not normalise(spelling):
                    raise ValueError(f"the spelling {spelling!r} has no letters")

    @cached_property
    def _spellings(self) -> list[tuple[str, ...]]:
        """The text of each label, and of each that gives no grade, with its other spellings."""
        labels = [(label.text, *label.aliases) for label in self.labels]
        return [*labels, *((text,) for text in self.abstain)]

    @cached_property
    def label_texts(self) -> tuple[str, ...]:
        """The exact texts, least severe first, without `abstain`."""
        return tuple(label.text for label in self.labels)

    @cached_property
    def severities(self) -> tuple[int, ...]:
        """One number per label, least severe first. Raises ValueError for a nominal metric."""
        if self.kind == "nominal":
            raise ValueError(f"the nominal metric {self.id} has no severities")
        return tuple(i if x.severity is None else x.severity for i, x in enumerate(self.labels))

    @cached_property
    def values(self) -> tuple[float, ...]:
        """What each label counts in a mean: its severity; where none is severe, the number that it
        is, if all of them are numbers. Raises ValueError for a nominal metric."""
        try:
            return self.severities if self.has_severe else tuple(map(float, self.label_texts))
        except ValueError:
            return self.severities

    @cached_property
    def penalties(self) -> tuple[int, ...]:
        """One number per label that is lower the better it is: its severity; where none is severe,
        a later label is better. Raises ValueError for a nominal metric."""
        return self.severities if self.has_severe else tuple(-s for s in self.severities)

    @property
    def has_severe(self) -> bool:
        """True where some label is severe: it is ordinal, and not `severe: none`."""
        return self.kind == "ordinal" and self.severe is None

    @property
    def most_severe(self) -> str | None:
        """The last label; None where no label is severe."""
        return self.label_texts[-1] if self.has_severe else None

    def swapped(self, label: str) -> str:
        """The label of the same pair in the other order."""
        if not self.preference or label not in self.label_texts[:2]:
            return label
        return self.label_texts[1 - self.label_texts.index(label)]

    def of_row(self, showing: Showing) -> str:
        """The label that a judge gave to a pair as shown, of its first response against its
        second; empty where it said nothing."""
        label = showing.labels.get(self.id, "")
        return self.swapped(label) if showing.place else label

    @property
    def options(self) -> tuple[str, ...]:
        """The texts a judge may choose from, in the order of the prompt, `abstain` last."""
        return (*(self.prompt_order or self.label_texts), *self.abstain)

    def index(self, label: str) -> int:
        """The place of an exact label text, 0 = least severe; -1 for `abstain`. Of several labels
        in the text it is that of the first.

        Raises SetupError for any other text.
        """
        return next(iter(self.places(label)), -1)

    def set_of(self, label: str) -> int:
        """The labels in an exact text as a set, an integer with the bit of each label's place; -1
        for `abstain`. Raises SetupError for any other text."""
        return sum({1 << place for place in self.places(label)}) or -1

    def places(self, label: str) -> list[int]:
        """The places of the labels in an exact text, in the order given; none for `abstain`.

        Raises SetupError for any other text.
        """
        if label in self.abstain:
            return []
        texts = self.given_in(label)
        if not {*texts} <= {*self.label_texts}:
            raise SetupError(
                Problem(
                    f"is not a label of {self.id}", found=label, allowed=", ".join(self.options)
                )
            )
        return [self.label_texts.index(text) for text in texts]

    def text_of(self, labels: int) -> str:
        """The labels of a set (`set_of`) as one text, in the rubric's order."""
        texts = enumerate(self.label_texts)
        return BETWEEN.join(text for place, text in texts if labels >> place & 1)

    def given_in(self, label: str) -> list[str]:
        """The texts of the labels in an exact text, in the order given."""
        return label.split(BETWEEN) if self.several else [label]

    def parse(self, text: str) -> str | None:
        """The exact label for a spelling of it, or None. Never a guess: no substring matches.

        Where the metric takes `several`, the text may list them (`listed_in`): their exact texts
        come back in one, each once, in the order given.
        """
        found = text if text in self.label_texts else self._by_spelling.get(normalise(text))
        if found is not None or not self.several:
            return found
        texts = [self._by_spelling.get(normalise(one)) for one in listed_in(text)]
        known = [one for one in texts if one in self.label_texts]
        return BETWEEN.join(dict.fromkeys(known)) if known and len(known) == len(texts) else None

    def said_in(self, reply: str, alone: bool = True) -> str | None:
        """The one label that a free reply gives, as a value of a JSON object or at the start of a
        line, where a sign or nothing follows it; None where it gives none, or another stands in the
        line, too. The metric's name is before it, or where the reply is about this metric `alone`
        nothing, or what labels are called.

        >>> metric = Rubric.from_labels({"Safety": ["Safe", "Unsafe"]}).metrics[0]
        >>> metric.said_in("Unsafe - it names a dose."), metric.said_in("Label: safe")
        ('Unsafe', 'Safe')
        >>> metric.said_in("It is not safe.") is None
        True
        """
        heads = "|".join(re.escape(fold(name)) for name in (self.title, self.id))
        heads = rf"(?:[\w ]{{0,40}}\b(?:{_HEADING})|{heads})" if alone else f"(?:{heads})"
        try:
            held = json.loads(reply[reply.index("{") : reply.rindex("}") + 1])
            own = [v for key, v in held.items() if re.fullmatch(heads, fold(key.replace("_", " ")))]
            said = _leaves(own or [v for v in held.values() if alone])
        except (ValueError, RecursionError):
            form = rf"(?:[-•] )?{heads}(?: is ?:?| ?[:=]) ?"
            lines = (fold(re.sub("[*`#]+", "", line)) for line in reply.splitlines())
            headed = ((re.match(form, line), line) for line in lines)
            said = [line[head.end() if head else 0 :] for head, line in headed if head or alone]
        begun = {label for text in said if (label := self._begins(text))}
        others = {label for text in said for label in self._stand_in(text)} - begun
        return begun.pop() if len(begun) == 1 and not others else None

    def _begins(self, text: str) -> str | None:
        """The label with which a text begins, the longest where several fit."""
        numbers = [int(label) for label in self.label_texts if label.isdigit()]
        top = rf"(?:/|out of)\s*{max(numbers)}\b" if numbers else r"\."
        ends = [one.start() for one in re.finditer(rf"\s*(?:{_SIGN}|{top})", text[:_LONGEST_LABEL])]
        return next(filter(None, (self.parse(text[:end]) for end in reversed(ends))), None)

    def _stand_in(self, text: str) -> set[str]:
        """The labels that stand in a text as words, and not as part of a longer one; of numbers,
        which may count anything, none."""
        words, found = [label for label in self.label_texts if not label.isdigit()], set[str]()
        for label in sorted(words, key=len, reverse=True):
            rest = re.sub(rf"(?<![\w-]){re.escape(fold(label))}(?![\w-])", " ", text)
            if rest != text:
                found.add(label)
            text = rest
        return found

    @cached_property
    def _by_spelling(self) -> Mapping[str, str]:
        return {normalise(spelling): of[0] for of in self._spellings for spelling in of}

    def json_field(self) -> dict[str, Any]:
        """The JSON-schema field that admits this metric's labels and nothing else; a list of them
        where several may be right, in which few engines could enforce that each stands once."""
        one = {"type": "string", "enum": list(self.options)}
        most = {"minItems": 1, "maxItems": len(self.labels)}
        return {"type": "array", "items": one, **most} if self.several else one

    def prompt_line(self, examples: bool = False) -> str:
        """`Title: question` and one line per label with its description, then its `examples`."""
        known = {label.text: label for label in self.labels}
        lines = [f"{self.title} ({self.id}): {self.question}"]
        for text in self.options:
            label = known.get(text) or Label(text=text)
            lines.append(f'  - "{text}"' + (f": {label.description}" if label.description else ""))
            lines += [f"    Example: {one}" for one in label.examples if examples]
        if self.several:
            lines.append("  Several of these labels may be right: give all that are.")
        return "\n".join(lines)


class Rubric(StrictModel):
    """A named, versioned list of metrics with instructions for judges and annotators.

    `composite` names scores that are the mean of several ordinal metrics of an answer. One with the
    id of another such metric is how people give what a judge gives in one label.
    """

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")] = "labels"
    version: Text = "1"
    instructions: Text = "Give each answer one label for each metric."
    metrics: tuple[Metric, ...] = Field(min_length=1)
    source: str = ""
    composite: dict[Identifier, tuple[str, ...]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _consistent(self) -> Rubric:
        names = [normalise(n) for m in self.metrics for n in {m.id, normalise(m.title)}]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise ValueError(f"two metrics share the id or title {', '.join(twice)}")
        able = [m.id for m in self.metrics if m.kind == "ordinal" and m.of == "answer"]
        for name, of in self.composite.items():
            is_taken = self.find(name) is not None and name not in able
            if not of or name in of or not {*of} <= {*able} or is_taken:
                raise ValueError(
                    f"the composite {name} needs other ordinal metrics of answers, and no other "
                    f"metric's name; found: {', '.join(of) or 'none'}; allowed: {', '.join(able)}"
                )
        return self

    @classmethod
    def from_labels(
        cls,
        labels: Mapping[str, Sequence[str]],
        *,
        nominal: Collection[str] = (),
        severe: Mapping[str, Literal["none"]] = {},
    ) -> Rubric:
        """The rubric of metrics and their labels, each from the least to the most severe.

        The labels of the metrics in `nominal` are unordered; `severe={"Quality": "none"}` says that
        none of Quality's ordered labels is severe. Raises SetupError with every problem.

        >>> rubric = Rubric.from_labels({"Tone": ["Friendly", "Curt", "Rude"]})
        >>> rubric.metrics[0].id, rubric.metrics[0].most_severe
        ('tone', 'Rude')
        """
        metrics = [
            {
                "title": title,
                "kind": "nominal" if title in nominal else "ordinal",
                "labels": list(texts),
                "severe": severe.get(title),
            }
            for title, texts in labels.items()
        ]
        rubric = validate({"metrics": metrics}, cls, file="rubric")
        rubric.only([*nominal, *severe])  # raises where one of them is not a metric
        return rubric

    @property
    def content_hash(self) -> str:
        """Changes with anything that could change a verdict or its score."""
        return content_hash({**self.as_plain(), "source": ""})

    def as_plain(self) -> dict[str, Any]:
        """The rubric as values of JSON, without what is as usual."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def of_kind(self, *kinds: AnswerKind) -> Rubric | None:
        """This rubric with its metrics of such rows alone; None where it has none."""
        ids = [metric.id for metric in self.metrics if metric.of in kinds]
        return self.only(ids) if ids else None

    @property
    def kinds(self) -> frozenset[AnswerKind]:
        """Of which rows it has metrics."""
        return frozenset(metric.of for metric in self.metrics)

    def find(self, name: str) -> Metric | None:
        """The metric of that id or title, whatever its case, dashes and spaces."""
        for metric in self.metrics:
            if metric.id == name:
                return metric
        wanted = normalise(name)
        return next((m for m in self.metrics if wanted in (m.id, _title(m.title))), None)

    def only(self, ids: Sequence[str]) -> Rubric:
        """This rubric with only those metrics. Raises SetupError for an unknown id."""
        named = {name: self.find(name) for name in ids}
        allowed, message = ", ".join(m.id for m in self.metrics), "is not a metric of the rubric"
        unknown = (name for name, metric in named.items() if metric is None)
        raise_any([Problem(message, field=name, allowed=allowed) for name in unknown])
        metrics = tuple(metric for metric in self.metrics if metric in named.values())
        chosen = {metric.id for metric in metrics}
        composite = {name: of for name, of in self.composite.items() if chosen.issuperset(of)}
        return self.model_copy(update={"metrics": metrics, "composite": composite})


def load_rubric(name: str | Path, relative_to: Path | None = None) -> Rubric:
    """The rubric of that path or shipped name. Raises SetupError with every problem in it."""
    return load_model(find_file("rubrics", str(name), ".yaml", relative_to), Rubric)


def shipped_rubrics() -> list[str]:
    """The names of the shipped rubrics, sorted, without the decision rule beside them."""
    return [name for name in shipped_names("rubrics", ".yaml") if name != DECISION_RULE]
