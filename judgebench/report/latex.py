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
from judgebench.report.tables import (
    Cell,
    Footnotes,
    Table,
    all_tables,
    footnotes,
    printable,
    split_columns,
)

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
    "•": r"\textbullet{}", "·": r"\textperiodcentered{}", "§": r"\S{}", "°": r"\ensuremath{^\circ}",
    "©": r"\textcopyright{}", "®": r"\textregistered{}", "™": r"\texttrademark{}",
    "€": r"\texteuro{}", "£": r"\pounds{}", "×": r"\ensuremath{\times}",
    "±": r"\ensuremath{\pm}", "≤": r"\ensuremath{\leq}", "≥": r"\ensuremath{\geq}",
    "≠": r"\ensuremath{\neq}", "≈": r"\ensuremath{\approx}", "→": r"\ensuremath{\rightarrow}",
    "←": r"\ensuremath{\leftarrow}", "∞": r"\ensuremath{\infty}", "µ": r"\ensuremath{\mu}",
    "ß": r"\ss{}", "æ": r"\ae{}", "Æ": r"\AE{}", "œ": r"\oe{}", "Œ": r"\OE{}",
    "ø": r"\o{}", "Ø": r"\O{}", "ł": r"\l{}", "Ł": r"\L{}", "ı": r"\i{}", "¿": r"?`{}",
    "¡": r"!`{}",
}  # fmt: skip
_GREEK = "αβγδεζηθικλμνξπρςστυφχψωΓΔΘΛΞΠΣΥΦΨΩ"  # the letters that mathematics has a command for
_ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u",
    "\u0307": ".", "\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0323": "d",
    "\u0327": "c",
}  # fmt: skip
"""Combining marks that the default font encoding can set over or under any letter."""

# In millimetres, for the 121 mm of text of a plain article at 10 pt with 1 mm between columns.
_TEXT_WIDTH = 121
_GAP = 2
_STUB_WIDTH = {1: 30, 2: 26}
_VALUE_WIDTH = 16
_LINES_A_FLOAT = 44
_FLOATS_BEFORE_FLUSH = 12


def to_latex(alignment: Alignment) -> str:
    """Every table of the report, each in its own float or floats."""
    floats = [text for table in all_tables(alignment) for text in _floats(table)]
    parts = [_HEAD]
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
    notes = footnotes(table)
    room = _TEXT_WIDTH - table.stubs * (_STUB_WIDTH[table.stubs] + _GAP)
    blocks = split_columns(table, max(1, room // (_VALUE_WIDTH + _GAP)))
    lines_a_row = 2 * len(blocks)
    rows_a_float = max(4, _LINES_A_FLOAT // lines_a_row)
    starts = range(0, len(table.rows), rows_a_float)
    for start in starts:
        chunks = [replace(b, rows=b.rows[start : start + rows_a_float]) for b in blocks]
        yield _float(table, chunks, notes, first=start == 0, last=start == starts[-1])


def _float(
    table: Table, blocks: Sequence[Table], notes: Footnotes, *, first: bool, last: bool
) -> str:
    caption = escape(table.title) + ("" if first else " (continued)")
    lines = [r"\begin{table}[htbp]", r"\centering\footnotesize", r"\setlength{\tabcolsep}{1mm}"]
    lines.append(rf"\caption{{{caption}}}")
    if first:
        lines.append(rf"\label{{tab:judgebench-{table.key.replace('_', '-')}}}")
    tabulars = [_tabular(block, notes) for block in blocks]
    lines.append("\n\\par\\medskip\n".join(tabulars))
    if last:
        lines += _notes(table, notes)
    return "\n".join([*lines, "\\end{table}", ""])


def _tabular(table: Table, notes: Footnotes) -> str:
    stub, values = _STUB_WIDTH[table.stubs], len(table.columns) - table.stubs
    widths = f"*{{{table.stubs}}}{{p{{{stub}mm}}}}*{{{values}}}{{p{{{_VALUE_WIDTH}mm}}}}"
    head = [_heading(c, i < table.stubs) for i, c in enumerate(table.columns)]
    body = [
        " & ".join(_cell(c, notes.mark(c), i < table.stubs) for i, c in enumerate(row))
        for row in table.rows
    ]
    rows = "".join(f"{line} \\\\\n" for line in body)
    return (
        f"\\begin{{tabular}}{{@{{}}{widths}@{{}}}}\n\\toprule\n{' & '.join(head)} \\\\\n"
        f"\\midrule\n{rows}\\bottomrule\n\\end{{tabular}}"
    )


def _heading(text: str, stub: bool) -> str:
    """A heading that may break after the signs inside a model's name."""
    side = r"\raggedright" if stub else r"\centering"
    return f"{{{side}\\scriptsize {_breakable(text)}\\par}}"


def _breakable(text: str) -> str:
    """Escaped text that may break after the signs in a model's name and inside endless words."""
    pieces = re.split(r"(?<=[/:_.@-])(?=\w)|(?<=\w{12})(?=\w{3})", text)
    return r"\hspace{0pt}" + r"\allowbreak{}".join(escape(piece) for piece in pieces)


def _cell(cell: Cell, mark: str, stub: bool) -> str:
    raised = rf"\textsuperscript{{{mark}}}" if mark else ""
    if stub:
        return f"{{\\raggedright {_breakable(cell.value)}{raised}\\par}}"
    interval = rf"\newline\scriptsize {escape(cell.interval)}" if cell.interval else ""
    return f"{{\\centering {_breakable(cell.value)}{raised}{interval}\\par}}"


def _notes(table: Table, notes: Footnotes) -> list[str]:
    sentences = [escape(sentence) for sentence in notes.sentences(table)]
    marked = [rf"\textsuperscript{{{m}}}~{escape(t)}." for t, m in notes.marks.items()]
    text = " ".join([*sentences, *marked])
    return [rf"\par\smallskip{{\raggedright\scriptsize {text}\par}}"] if text else []
