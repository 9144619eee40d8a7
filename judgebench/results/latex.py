r"""The tables as LaTeX that pastes into a paper: `main.tex` with those that a paper prints, each as
wide as a column of the paper, or as its page where it has to be, and in need of booktabs alone;
`appendix.tex` with all others.

Those of the appendix are longtables, cut into blocks of columns that fit the text width of a plain
`article`. Works with pdflatex and what every TeX installation has: letters and signs that it cannot
set without further packages are written as commands, and what is left as `[U+4E2D]`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby

from judgebench.results.part import Block, Part, blocks_of
from judgebench.results.tables import (
    DASH,
    Cell,
    Footnotes,
    Table,
    brief,
    footnotes,
    rests_on,
    split_columns,
)
from judgebench.words import printable

# A page of its own, after the tables of the paper; a longtable cannot stand in two columns.
_ONE_COLUMN = "\\makeatletter\\if@twocolumn\\onecolumn\\else\\clearpage\\fi\\makeatother\n"
_HEAD = "% Made by judgebench. Needs \\usepackage{{{}}} in the preamble.\n"

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
_MINUS = re.compile(r"(?<![^\s\[(,;:=])-(?=\d)")  # a sign, no hyphen and no dash between numbers
_ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u",
    "\u0307": ".", "\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0323": "d",
    "\u0327": "c",
}  # fmt: skip
"""Combining marks that the default font encoding can set over or under any letter."""

# In millimetres, for the text of a plain article at 10 pt.
_TEXT_WIDTH = 121
_GAP = 2
_STUB_WIDTH = {1: 24, 2: 22, 3: 20}  # at least
_MOST_STUB = 36


def to_latex(parts: Sequence[Part]) -> dict[str, str]:
    """File name -> content: `main.tex` where the parts have tables for a paper, `appendix.tex` with
    the sentences and the tables of every block."""
    files: dict[str, str] = {}
    if paper := [table for part in parts for table in part.paper if table.rows]:
        floats = (one for table in paper for one in _floats(table))
        files["main.tex"] = "\n".join([_HEAD.format("booktabs"), _FLOAT, *floats])
    appendix = [_HEAD.format("booktabs,longtable"), _ONE_COLUMN]
    for block in (block for block in blocks_of(parts) if block.lead or block.on_screen):
        appendix += [_said(block)] if block.text else []
        appendix += map(_table, block.tables)
    return {**files, "appendix.tex": "\n".join(appendix)}


def _said(block: Block) -> str:
    """The heading and the sentences of a block; several are a list."""
    heading = f"{_breakable(block.heading.rstrip('.'))}." if block.heading else ""
    heading = rf"\textbf{{{heading}}} " if heading else ""
    said = list(map(_breakable, block.text))
    if len(said) == 1:
        return f"\\par{{\\sloppy\\noindent {heading}{said[0]}\\par}}\n"
    items = "\n".join(rf"\item {one}" for one in said)
    return (
        f"\\par{{\\sloppy\\noindent {heading}\n"
        f"\\begin{{itemize}}\n{items}\n\\end{{itemize}}\\par}}\n"
    )


def _key(table: Table) -> str:
    """The name of a table in a label."""
    return re.sub(r"[^A-Za-z0-9]+", "-", table.key).strip("-")


@lru_cache(maxsize=10_000)  # names and methods stand in many cells
def escape(text: str) -> str:
    """`text` on one line, as LaTeX that prints it as it is."""
    line = unicodedata.normalize("NFC", " ".join(printable(text).split()))
    line = _MINUS.sub("−", line)
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
    widest = max(map(_width, list(zip(*table.rows, strict=True))[table.stubs :]), default=0)
    room = _TEXT_WIDTH - table.stubs * (_STUB_WIDTH.get(table.stubs, 18) + _GAP)
    blocks = split_columns(table, max(1, room // (widest + _GAP)))
    tables = "".join(_longtable(b, notes, b is blocks[0]) for b in blocks)
    marked = (rf"\textsuperscript{{{m}}}~{escape(t)}." for t, m in notes.marks.items())
    under = " ".join([*map(escape, notes.sentences(table)), *marked])
    under = f"\n{{\\noindent\\raggedright\\scriptsize {under}\\par}}\\medskip" if under else ""
    return f"{{\\footnotesize\\setlength{{\\tabcolsep}}{{1mm}}\n{tables}}}{under}\n"


def _width(column: Sequence[Cell]) -> int:
    """The millimetres that the cells of a column need."""
    if longest := max(len(cell.interval) for cell in column):
        return 22 if longest > len("[0.774, 0.850]") else 17
    return 17 if any(cell.remark for cell in column) else 15  # a mark beside a word takes room too


def _longtable(table: Table, notes: Footnotes, first: bool) -> str:
    values = [_width(column) for column in list(zip(*table.rows, strict=True))[table.stubs :]]
    left = _TEXT_WIDTH - sum(width + _GAP for width in values)
    stub = min(_MOST_STUB, left // table.stubs - _GAP)
    widths = "".join(f"p{{{width}mm}}" for width in [*[stub] * table.stubs, *values])
    sides = [_side(i < table.stubs) for i in range(len(table.columns))]
    names = (f"{s}\\scriptsize {_breakable(c)}" for s, c in zip(sides, table.columns, strict=True))
    head = f"\\toprule\n{' & '.join(names)} \\tabularnewline\n\\midrule\n"
    label = f"tab:judgebench-{_key(table)}"
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
    raised = rf"\textsuperscript{{{mark}}}" * bool(mark)
    interval = rf"\newline\scriptsize {escape(cell.interval)}" if cell.interval else ""
    shown = _breakable(cell.value)
    shown = rf"\textbf{{{shown}}}" if cell.best else shown
    return f"{_side(stub)} {shown}{raised}{interval}"


def _side(stub: bool) -> str:
    """Both redefine `\\\\`, which is why rows end in `\\tabularnewline`."""
    return r"\raggedright" if stub else r"\centering"


def _breakable(text: str) -> str:
    """Escaped text that may break after the signs in a model's name, and inside endless words."""
    parts = re.split(r"(?<=[/:_.@-])(?<!\d\.)(?=\w)", _MINUS.sub("−", text))
    broken = [r"\penalty500{}".join(map(escape, re.split(_LONG_WORD, part))) for part in parts]
    return r"\hspace{0pt}" + r"\penalty50{}".join(broken)


