import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebench.errors import SetupError
from judgebench.models import token_scoring as module
from judgebench.models.contract import LabelField, LabelsAsked
from judgebench.models.token_scoring import (
    MOST_UNKNOWN,
    LabelsRead,
    Place,
    Step,
    Token,
    must_be_chained,
    read_labels,
    recorded,
)

BEFORE = b'{"f":'
LABELS = st.lists(st.text("ab–", min_size=1, max_size=3), min_size=1, max_size=4, unique=True)


@dataclass(frozen=True)
class Model:
    """A made-up tokenizer and a known distribution: every string of up to three bytes of the
    labels is a token, and its logit depends on the text before it and on a seed."""

    options: tuple[str, ...]
    seed: int
    masked: bool  # whether tokens that fit no label have no probability

    @property
    def texts(self) -> dict[str, bytes]:
        return {o: json.dumps(o, ensure_ascii=False).encode() + b"}" for o in self.options}

    @property
    def vocabulary(self) -> list[bytes]:
        parts = {
            t[i : i + n] for t in self.texts.values() for i in range(len(t)) for n in (1, 2, 3)
        }
        return sorted(parts | {b"x", b"yy"})

    def fits(self, written: bytes) -> bool:
        return any(text.startswith(written) for text in self.texts.values())

    @cache  # noqa: B019 - a model lives as long as one example
    def following(self, written: bytes) -> list[tuple[bytes, float]]:
        """Tokens and probabilities, the most probable first."""
        rng = random.Random(repr((self.seed, written)))
        weights = [(piece, math.exp(rng.gauss(0, 2))) for piece in self.vocabulary]
        if self.masked:
            weights = [(p, w) for p, w in weights if self.fits(written + p)]
        total = sum(weight for _, weight in weights)
        return sorted(((p, w / total) for p, w in weights), key=lambda found: -found[1])

    def by_enumeration(self) -> dict[str, float]:
        """The share of each label in all the token sequences that spell one."""
        reached = {b"": 1.0}
        for text in sorted({t[:n] for t in self.texts.values() for n in range(len(t))}, key=len):
            fitting = [(p, w) for p, w in self.following(text) if self.fits(text + p)]
            total = sum(weight for _, weight in fitting)
            for piece, weight in fitting:
                share = reached.get(text, 0.0) * weight / total
                reached[text + piece] = reached.get(text + piece, 0.0) + share
        return {option: reached.get(text, 0.0) for option, text in self.texts.items()}

    def listed(self, written: bytes, most: int) -> tuple[Token, ...]:
        return tuple(Token(p, math.log(w)) for p, w in self.following(written)[:most])

    def reply(self, most: int) -> list[Step]:
        """The greedy reply among those that fit, with the `most` probable tokens of each step."""
        before = Token(BEFORE, 0.0)
        steps, written = [Step(before, (before,))], b""
        while written not in self.texts.values():
            piece, weight = next(f for f in self.following(written) if self.fits(written + f[0]))
            steps.append(Step(Token(piece, math.log(weight)), self.listed(written, most)))
            written += piece
        return steps

    def read(self, steps: Sequence[Step], ask: module.Ask) -> LabelsRead:
        pieces = [step.written.piece for step in steps]
        return read_labels(b"".join(pieces).decode(), pieces, [LabelField("f", self.options)], ask)


MODELS = st.builds(Model, LABELS.map(tuple), st.integers(0, 10**6), st.booleans())


@settings(deadline=None, max_examples=50)
@given(MODELS)
def test_an_engine_that_can_be_asked_gives_what_enumeration_gives(model: Model) -> None:
    def ask(place: Place) -> Sequence[Token]:
        return model.listed(place.written, 10**6)

    with mock.patch.object(module, "_ENOUGH", 0.0), mock.patch.object(module, "_TOO_SMALL", 0.0):
        read = model.read(model.reply(1), ask)
    assert not read.problems
    expected = model.by_enumeration()
    for option, value in read.log_probabilities["f"].items():
        assert math.exp(value) == pytest.approx(expected[option], abs=1e-9)


