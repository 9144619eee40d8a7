import re

from judgebench.models.contract import LabelField, LabelsAsked
from judgebench.models.token_scoring import CLOSE, ReplyTokens, label_texts

FIELDS = (LabelField("harm", ("none", "some")), LabelField("tone", ('so "so"', "ünwirsch")))


class Words:
    """A tokenizer of words and runs of signs, which joins a quote with the signs behind it."""

    def __init__(self) -> None:
        self._vocabulary: dict[str, int] = {}

    def __call__(self, texts: list[str], **_: bool) -> dict[str, list]:
        words = [list(re.finditer(r"<\|[a-z]+\|>| ?\w+|[^\w\s<]+|\s|<", t)) for t in texts]
        return {
            "input_ids": [
                [self._vocabulary.setdefault(m.group(), len(self._vocabulary)) for m in row]
                for row in words
            ],
            "offset_mapping": [[m.span() for m in row] for row in words],
        }

    def get_vocab(self) -> dict[str, int]:
        return self._vocabulary

    def decode(self, ids: list[int]) -> str:
        return "".join(list(self._vocabulary)[i] for i in ids)


class Encoder:
    """What is asked of a model's encoder."""

    def __init__(self, tokenizer: Words) -> None:
        self.tokenizer = tokenizer

    def ids(self, text: str) -> list[int]:
        return list(self.tokenizer([text])["input_ids"][0])


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


def test_a_quote_joined_to_its_label_stays_as_it_is() -> None:
    words = Words()
    ((ids,),) = ReplyTokens(Encoder(words)).branches("<|a|>", [['{"harm":"!"']])
    assert words.decode(ids[-1:]) == '":"!"'