# --- the tables for a paper -------------------------------------------------------------------

# LaTeX measures the rows: with whole names, and without any. Where they are wider than a column,
# names break into two lines; where these do not fit either, the table is as wide as the page.
# `table*` is `table` in a paper of one column.
_FLOAT = r"""\providecommand\judgebenchtable[5]{% caption; value columns; rows; longest word; note
  \begingroup\scriptsize\setlength\tabcolsep{2pt}%
  \def\jbrows##1##2##3{\begin{##1}##2{@{\extracolsep{\fill}}##3#2@{}}#3\end{##1}}%
  \sbox0{\jbrows{tabular}{}{l}}\edef\jbwhole{\the\wd0}%
  \sbox0{\jbrows{tabular}{}{p{3000pt}}}\edef\jbvalues{\the\dimexpr\wd0-3000pt}%
  \sbox0{#4}\dimen0=\dimexpr(\jbwhole-\jbvalues)/2+8pt\relax
  \ifdim\dimen0<\wd0 \dimen0=\wd0 \fi \dimen2=\dimexpr\dimen0+\jbvalues\relax
  \def\jbfloat{table}%
  \ifdim\jbwhole>\columnwidth \ifdim\dimen2>\columnwidth \def\jbfloat{table*}\fi\fi
  \begin{\jbfloat}\centering
  \setlength\abovecaptionskip{0pt}\setlength\belowcaptionskip{5pt}#1
  \scriptsize\setlength\tabcolsep{2pt}%
  \ifdim\jbwhole>\linewidth
    \jbrows{tabular*}{{\linewidth}}{p{\dimexpr\linewidth-\jbvalues\relax}}%
  \else \jbrows{tabular*}{{\linewidth}}{l}\fi
  \par\smallskip\parbox{\linewidth}{\raggedright #5\par}
  \end{\jbfloat}\endgroup}
"""
_SHORT_NAME = 10  # characters of a heading that is not broken inside a name
_LONG_NAME = 30  # characters of a name that takes two lines where the table is narrow
_IN_THE_APPENDIX = "; the appendix says what each number rests on"
_PAGE = 48  # lines; the others stand in a table after it


