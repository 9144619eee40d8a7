import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebench.data.columns import quoted, to_csv, unquoted
from judgebench.results.write import safe


@given(st.text(alphabet="'=+-@\t\r\na b\u3000\uff1d\ufeff\u200b"))
def test_an_apostrophe_comes_off_as_it_went_on(text: str) -> None:
    cell = quoted(text)
    assert unquoted(cell) == text
    assert not cell.startswith(tuple("=+-@\t\r\n\uff1d"))
    assert not cell.strip(" \n\u3000\ufeff\u200b").startswith(tuple("=+-@\uff1d"))


@pytest.mark.parametrize(
    "text",
    ["\n=1+1", "\r\n=1+1", " =1+1", "\ufeff=1+1", "\uff1d1+1", "\uff0b1", "\u3000@SUM(1)", "'\n=1"],
)
def test_what_stands_before_a_formula_does_not_hide_it(text: str) -> None:
    assert quoted(text) == safe(text) == f"'{text}"


def test_every_cell_of_a_table_stands_in_quotes() -> None:
    table = to_csv(["a", "b"], [["1,2", 'say "x"\nthen y']])
    assert table.decode("utf-8-sig") == '"a","b"\n"1,2","say ""x""\nthen y"\n'
