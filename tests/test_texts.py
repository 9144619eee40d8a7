from hypothesis import given
from hypothesis import strategies as st

from judgebench.text import passages_of

prose = st.text(alphabet="ab. \n\t-é", max_size=200)


@given(prose, st.integers(1, 40))
def test_passages_keep_every_character_within_their_length(text: str, characters: int) -> None:
    passages = passages_of(text, characters)
    assert all(0 < len(passage) <= characters for passage in passages)
    assert "".join("".join(passages).split()) == "".join(text.split())


@given(st.lists(st.text(alphabet="ab.", min_size=1, max_size=10)), st.integers(10, 40))
def test_no_word_is_cut_that_fits(cut: list[str], characters: int) -> None:
    assert " ".join(passages_of(" ".join(cut), characters)).split() == cut


def test_a_cut_falls_between_sentences_where_it_can() -> None:
    text = "One two three. Four five six. Seven eight nine ten eleven twelve."
    assert passages_of(text, 30) == [
        "One two three. Four five six.",
        "Seven eight nine ten eleven",
        "twelve.",
    ]
