from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from judgebench.data.spreadsheet import quoted, to_csv, unquoted


@given(st.text(alphabet="'=+-@\t\ra b"))
def test_an_apostrophe_comes_off_as_it_went_on(text: str) -> None:
    cell = quoted(text)
    assert unquoted(cell) == text
    assert not cell.startswith(tuple("=+-@\t\r"))


def test_every_cell_of_a_table_stands_in_quotes() -> None:
    table = to_csv(["a", "b"], [["1,2", 'say "x"\nthen y']])
    assert table.decode("utf-8-sig") == '"a","b"\n"1,2","say ""x""\nthen y"\n'
