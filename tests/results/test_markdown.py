import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from part_case import hostile_part, make_part

from judgebench.alignment import Alignment
from judgebench.results.blocks import ReportSection, blocks_of
from judgebench.results.documents import escape_markdown, to_markdown
from judgebench.results.tables import Table
from judgebench.text import printable

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
SUP = re.compile(r"</?sup>")
MARKUP = "\\`*_{}[]()<>#+-.!|~$&\"'@=:/ \n\t0aé中"


def one_line(text: str) -> str:
    return " ".join(printable(text).split())


def tokens(markdown: str) -> list[Token]:
    return [t for block in READER.parse(markdown) for t in (block, *(block.children or []))]


def test_the_report_says_first_what_was_judged() -> None:
    facts = ("66 answers", "2026-11-22")
    text = to_markdown([replace(make_part(), facts=facts)], "study")
    head, _ = text.split("## First of all")
    assert "- 66 answers\n- 2026-11-22\n" in head


@given(st.text(alphabet=MARKUP, max_size=30) | st.text(max_size=30))
def test_escaped_text_in_a_cell_is_read_as_that_text(text: str) -> None:
    found = READER.parse(f"| a | b |\n| --- | --- |\n| x{escape_markdown(text)}y | z |\n")
    inline = [token for token in found if token.type == "inline"]
    assert len(inline) == 4
    assert {child.type for child in inline[2].children or []} <= {"text", "text_special"}
    shown = "".join(child.content for child in inline[2].children or [])
    assert shown == f"x{one_line(text)}y"


def tables_of(*parts: ReportSection) -> list[Table]:
    return [t for lead in (True, False) for b in blocks_of(parts, lead=lead) for t in b.tables]


def check(markdown: str, tables: list[Table]) -> None:
    """The only markup is the report's own, and every table is read as one of its shape."""
    found = tokens(markdown)
    kinds = {token.type for token in found}
    assert not kinds & {"html_block", "link_open", "em_open", "code_inline", "fence", "image"}
    assert all(SUP.fullmatch(t.content) for t in found if t.type == "html_inline")
    assert sum(token.type == "table_open" for token in found) == len(tables)
    cells = sum(token.type in ("td_open", "th_open") for token in found)
    assert cells == sum(len(t.columns) * (len(t.rows) + 1) for t in tables)


def test_a_report_holds_no_markup_but_its_own() -> None:
    parts = (hostile_part(), hostile_part("stress"))
    check(to_markdown(parts, "<b>x</b>"), tables_of(*parts))


def test_every_table_of_an_alignment_is_read_as_a_table_of_its_shape(alignment: Alignment) -> None:
    check(to_markdown([alignment.part], alignment.name), tables_of(alignment.part))


def test_every_number_stands_with_what_it_rests_on() -> None:
    markdown = to_markdown([make_part()], "study")
    assert "| 0.500 [0.400, 0.600] | –<sup>a</sup> | 0.250 [0.150, 0.350] |" in markdown
    assert "Unless a mark says otherwise: n = 10, 0 missing; 95 % interval: bootstrap." in markdown
    assert "<sup>a</sup> undefined: no item has a reference label; n = 3, 1 missing" in markdown