def _floats(table: Table) -> Iterator[str]:
    """The table as a float for as many rows as fit a page."""
    first = table.stubs - 1
    columns = list(zip(*table.rows, strict=True))
    sides = "".join("r" if all(map(_is_number, c)) else "l" for c in columns[table.stubs :])
    names = [escape(table.columns[first]), *map(_stacked, table.columns[table.stubs :])]
    head = f"\\toprule\n{' & '.join(names)} \\tabularnewline\n\\midrule\n"
    pieces = (piece for cell in columns[first] for piece in _pieces_of(cell.value, 0))
    longest = escape(max(pieces, key=len, default=""))
    notes = " ".join(map(escape, [*table.notes, *rests_on(table, _IN_THE_APPENDIX)]))
    title = escape(table.title)
    caption = rf"\caption{{{title}.}}\label{{tab:judgebench-{_key(table)}}}"
    for lines in _paper_pages(table):
        body = "".join(f"{line} \\tabularnewline\n" for line in lines)
        rows = f"%\n{head}{body}\\bottomrule\n"
        yield f"\\judgebenchtable{{{caption}}}{{{sides}}}{{{rows}}}{{{longest}}}{{{notes}}}\n"
        caption = rf"\addtocounter{{table}}{{-1}}\caption[]{{{title} (continued).}}"


def _paper_pages(table: Table) -> Iterator[list[str]]:
    """The lines of the table, as many together as fit a page."""
    page: list[str] = []
    room, first = 0, table.stubs - 1
    for line, row in zip(_paper_lines(table, first), table.rows, strict=True):
        height = 2 * line.count("\\multicolumn{") + 1 + len(row[first].value) // _LONG_NAME
        if page and room < height:
            yield page
            page, room = [], 0
        room = room - height if page else _PAGE - height
        page.append(line)
    if page:
        yield page


def _paper_lines(table: Table, first: int) -> Iterator[str]:
    """A line for each row, after one for each first stub where there are two; what single numbers
    rest on is left to the appendix."""
    gap = ""
    for group, same in groupby(table.rows, key=lambda row: ": ".join(c.value for c in row[:first])):
        for place, row in enumerate(same):
            above = ""
            if group and not place:
                wide = len(table.columns) - first
                above = rf"{gap}\multicolumn{{{wide}}}{{@{{}}l}}{{\emph{{{escape(group)}}}}}"
                above, gap = f"{above} \\tabularnewline\n", "\\addlinespace\n"
            name = rf"\raggedright {_breakable(row[first].value)}"
            yield above + " & ".join([name, *map(_paper_cell, row[table.stubs :])])


def _paper_cell(cell: Cell) -> str:
    shown = escape(brief(cell))
    return rf"\textbf{{{shown}}}" if cell.best else shown


def _is_number(cell: Cell) -> bool:
    return cell.estimate is not None or bool(_NUMBER.fullmatch(cell.value)) or cell.value == DASH


def _stacked(heading: str) -> str:
    words = r"\\{}".join(map(escape, _pieces_of(heading)))
    return rf"\multicolumn{{1}}{{c}}{{\shortstack{{{words}}}}}"


def _pieces_of(heading: str, whole: int = _SHORT_NAME) -> list[str]:
    breaks = r"\s+" if len(heading) <= whole else r"\s+|(?<=[-/_:])(?=\w)"
    return [piece for piece in re.split(breaks, heading) if piece]


_NUMBER = re.compile(r"[+-]?[\d,]+(\.\d+)?")
_LONG_WORD = re.compile(r"(?<=\w{8})(?=\w{2})")
