r"""The tables as LaTeX that pastes into a paper: booktabs and longtable are all they need.

Wide tables are cut into blocks of columns that fit the text width of a plain `article`; LaTeX
breaks long ones between pages. Works with pdflatex: letters and signs that it cannot set without
further packages are written as commands, and what is left as `[U+4E2D]`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from judgebench.report.words import printable
from judgebench.results.part import Block, Part, blocks_of
from judgebench.results.tables import Cell, Footnotes, Table, footnotes, split_columns

_HEAD = r"""% Made by judgebench. Needs \usepackage{booktabs,longtable} in the preamble, no more.
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
_STUB_WIDTH = {1: 24, 2: 22, 3: 20}


def to_latex(parts: Sequence[Part]) -> str:
    """The sentences and tables of every block."""
    return "\n".join([_HEAD, *(piece for block in blocks_of(parts) for piece in _block(block))])


def _block(block: Block) -> Iterator[str]:
    if block.text:
        heading = rf"\textbf{{{_breakable(block.heading.rstrip('.'))}.}} " if block.heading else ""
        said = " ".join(map(_breakable, block.text))
        yield f"\\par{{\\sloppy\\noindent {heading}{said}\\par}}\n"
    for table in block.tables:
        yield _table(table)


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


# --- tables ------------------------------------------------------------------------------------


def _table(table: Table) -> str:
    """A longtable for each block of columns that fits the text width, and the notes under them."""
    notes = footnotes(table)
    stub, value = _STUB_WIDTH.get(table.stubs, 18), _value_width(table)
    room = _TEXT_WIDTH - table.stubs * (stub + _GAP)
    blocks = split_columns(table, max(1, room // (value + _GAP)))
    tables = "".join(_longtable(b, notes, stub, value, b is blocks[0]) for b in blocks)
    marked = (rf"\textsuperscript{{{m}}}~{escape(t)}." for t, m in notes.marks.items())
    under = " ".join([*map(escape, notes.sentences(table)), *marked])
    under = f"\n{{\\noindent\\raggedright\\scriptsize {under}\\par}}\\medskip" if under else ""
    return f"{{\\footnotesize\\setlength{{\\tabcolsep}}{{1mm}}\n{tables}}}{under}\n"


def _value_width(table: Table) -> int:
    cells = [cell for row in table.rows for cell in row if cell.interval]
    if not cells:
        words = [cell for row in table.rows for cell in row[table.stubs :] if cell.remark]
        return 17 if words else 15  # a mark beside a word takes room too
    return 20 if max(len(cell.interval) for cell in cells) > len("[0.774, 0.850]") else 17


def _longtable(table: Table, notes: Footnotes, stub: int, value: int, first: bool) -> str:
    values = len(table.columns) - table.stubs
    widths = f"*{{{table.stubs}}}{{p{{{stub}mm}}}}*{{{values}}}{{p{{{value}mm}}}}"
    sides = [_side(i < table.stubs) for i in range(len(table.columns))]
    names = (f"{s}\\scriptsize {_breakable(c)}" for s, c in zip(sides, table.columns, strict=True))
    head = f"\\toprule\n{' & '.join(names)} \\tabularnewline\n\\midrule\n"
    label = f"tab:judgebench-{table.key.replace('_', '-')}"
    again = rf"\caption[]{{{escape(table.title)} (continued)}} \tabularnewline"
    title = rf"\caption{{{escape(table.title)}}}\label{{{label}}} \tabularnewline"
    rows = (
        " & ".join(_cell(c, notes.mark(c), i < table.stubs) for i, c in enumerate(row))
        for row in table.rows
    )
    body = "\\addlinespace[2pt]\n".join(f"{row} \\tabularnewline\n" for row in rows)
    return (
        ("" if first else "\\addtocounter{table}{-1}\n")
        + f"\\begin{{longtable}}{{@{{}}{widths}@{{}}}}\n"
        + f"{title if first else again}\n{head}\\endfirsthead\n"
        + f"{again}\n{head}\\endhead\n\\bottomrule\n\\endfoot\n"
        + f"{body}\\end{{longtable}}\n"
    )


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
