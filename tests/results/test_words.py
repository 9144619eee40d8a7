from hypothesis import given
from hypothesis import strategies as st

from judgebench.text import printable, wrapped

texts = st.text(max_size=40)


@given(texts)
def test_printable_text_can_be_written_and_holds_no_control_character(text: str) -> None:
    shown = printable(text)
    shown.encode()
    assert len(shown) == len(text)
    assert all(c in "\t\n\r" or not (ord(c) < 32 or 127 <= ord(c) < 160) for c in shown)


@given(texts, st.integers(4, 30))
def test_wrapping_loses_nothing_but_space(text: str, width: int) -> None:
    def bare(t: str) -> str:
        return "".join(t.replace("\u200b", "").split())

    assert bare(wrapped(text, width)) == bare(printable(text))


def test_wide_characters_take_the_room_of_two() -> None:
    assert wrapped("语气与礼貌程度", 8) == "语气与礼\n貌程度"
    assert wrapped("tone and manners", 8) == "tone and\nmanners"


def test_a_name_is_cut_after_its_signs_and_not_within_a_word() -> None:
    assert (
        wrapped("detected: Inappropriate/Incorrect", 14) == "detected:\nInappropriate/\nIncorrect"
    )
    assert wrapped("meta-llama/Llama-3-70b", 12) == "meta-llama/\nLlama-3-70b"
    assert wrapped("worst 0.625, mean -0.890", 20) == "worst 0.625, mean\n-0.890"
    assert wrapped("abcdefgh", 3) == "abc\ndef\ngh"
