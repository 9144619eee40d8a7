"""Word lists: terms, what may be put in their place, and the fact that each swap breaks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import Field, StringConstraints

from judgebench.errors import Problem, SetupError
from judgebench.shipped import find_file
from judgebench.stress_tests.probes.text import mentions
from judgebench.yaml_file import Strict, load_with_lines, node_below, validate

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Forms = Annotated[tuple[Text, ...], Field(min_length=1)]
Term = Text | Forms
_FOLDER = "adversarial/words"
_OF_NAMES = ("pathogens", "drugs", "tests")


class Fact(Strict):
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


class WordList(Strict):
    """The facts of one kind. `forms` names terms that have several forms, such as `viruses`.

    `speaks_of`: words of which a sentence that makes such a claim, or the question, holds one;
    empty = any sentence may. So `older women need calcium` is no claim about who is at risk.
    """

    name: Text
    version: Text
    about: Text
    notice: Text
    forms: Mapping[Text, Forms] = Field(default_factory=dict)
    speaks_of: tuple[Text, ...] = ()
    facts: tuple[Fact, ...] = Field(min_length=1)

    def forms_of(self, term: Term) -> tuple[str, ...]:
        """The forms of a term, as they stand in texts."""
        return self.forms.get(term, (term,)) if isinstance(term, str) else term

    def alternatives(self, fact: Fact, to: str = "") -> list[tuple[str, ...]]:
        """What may stand in the place of the fact's term, of one kind or, for '', of any: one
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


def load_words(name: str | Path, relative_to: Path | None = None) -> WordList:
    """The word list of that path or shipped name. Raises SetupError with every problem in it."""
    path = find_file(_FOLDER, str(name), ".yaml", relative_to)
    value, node = load_with_lines(path)
    words = validate(value, WordList, str(path), node)
    if problems := list(_problems(words, str(path), node)):
        raise SetupError(problems)
    return words


def _problems(words: WordList, file: str, node: yaml.Node | None) -> Iterator[Problem]:
    """What is wrong between the parts of a list that are each right alone."""
    for i, fact in enumerate(words.facts):
        says = words.forms_of(fact.says)
        if not any(mentions(fact.fact, form) for form in says):
            line = _line(node, i, "fact")
            yield Problem("must hold the term", file, line, f"facts.{i}.fact", fact.fact, says[0])
        for kind, terms in fact.instead.items():
            for forms in map(words.forms_of, terms):
                line, where = _line(node, i, "instead", kind), f"facts.{i}.instead.{kind}"
                found = ", ".join(forms)
                if len(forms) not in (1, len(says)):
                    message, allowed = "must have one form, or as many as `says`", ", ".join(says)
                    yield Problem(message, file, line, where, found, allowed)
                if {form.lower() for form in forms} & {form.lower() for form in says}:
                    yield Problem("is what the fact says already", file, line, where, found)


def _line(node: yaml.Node | None, fact: int, *loc: str) -> int | None:
    below = node_below(node, "facts", fact, *loc)
    return below.start_mark.line + 1 if below else None


@cache
def word_names() -> frozenset[str]:
    """Every pathogen, drug and test of the shipped word lists, in all its forms: the names that
    an edit which keeps the meaning must keep."""
    return frozenset(
        form
        for words in map(load_words, _OF_NAMES)
        for fact in words.facts
        for forms in (words.forms_of(fact.says), *words.alternatives(fact))
        for form in forms
    )
