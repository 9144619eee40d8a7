r"""The tables as LaTeX that pastes into a paper: booktabs is all they need.

Wide tables are cut into blocks of columns and long ones into several floats, so that they fit the
text width and height of a plain `article`. Works with pdflatex: letters and signs that it cannot
set without further packages are written as commands, and what is left as `[U+4E2D]`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace

from judgebench.align import Alignment
from judgebench.decide.result import Decisions
from judgebench.ranking.rankings import Rankings
from judgebench.report.old.contents import (
    NO_LABELS,
    compared_sentences,
    shown_tables,
    shows_alignment,
)
from judgebench.report.words import printable
from judgebench.results.tables import Cell, Footnotes, Table, footnotes, split_columns
from judgebench.stress.result import StressResult

_HEAD = r"""% Made by judgebench. Needs \usepackage{booktabs} in the preamble and nothing else.
"""

_SPECIAL = {
    "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\texttt{\char34}",
    "'": "{'}", "`": r"\`{}",
    "–": r"\textendash{}", "—": r"\textemdash{}", "‐": "{-}", "‑": "{-}", "−": r"\ensuremath{-}",
    "…": r"\ldots{}", "‘": r"\textquoteleft{}", "’": r"\textquoteright{}",
    "“": r"\textquotedblleft{}", "”": r"\textquotedblright{}",
    "«": r"\ensuremath{\ll}", "»": r"\ensuremath{\gg}",
    "•": r"\textbullet{}", "·": r"\textperiodcentered{}", "§": r"\S{}", "°": r"\r{}",
    "©": r"\textcopyright{}", "®": r"\textregistered{}", "™": r"\texttrademark{}",
    "€": r"\texteuro{}", "£": r"\pounds{}", "×": r"\ensuremath{\times}",
    "±": r"\ensuremath{\pm}", "≤": r"\ensuremath{\leq}", "≥": r"\ensuremath{\geq}",
    "≠": r"\ensuremath{\neq}", "≈": r"\ensuremath{\approx}", "→": r"\ensuremath{\rightarrow}",
    "←": r"\ensuremath{\leftarrow}", "∞": r"\ensuremath{\infty}", "µ": r"\ensuremath{\mu}",
    "ß": r"\ss{}", "æ": r"\ae{}", "Æ": r"\AE{}", "œ": r"\oe{}", "Œ": r"\OE{}",
    "ø": r"\o{}", "Ø": r"\O{}", "ł": r"\l{}", "Ł": r"\L{}", "ı": r"\i{}",
    "¿": r"\textquestiondown{}", "¡": r"\textexclamdown{}",
    "🥇": "1st", "🥈": "2nd", "🥉": "3rd",
}  # fmt: skip
_GREEK = "αβγδεζηθικλμνξπρςστυφχψωΓΔΘΛΞΠΣΥΦΨΩ"  # the letters that mathematics has a command for
_ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u",
    "\u0307": ".", "\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0323": "d",
    "\u0327": "c",
}  # fmt: skip
"""Combining marks that the default font encoding can set over or under any letter."""

# In millimetres, for the text of a plain article at 10 pt.
_TEXT_WIDTH = 121
_GAP = 2
_STUB_WIDTH = {1: 24, 2: 22}
_LINES_A_FLOAT = 50
_FLOATS_BEFORE_FLUSH = 12


def to_latex(
    alignment: Alignment,
    stress: StressResult | None = None,
    decisions: Decisions | None = None,
    rankings: Rankings | None = None,
) -> str:
    """Every table of the report, each in its own float or floats."""
    tables = shown_tables(alignment, stress, decisions, rankings)
    floats = [text for table in tables for text in _floats(table)]
    parts = [_HEAD]
    if compared_sentences(alignment, rankings) and not shows_alignment(alignment, stress, rankings):
        parts.append(f"{NO_LABELS}\n")
    if decisions is not None:
        parts.append(f"{escape(' '.join(decisions.rule.in_words()))}\n")
    for i, text in enumerate(floats):
        if i and i % _FLOATS_BEFORE_FLUSH == 0:
            parts.append("\\clearpage % LaTeX can hold back only so many floats\n")
        parts.append(text)
    return "\n".join(parts)


def escape(text: str) -> str:
    """`text` on one line, as LaTeX that prints it as it is."""
    line = unicodedata.normalize("NFC", " ".join(printable(text).split()))
    return "".join(_pieces(line)).replace("--", "-{}-").replace("--", "-{}-")


def _pieces(text: str) -> Iterator[str]:
    for character in text:
        if character in _SPECIAL:
            yield _SPECIAL[character]
        elif character.isascii():
            yield character
        else:
            yield _greek(character) or _accented(character) or f"[U+{ord(character):04X}]"


def _greek(character: str) -> str:
    """`α` as a command of mathematics; empty for other characters."""
    if character not in _GREEK:
        return ""
    name = unicodedata.name(character).rsplit(" ", 1)[-1].lower()
    name = {"lamda": "lambda"}.get(name, name)
    command = "varsigma" if character == "ς" else name if character.islower() else name.title()
    return rf"\ensuremath{{\{command}}}"


def _accented(character: str) -> str:
    """`é` as `\\'{e}`, where the base is a letter of ASCII with one known accent."""
    parts = unicodedata.normalize("NFD", character)
    if len(parts) != 2 or not parts[0].isascii() or parts[1] not in _ACCENTS:
        return ""
    base = rf"\{parts[0]}" if parts[0] in "ij" and parts[1] != "\u0323" else parts[0]
    return f"\\{_ACCENTS[parts[1]]}{{{base}}}"


# --- floats ------------------------------------------------------------------------------------


def _floats(table: Table) -> Iterator[str]:
    """A table as one float or more, none taller than a page, and its notes."""
    notes = footnotes(table)
    stub, value = _STUB_WIDTH[table.stubs], _value_width(table)
    room = _TEXT_WIDTH - table.stubs * (stub + _GAP)
    blocks = split_columns(table, max(1, room // (value + _GAP)))
    pages = _pages([piece for block in blocks for piece in _pieces_of(block, stub, value)])
    for number, (pieces, height) in enumerate(pages, start=1):
        tabulars = [_tabular(piece, notes, stub, value) for piece in pieces]
        under, after = "", ""
        if number == len(pages) and (text := _notes(table, notes)):
            fits = height + len(text) / 120 <= _LINES_A_FLOAT
            under, after = (text, "") if fits else ("", text)
        yield _float(table, tabulars, under, first=number == 1)
        if after:
            where = rf"Notes to Table~\ref{{{_label(table)}}}. "
            yield f"\\par\\medskip\\noindent{{\\scriptsize {where}{after}\\par}}\n"


def _value_width(table: Table) -> int:
    cells = [cell for row in table.rows for cell in row if cell.interval]
    if not cells:
        words = [cell for row in table.rows for cell in row[table.stubs :] if cell.remark]
        return 17 if words else 15  # a mark beside a word takes room too
    return 20 if max(len(cell.interval) for cell in cells) > len("[0.774, 0.850]") else 17


def _pieces_of(block: Table, stub: int, value: int) -> Iterator[tuple[Table, float]]:
    """Runs of rows that fit a page, each with its height in lines."""
    head = 1.5 + max(_lines(c, value) for c in block.columns)
    rows: list[tuple[Cell, ...]] = []
    height = head
    for row in block.rows:
        lines = 0.25 + max(_cell_lines(c, stub if i < block.stubs else value)
                           for i, c in enumerate(row))  # fmt: skip
        if rows and height + lines > _LINES_A_FLOAT:
            yield replace(block, rows=tuple(rows)), height
            rows, height = [], head
        rows.append(row)
        height += lines
    yield replace(block, rows=tuple(rows)), height


def _pages(pieces: Sequence[tuple[Table, float]]) -> list[tuple[list[Table], float]]:
    """As many pieces on a page as there is room for, in their order, with their height."""
    pages: list[tuple[list[Table], float]] = []
    for piece, height in pieces:
        if pages and pages[-1][1] + height <= _LINES_A_FLOAT:
            pages[-1] = ([*pages[-1][0], piece], pages[-1][1] + height)
        else:
            pages.append(([piece], height))
    return pages


def _cell_lines(cell: Cell, width: int) -> int:
    return 2 if cell.interval else _lines(cell.value, width)


def _lines(text: str, width: int) -> int:
    """How many lines a text takes in that many millimetres, rather too many than too few."""
    return -(-len(text) * 2 // width) or 1


def _label(table: Table) -> str:
    return f"tab:judgebench-{table.key.replace('_', '-')}"


def _float(table: Table, tabulars: Sequence[str], notes: str, *, first: bool) -> str:
    caption = escape(table.title) + ("" if first else " (continued)")
    label = rf"\label{{{_label(table)}}}" if first else ""
    return "\n".join(
        [
            r"\begin{table}[htbp]",
            r"\centering\footnotesize\setlength{\tabcolsep}{1mm}",
            rf"\caption{{{caption}}}{label}",
            "\n\\par\\medskip\n".join(tabulars),
            *([rf"\par\smallskip{{\raggedright\scriptsize {notes}\par}}"] if notes else []),
            "\\end{table}\n",
        ]
    )


def _tabular(table: Table, notes: Footnotes, stub: int, value: int) -> str:
    values = len(table.columns) - table.stubs
    widths = f"*{{{table.stubs}}}{{p{{{stub}mm}}}}*{{{values}}}{{p{{{value}mm}}}}"
    head = [_heading(c, i < table.stubs) for i, c in enumerate(table.columns)]
    body = [
        " & ".join(_cell(c, notes.mark(c), i < table.stubs) for i, c in enumerate(row))
        for row in table.rows
    ]
    rows = "\\addlinespace[2pt]\n".join(f"{line} \\tabularnewline\n" for line in body)
    return (
        f"\\begin{{tabular}}{{@{{}}{widths}@{{}}}}\n\\toprule\n{' & '.join(head)} "
        f"\\tabularnewline\n\\midrule\n{rows}\\bottomrule\n\\end{{tabular}}"
    )


def _heading(text: str, stub: bool) -> str:
    return rf"{_side(stub)}\scriptsize {_breakable(text)}"


def _cell(cell: Cell, mark: str, stub: bool) -> str:
    raised = rf"\textsuperscript{{{mark}}}" if mark else ""
    interval = rf"\newline\scriptsize {escape(cell.interval)}" if cell.interval else ""
    shown = _breakable(cell.value)
    shown = rf"\textbf{{{shown}}}" if cell.best else shown
    return f"{_side(stub)} {shown}{raised}{interval}"


def _side(stub: bool) -> str:
    """Both redefine `\\\\`, which is why rows end in `\\tabularnewline`."""
    return r"\raggedright" if stub else r"\centering"


def _breakable(text: str) -> str:
    """Escaped text that may break after the signs in a model's name, and inside endless words."""
    parts = re.split(r"(?<=[/:_.@-])(?=\w)", text)
    broken = [r"\penalty500{}".join(map(escape, re.split(_LONG_WORD, part))) for part in parts]
    return r"\hspace{0pt}" + r"\penalty50{}".join(broken)


_LONG_WORD = re.compile(r"(?<=\w{8})(?=\w{2})")


def _notes(table: Table, notes: Footnotes) -> str:
    sentences = [escape(sentence) for sentence in notes.sentences(table)]
    marked = [rf"\textsuperscript{{{m}}}~{escape(t)}." for t, m in notes.marks.items()]
    return " ".join([*sentences, *marked])