@settings(deadline=None, max_examples=50)
@given(MODELS)
def test_what_is_not_explored_is_within_what_is_stated(model: Model) -> None:
    read = model.read(model.reply(1), lambda place: model.listed(place.written, 10**6))
    expected = model.by_enumeration()
    for option, value in read.log_probabilities["f"].items():
        assert math.exp(value) == pytest.approx(expected[option], abs=MOST_UNKNOWN)


@settings(deadline=None, max_examples=50)
@given(MODELS, st.integers(1, 30))
def test_a_recorded_reply_is_near_the_truth_or_left_out(model: Model, most: int) -> None:
    steps = model.reply(most)
    read = model.read(steps, recorded(steps))
    assert bool(read.problems) == (not read.log_probabilities)
    expected = model.by_enumeration()
    for option, value in read.log_probabilities.get("f", {}).items():
        assert math.exp(value) == pytest.approx(expected[option], abs=2 * MOST_UNKNOWN)


@settings(deadline=None, max_examples=50)
@given(MODELS, st.integers(1, 30))
def test_probabilities_come_to_one(model: Model, most: int) -> None:
    steps = model.reply(most)
    for values in model.read(steps, recorded(steps)).log_probabilities.values():
        assert set(values) == set(model.options)
        assert math.fsum(map(math.exp, values.values())) == pytest.approx(1)


def steps_of(*listings: dict[str, float]) -> list[Step]:
    """Steps from tables of probabilities; the first of each was written."""
    steps = []
    for listing in listings:
        tokens = tuple(Token(p.encode(), math.log(w)) for p, w in listing.items())
        steps.append(Step(tokens[0], tokens))
    return steps


def read(steps: list[Step], *fields: LabelField) -> LabelsRead:
    pieces = [step.written.piece for step in steps]
    return read_labels(b"".join(pieces).decode(), pieces, fields, recorded(steps))


YES_NO = LabelField("f", ("Yes", "No"))


def test_a_token_may_hold_the_quote_and_the_first_letters() -> None:
    found = read(steps_of({'{"f"': 1}, {': "Y': 0.6, ': "No': 0.4}, {'es"}': 1}), YES_NO)
    assert found.log_probabilities["f"] == pytest.approx(
        {"Yes": math.log(0.6), "No": math.log(0.4)}
    )


def test_space_before_the_label_is_no_choice_of_a_label() -> None:
    """Half of the probability is of another line break, which says nothing of the label."""
    steps = steps_of({'{"f":': 1}, {' "': 0.5, "\n": 0.5}, {"Yes": 0.9, "No": 0.1}, {'"}': 1})
    assert read(steps, YES_NO).log_probabilities["f"]["No"] == pytest.approx(math.log(0.1))


def test_a_label_that_begins_another_is_told_by_its_closing_quote() -> None:
    field = LabelField("f", ("No", "No harm"))
    steps = steps_of({'{"f":"': 1}, {"No": 1}, {" harm": 0.3, '"': 0.5, '"}': 0.2}, {'"}': 1})
    assert read(steps, field).log_probabilities["f"]["No"] == pytest.approx(math.log(0.7))


def test_tokens_may_end_within_a_character() -> None:
    dash = "–".encode()
    first = (Token(dash[:1], math.log(0.8)), Token(b"-", math.log(0.2)))
    steps = [
        *steps_of({'{"f":"': 1}),
        Step(first[0], first),
        *(Step(t, (t,)) for t in (Token(dash[1:], 0.0), Token(b'"}', 0.0))),
    ]
    found = read(steps, LabelField("f", ("–", "-")))
    assert found.log_probabilities["f"]["-"] == pytest.approx(math.log(0.2))


