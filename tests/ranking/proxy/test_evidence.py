import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from judgebench.ranking.task import verbatim_share

TRIAL = """INCLUSION CRITERIA:
  Age greater than or equal to 18.5 years.
  - No prior “systemic” therapy — except tamoxifen.
  1. ECOG performance status 0–1
  Patients gave consent. They were followed for 12 months."""


@pytest.mark.parametrize(
    "extract",
    [
        "Age greater than or equal to 18.5 years.",
        "age greater   than\tor equal to 18.5 years",  # case, white space, the last mark
        '* No prior "systemic" therapy - except tamoxifen',  # quotes, dashes, bullets
        "• **No prior 'systemic' therapy** – except tamoxifen;",
        "ECOG performance status 0-1",
        "3) ECOG performance status 0-1",  # the model's own numbers
        "1. ECOG performance status 0–1 Patients gave consent.",  # two lines as one
        "Age greater than or equal to 18.5 years. ** They were followed for 12 months.",
        "They were followed for 12 months. Patients gave consent.",  # sentences in another order
        '"Patients gave consent."',
    ],
)
def test_what_is_copied_counts_however_it_is_marked(extract: str) -> None:
    assert verbatim_share(extract, TRIAL) == 1.0


@pytest.mark.parametrize(
    "extract",
    [
        "Age greater than or equal to 18 years.",
        "equal to 18",  # a part of the number 18.5
        "up for 12 months",
        "No prior system",  # a part of a word
        "They were not followed for 12 months.",
    ],
)
def test_a_changed_word_or_number_is_not_in_the_document(extract: str) -> None:
    assert verbatim_share(extract, TRIAL) == 0.0


def test_the_share_goes_by_length() -> None:
    extract = "- Patients gave consent. It was fun.\nAll were healed!"
    # "patients gave consent" has 21 characters, "it was fun" 10 and "all were healed" 15.
    assert verbatim_share(extract, TRIAL) == pytest.approx(21 / 46)


@pytest.mark.parametrize("extract", ["", " \n", "**", "- \n * ** ...", "—"])
def test_nothing_extracted_has_no_share(extract: str) -> None:
    assert verbatim_share(extract, TRIAL) is None


def test_nothing_stands_in_an_empty_document() -> None:
    assert verbatim_share("Patients gave consent.", "") == 0.0


lines = st.lists(
    st.text(alphabet='aB1 .,;*-–•"’()%≥é\tﬁ¨', min_size=1, max_size=30), min_size=1, max_size=6
)
separators = st.sampled_from(["\n", " ** ", "\n\n", "\n- "])


@given(lines, st.data())
def test_any_lines_of_the_document_are_all_verbatim(held: list[str], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(held), min_size=1))
    extract = data.draw(separators).join(chosen)
    assert verbatim_share(extract, "\n".join(held)) in (1.0, None)


@given(lines, lines, st.data())
def test_the_share_rises_and_falls_with_what_is_added(held, extract, data) -> None:
    document, text = "\n".join(held), "\n".join(extract)
    share = verbatim_share(text, document)
    assume(share is not None)
    more = verbatim_share(f"{text}\n{data.draw(st.sampled_from(held))}", document)
    less = verbatim_share(f"{text}\nxyzzy", document)
    assert more is not None
    assert less is not None
    assert less < share <= more or (less == share == 0.0 <= more)


@given(lines, lines, lines)
def test_a_longer_document_never_lowers_the_share(held, added, extract) -> None:
    text = "\n".join(extract)
    share = verbatim_share(text, "\n".join(held))
    longer = verbatim_share(text, "\n".join([*held, *added]))
    assert (share is None) == (longer is None)
    assert share is None or longer is None or longer >= share
