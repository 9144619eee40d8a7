from __future__ import annotations

import html
import re

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from stress_report_case import alone, hostile_stress, make_stress

from judgebench.align import Alignment
from judgebench.report.old.contents import NO_LABELS, shown_tables
from judgebench.report.old.markdown import escape, to_markdown
from judgebench.report.tables import all_tables
from judgebench.report.words import printable

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
SUP = re.compile(r"</?sup>")
MARKUP = "\\`*_{}[]()<>#+-.!|~$&\"'@=:/ \n\t0aé中"


def one_line(text: str) -> str:
    return " ".join(printable(text).split())


def tokens(markdown: str) -> list[Token]:
    return [t for block in READER.parse(markdown) for t in (block, *(block.children or []))]


@given(st.text(alphabet=MARKUP, max_size=30) | st.text(max_size=30))
def test_escaped_text_in_a_cell_is_read_as_that_text(text: str) -> None:
    found = READER.parse(f"| a | b |\n| --- | --- |\n| x{escape(text)}y | z |\n")
    inline = [token for token in found if token.type == "inline"]
    assert len(inline) == 4
    assert {child.type for child in inline[2].children or []} <= {"text", "text_special"}
    shown = "".join(child.content for child in inline[2].children or [])
    assert shown == f"x{one_line(text)}y"


def test_a_report_holds_no_markup_but_its_own(hostile: Alignment) -> None:
    markdown = to_markdown(hostile)
    kinds = {token.type for token in tokens(markdown)}
    assert not kinds & {"html_block", "link_open", "em_open", "code_inline", "fence", "image"}
    inline_html = [token.content for token in tokens(markdown) if token.type == "html_inline"]
    assert all(SUP.fullmatch(tag) for tag in inline_html)


def test_every_table_is_read_as_a_table_of_its_shape(alignment: Alignment) -> None:
    found = tokens(to_markdown(alignment))
    expected = all_tables(alignment)
    assert sum(token.type == "table_open" for token in found) == len(expected)
    cells = sum(token.type in ("td_open", "th_open") for token in found)
    assert cells == sum(len(t.columns) * (len(t.rows) + 1) for t in expected)


def test_notes_are_told_first_and_word_for_word(hostile: Alignment, realistic: Alignment) -> None:
    lines = to_markdown(hostile).split("\n")
    assert lines.index("## Caveats") < lines.index("## What was compared")
    assert [html.unescape(line) for line in lines[4:6]] == ["- <b>bold</b>", "- 1\\. one"]
    assert "no clinical weight" in to_markdown(realistic).split("## What was compared")[0]


def test_a_stress_test_stands_before_an_unchanged_alignment(realistic: Alignment) -> None:
    plain, both = to_markdown(realistic), to_markdown(realistic, make_stress())
    tables = plain[plain.index("## Where each judge stands on accuracy") :]
    assert both.endswith(tables)
    assert "## How each judge fares in the stress test" in both.removesuffix(tables)
    assert "stress" not in plain
    assert "a tiny model: a demonstration" in both.split("## What was compared")[0]


def test_without_human_labels_one_line_takes_the_place_of_the_tables() -> None:
    markdown = to_markdown(alone(), make_stress())
    assert f"- {NO_LABELS}" in markdown
    assert markdown.startswith("# alone: judges under stress\n")
    assert all(table.key.startswith("stress_") for table in shown_tables(alone(), make_stress()))


def test_a_hostile_stress_test_holds_no_markup_but_its_own() -> None:
    found = tokens(to_markdown(alone(), hostile_stress()))
    expected = shown_tables(alone(), hostile_stress())
    assert not {t.type for t in found} & {"html_block", "link_open", "em_open", "code_inline"}
    assert all(SUP.fullmatch(t.content) for t in found if t.type == "html_inline")
    assert sum(t.type == "table_open" for t in found) == len(expected)
    cells = sum(t.type in ("td_open", "th_open") for t in found)
    assert cells == sum(len(t.columns) * (len(t.rows) + 1) for t in expected)
