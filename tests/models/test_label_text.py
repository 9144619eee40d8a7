import re

import pytest

from judgebench.errors import SetupError
from judgebench.models.contract import LabelField, LabelsAsked
from judgebench.models.weighing import CLOSE, ReplyTokens, label_texts

FIELDS = (LabelField("harm", ("none", "some")), LabelField("tone", ('so "so"', "ünwirsch")))
CONTROL = re.compile(r"<\|[a-z]+\|>")


class Words:
    """A tokenizer of words and runs of signs, which joins a quote with the signs behind it."""

    is_fast = True

    def __init__(self, *, numbers_by_place: bool = False) -> None:
        self._vocabulary: dict[str, int] = {}
        self._numbers_by_place = numbers_by_place
        self.read = 0  # characters

    def __len__(self) -> int:
        return len(self._vocabulary)

    def __call__(self, text: str, **_: bool) -> dict[str, list]:
        self.read += len(text)
        found = list(re.finditer(r"<\|[a-z]+\|>| ?\w+|[^\w\s<]+|\s|<", text))
        ids = [self._id(m.group() + str(m.start()) * self._numbers_by_place) for m in found]
        return {"input_ids": ids, "offset_mapping": [m.span() for m in found]}

    def _id(self, token: str) -> int:
        return self._vocabulary.setdefault(token, len(self._vocabulary))

    def decode(self, ids: list[int]) -> str:
        return "".join(list(self._vocabulary)[i] for i in ids)

    def batch_decode(self, rows: list[list[int]]) -> list[str]:
        return [self.decode(row) for row in rows]


class Encoder:
    """What is asked of a model's encoder: its tokenizer, and what a control token looks like."""

    control = CONTROL

    def __init__(self, tokenizer: Words) -> None:
        self.tokenizer = tokenizer

    def ids(self, text: str) -> list[int]:
        return list(self.tokenizer(text)["input_ids"])


def test_independent_labels_each_stand_first_in_a_reply_of_their_own() -> None:
    (texts,) = label_texts(LabelsAsked(FIELDS, "independent"), {})
    assert texts == [
        ['{"harm":"none"', '{"harm":"some"'],
        ['{"tone":"so \\"so\\""', '{"tone":"ünwirsch"'],
    ]


def test_chained_labels_stand_behind_the_likeliest_ones_before_them() -> None:
    found = {}
    rounds = label_texts(LabelsAsked(FIELDS, "chained"), found)
    assert next(rounds) == [['{"harm":"none"', '{"harm":"some"']]
    found["harm"] = [-2.0, -0.2]
    assert next(rounds)[0][1] == '{"harm":"some","tone":"ünwirsch"'
    found["tone"] = [0.0, -9.0]
    assert list(rounds) == []


def test_a_closing_quote_stands_for_every_token_that_begins_with_one() -> None:
    words = Words()
    tokens = ReplyTokens(Encoder(words))
    real = Encoder(words).ids('<|a|>hi<|b|>\n{"harm":"none","x')
    ((none, some),) = tokens.branches("<|a|>hi<|b|>\n", [['{"harm":"none"', '{"harm":"some"']])
    assert none[:-1] == some[:-2] + none[-2:-1] == real[: len(none) - 1]
    assert none[-1] == some[-1] == CLOSE
    joined = words.decode([real[len(none) - 1]])
    assert joined == '","'
    assert {words.decode([i]) for i in tokens.closing} == {'":"', '","', '"'}


def test_a_prompt_is_cut_at_its_last_control_token_and_the_rest_is_remembered() -> None:
    words = Words()
    tokens = ReplyTokens(Encoder(words))
    fields = [['{"harm":"none"', '{"harm":"some"']] * 4
    first = tokens.branches("<|a|>" + "one " * 50 + "<|b|>\n", fields)
    words.read = 0
    second = tokens.branches("<|a|>" + "two " * 50 + "<|b|>\n", fields)
    assert words.read == len("<|a|>" + "two " * 50), "only what stands before the cut is read"
    assert [len(ids) for field in second for ids in field] == [
        len(ids) for field in first for ids in field
    ]
    assert second == ReplyTokens(Encoder(words)).branches("<|a|>" + "two " * 50 + "<|b|>\n", fields)


@pytest.mark.parametrize("prompt", ["hi there\n", "<|a|>hi<|b|>\n"])
def test_where_cutting_changes_tokens_the_whole_text_is_read(prompt: str) -> None:
    """One has no control token to cut at; the other's tokenizer looks at where a word stands."""
    words = Words(numbers_by_place="<" in prompt)
    ((ids,),) = ReplyTokens(Encoder(words)).branches(prompt, [['{"harm":"none"']])
    assert ids[:-1] == words(prompt + '{"harm":"none"')["input_ids"][:-1]


def test_a_quote_joined_to_its_label_stays_as_it_is() -> None:
    words = Words()
    ((ids,),) = ReplyTokens(Encoder(words)).branches("<|a|>", [['{"harm":"!"']])
    assert words.decode(ids[-1:]) == '":"!"'


def test_a_tokenizer_that_does_not_tell_places_is_refused() -> None:
    words = Words()
    words.is_fast = False
    with pytest.raises(SetupError, match="cannot weigh labels"):
        ReplyTokens(Encoder(words))
