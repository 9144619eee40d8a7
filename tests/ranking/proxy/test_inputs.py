"""What is cut of an input, and in which order; a tokenizer of one token a word stands in."""

from hypothesis import given
from hypothesis import strategies as st

from judgebench.ranking.examples import (
    OPTION_FLOOR,
    TEXT_FLOOR,
    InputMaker,
    Lengths,
    Second,
    fit,
    second_in_test,
    second_in_training,
)
from judgebench.ranking.task import TaskInstance

some = st.integers(0, 300)
lengths = st.builds(
    Lengths, some, st.lists(st.integers(0, 60), max_size=6).map(tuple), st.integers(0, 600)
)


def total(lengths: Lengths) -> int:
    return lengths.text + sum(lengths.options) + lengths.second


class Words:
    """A tokenizer of one token a word: 0 opens, 1 stands between, 2 ends."""

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}
        self.calls = 0

    def __call__(self, texts, second=None, *, add_special_tokens=True, **how):  # type: ignore[no-untyped-def]
        if not add_special_tokens:
            self.calls += 1
            return {"input_ids": [[self._id(w) for w in text.split()] for text in texts]}
        return _Framed(second is not None)

    def _id(self, word: str) -> int:
        return self.seen.setdefault(word, len(self.seen) + 3)

    def words(self, ids: list[int]) -> str:
        names = {0: "<", 1: "|", 2: ">", **{n: w for w, n in self.seen.items()}}
        return " ".join(names[i] for i in ids)


class _Framed(dict):  # type: ignore[type-arg]
    def __init__(self, paired: bool) -> None:
        ids = [0, 9, 1, 9, 2] if paired else [0, 9, 2]
        super().__init__(input_ids=ids, token_type_ids=[0, 0, 0, 1, 1] if paired else [0, 0, 0])
        self._places = [None, 0, None, 1, None] if paired else [None, 0, None]

    def sequence_ids(self, batch: int) -> list[int | None]:
        return self._places


def claim(text: str = "is it so", context: str = "", **more: object) -> TaskInstance:
    return TaskInstance("i", text, "1", "it is", "train", context=context, **more)  # type: ignore[arg-type]


@given(lengths, st.integers(8, 600), st.booleans())
def test_what_is_kept_fits(full: Lengths, room: int, cut_second_first: bool) -> None:
    kept = fit(full, room, cut_second_first=cut_second_first)
    assert total(kept) <= room
    assert kept.text <= full.text
    assert kept.second <= full.second
    assert all(k <= f for k, f in zip(kept.options, full.options, strict=True))
    if total(full) <= room:
        assert kept == full
    else:
        assert total(kept) == room or total(kept) < room < total(full)


@given(lengths, st.integers(128, 600))
def test_an_argument_is_cut_last(full: Lengths, room: int) -> None:
    kept = fit(full, room)
    if kept.second < full.second:
        assert kept.text <= TEXT_FLOOR
        assert all(option <= OPTION_FLOOR for option in kept.options)
    if kept.options != full.options:
        assert kept.text <= TEXT_FLOOR


@given(lengths, st.integers(128, 600))
def test_a_context_is_gone_before_the_text_loses_a_token(full: Lengths, room: int) -> None:
    kept = fit(full, room, cut_second_first=True)
    if kept.text < full.text:
        assert kept.second == 0


def test_an_input_is_the_text_its_options_and_the_argument() -> None:
    words = Words()
    maker = InputMaker(words, 64)
    instance = claim("which one", options=("rest", "more tea"))
    (one,) = maker.make([instance], [Second("drink more")])
    assert words.words(one.ids) == "< which one 1. rest 2. more tea | drink more >"
    assert one.types == [0] * 8 + [0] + [1] * 3
    assert [words.words(one.ids[a:b]) for a, b in one.options] == ["1. rest", "2. more tea"]
    assert not one.cut


def test_the_text_loses_its_middle_and_the_argument_its_tail() -> None:
    words = Words()
    maker = InputMaker(words, 16)
    text = " ".join(f"t{n}" for n in range(20))
    argument = " ".join(f"a{n}" for n in range(20))
    (long, short) = maker.make([claim(text)] * 2, [Second(argument), Second("a0 a1 a2")])
    assert words.words(long.ids) == "< t0 t1 t2 t17 t18 t19 | a0 a1 a2 a3 a4 a5 a6 >"
    assert words.words(short.ids) == "< t0 t1 t2 t3 t4 t15 t16 t17 t18 t19 | a0 a1 a2 >"
    assert long.cut
    assert short.cut


def test_a_context_loses_its_tail_and_is_no_argument() -> None:
    words = Words()
    (one,) = InputMaker(words, 8).make([claim()], [Second("c0 c1 c2 c3 c4", is_argument=False)])
    assert words.words(one.ids) == "< is it so | c0 c1 >"
    assert one.cut


def test_a_baseline_is_trained_on_the_context_and_the_others_on_arguments() -> None:
    instance = claim(context="the trial")
    assert second_in_training("baseline", instance, "it is") == Second("the trial", False)
    assert second_in_training("llm-trained", instance, "it is") == Second("it is")


def test_in_the_test_all_read_the_argument_and_a_baseline_without_one_its_context() -> None:
    instance = claim(context="the trial")
    for kind in ("baseline", "expert-trained", "llm-trained"):
        assert second_in_test(kind, instance, "it is") == Second("it is")
    assert second_in_test("baseline", instance, " ") == Second("the trial", False)
    assert second_in_test("expert-trained", instance, " ") == Second("")