def test_escaped_letters_are_the_letters() -> None:
    steps = steps_of({'{"f":"': 1}, {"\\u2013": 0.75, "-": 0.25}, {'"}': 1})
    found = read(steps, LabelField("f", ("–", "-")))
    assert found.log_probabilities["f"]["–"] == pytest.approx(math.log(0.75))


def test_a_branch_not_taken_that_fits_two_labels_is_not_guessed() -> None:
    field = LabelField("f", ("No", "Yes little", "Yes great"))
    steps = steps_of({'{"f":"': 1}, {"No": 0.9, "Yes": 0.1}, {'"}': 1})
    found = read(steps, field)
    assert found.log_probabilities == {}
    assert found.reason == "f: 10% of the probability could be any label's"


def test_labels_whose_tokens_are_not_listed_are_bounded_by_the_least_that_is() -> None:
    listed = {"Yes": 0.9, **{f"x{i}": 1e-6 for i in range(18)}, "y": 1e-7}
    found = read(steps_of({'{"f":"': 1}, listed, {'"}': 1}), YES_NO)
    assert -16 < found.log_probabilities["f"]["No"] < -11
    few = read(steps_of({'{"f":"': 1}, {"Yes": 0.9, "x": 0.05}, {'"}': 1}), YES_NO)
    assert "could be any" in few.reason


def test_a_label_that_is_impossible_for_the_engine_has_a_finite_logarithm() -> None:
    steps = steps_of({'{"f":"': 1}, {"Yes": 1.0}, {'"}': 1})
    assert -90 < read(steps, YES_NO).log_probabilities["f"]["No"] < -80


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"f":"yes"}', "f: the reply holds none of the labels, letter by letter"),
        ('{"f":["Yes"]}', "f: the reply holds none"),
        ('{"g":"Yes"}', "f: is not written once"),
        ('{"f":"Yes","f":"No"}', "f: is not written once"),
        ('{"f":"Yes"', "no JSON object"),
        ("Yes", "no JSON object"),
    ],
)
def test_what_is_not_written_as_asked_is_left_out(text: str, reason: str) -> None:
    found = read(steps_of({text: 1}), YES_NO)
    assert found.log_probabilities == {}
    assert reason in found.reason


def test_tokens_that_do_not_spell_the_reply_are_told() -> None:
    steps = steps_of({'{"f":"No"}': 1})
    found = read_labels('{"f":"Yes"}', [b'{"f":"No"}'], [YES_NO], recorded(steps))
    assert found.reason == "the tokens do not spell the reply"


def test_thoughts_before_the_reply_are_passed_over() -> None:
    steps = steps_of({'{"f":"No"} or': 1}, {'{"f":"': 1}, {"No": 0.7, "Yes": 0.3}, {'"}': 1})
    pieces = [step.written.piece for step in steps]
    found = read_labels('{"f":"No"}', pieces, [YES_NO], recorded(steps))
    assert found.log_probabilities["f"]["Yes"] == pytest.approx(math.log(0.3))


def test_one_bad_field_spoils_no_other() -> None:
    fields = LabelField("a", ("x", "y")), LabelField("b", ("x", "y")), LabelField("c", ("x", "z"))
    steps = steps_of(
        {'{"a":"': 1}, {"x": 0.8, "y": 0.2}, {'","b":"': 1}, {"q": 1},
        {'","c":"': 1}, {"z": 0.6, "x": 0.4}, {'"}': 1},
    )  # fmt: skip
    found = read(steps, *fields)
    assert list(found.log_probabilities) == ["a", "c"]
    assert found.log_probabilities["c"]["x"] == pytest.approx(math.log(0.4))
    assert found.problems == ("b: the reply holds none of the labels, letter by letter",)


def test_several_independent_labels_are_refused_and_one_is_not() -> None:
    must_be_chained(LabelsAsked((YES_NO,), "independent"))
    must_be_chained(LabelsAsked((YES_NO, YES_NO), "chained"))
    with pytest.raises(SetupError, match="one metric a request"):
        must_be_chained(LabelsAsked((YES_NO, YES_NO), "independent"))
