r"""The tables as LaTeX that pastes into a paper and needs booktabs alone: `main.tex` with those
that a paper prints, each as wide as a column of the paper, or as its page where it has to be;
`appendix.tex` with all others, on pages of one column.

Works with pdflatex and what every TeX installation of 2020 and later has: signs that it cannot set
without further packages are written as commands, and what is left as `[U+4E2D]`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby

from judgebench.results.blocks import Block, ReportSection, blocks_of
from judgebench.results.tables import DASH, Cell, Table, brief, rests_on, split_columns
from judgebench.text import printable

_HEAD = "% Made by judgebench. Needs \\usepackage{booktabs} in the preamble.\n"
# Pages of their own, of one column, where a table stands where it is written.
_ONE_COLUMN = r"""\makeatletter\if@twocolumn\onecolumn\else\clearpage\fi
\newenvironment{judgebenchhere}%
  {\par\medskip\noindent\begin{minipage}{\linewidth}\def\@captype{table}}%
  {\end{minipage}\par}
\makeatother
"""

_SPECIAL = {
    "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\texttt{\char34}",
    "'": "{'}", "`": r"\`{}", "‐": "{-}", "‑": "{-}", "−": r"\ensuremath{-}",
    "«": r"\ensuremath{\ll}", "»": r"\ensuremath{\gg}", "≤": r"\ensuremath{\leq}",
    "≥": r"\ensuremath{\geq}", "≠": r"\ensuremath{\neq}", "≈": r"\ensuremath{\approx}",
    "→": r"\ensuremath{\rightarrow}", "←": r"\ensuremath{\leftarrow}",
    "∞": r"\ensuremath{\infty}", "🥇": "1st", "🥈": "2nd", "🥉": "3rd",
}  # fmt: skip
_GREEK = "αβγδεζηθικλμνξπρςστυφχψωΓΔΘΛΞΠΣΥΦΨΩ"  # the letters that mathematics has a command for
_MINUS = re.compile(r"(?<![^\s\[(,;:=])-(?=\d)")  # a sign, no hyphen and no dash between numbers
# What LaTeX (2020 and later) sets without a package, in any font encoding.
_KNOWN = "–—…‘’“”•·§°©®™€£×±µßæÆœŒøØłŁı¿¡"
_ACCENTS = "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327"
_LAST_LETTER = "\u017f"  # of those with an accent that it knows


def to_latex(parts: Sequence[ReportSection]) -> dict[str, str]:
    """File name -> content: `main.tex` where the parts have tables for a paper, `appendix.tex` with
    the sentences and the tables of every block."""
    files: dict[str, str] = {}
    paper = {table.key: table for part in parts for table in part.paper if table.rows}
    if paper:
        floats = (one for table in paper.values() for one in _floats(table))
        files["main.tex"] = "\n".join([_HEAD, _FLOAT, *floats])
    appendix = [_HEAD, _FLOAT, _ONE_COLUMN]
    for block in (block for block in blocks_of(parts) if block.lead or block.on_screen):
        appendix += [_said(block)] if block.text else []
        others = (table for table in block.tables if table.key not in paper)
        appendix += (one for table in others for one in _appended(table))
    return {**files, "appendix.tex": "\n".join(appendix)}


def _appended(table: Table) -> Iterator[str]:
    """The table in blocks of columns that fit a page, which stand where they are written."""
    widths = []
    for heading, column in zip(table.columns[table.stubs :], _value_columns(table), strict=True):
        texts = (brief(cell)[:_LONG_TEXT] for cell in column)
        widths.append(1 + max(map(len, (*_pieces_of(heading), *texts))))
    for place, block in enumerate(split_columns(table, widths, _VALUES)):
        yield from _floats(block, _CONTINUED if place else "")


def _said(block: Block) -> str:
    """The heading and the sentences of a block; several are a list."""
    heading = f"{_breakable(block.heading.rstrip('.'))}." if block.heading else ""
    heading = rf"\textbf{{{heading}}} " if heading else ""
    text, *others = map(_breakable, block.text)
    if others:
        items = "\n".join(rf"\item {item}" for item in (text, *others))
        text = f"\n\\begin{{itemize}}\n{items}\n\\end{{itemize}}"
    return f"\\par{{\\sloppy\\noindent {heading}{text}\\par}}\n"


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
        elif character.isascii() or character in _KNOWN or _is_accented(character):
            yield character
        else:
            yield _greek(character) or f"[U+{ord(character):04X}]"


def _greek(character: str) -> str:
    """`α` as a command of mathematics; empty for other characters."""
    if character not in _GREEK:
        return ""
    name = unicodedata.name(character).rsplit(" ", 1)[-1].lower()
    name = {"lamda": "lambda"}.get(name, name)
    command = "varsigma" if character == "ς" else name if character.islower() else name.title()
    return rf"\ensuremath{{\{command}}}"


def _is_accented(character: str) -> bool:
    """True of `é`: a letter of ASCII with one accent that LaTeX knows."""
    parts = unicodedata.normalize("NFD", character)
    is_letter = len(parts) == 2 and parts[0].isascii() and character <= _LAST_LETTER
    return is_letter and parts[1] in _ACCENTS


def _breakable(text: str) -> str:
    """Escaped text that may break after the signs in a model's name, and inside endless words."""
    parts = re.split(r"(?<=[/:_.@-])(?<!\d\.)(?=\w)", _MINUS.sub("−", text))
    broken = [r"\penalty500{}".join(map(escape, re.split(_LONG_WORD, part))) for part in parts]
    return r"\hspace{0pt}" + r"\penalty50{}".join(broken)


# --- tables ------------------------------------------------------------------------------------

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
  \ifcsname judgebenchhere\endcsname\def\jbfloat{judgebenchhere}\fi
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
_LONG_TEXT = 24  # characters of a name, or of another text, that breaks into lines
_VALUES = 80  # characters that fit beside the names on a page of a plain article at 10 pt
_ELSEWHERE = "; results.csv says what each number rests on"
_CONTINUED = " (continued)"
_PAGE = 48  # lines; the others stand in a table after it


def _floats(table: Table, title_end: str = "") -> Iterator[str]:
    """The table as a float for as many rows as fit a page."""
    first = table.stubs - 1
    columns = _value_columns(table)
    names = [escape(table.columns[first]), *map(_stacked, table.columns[table.stubs :])]
    head = f"\\toprule\n{' & '.join(names)} \\tabularnewline\n\\midrule\n"
    pieces = (piece for row in table.rows for piece in _pieces_of(row[first].value, 0))
    longest = escape(max(pieces, key=len, default=""))
    notes = " ".join(map(escape, [*table.notes, *rests_on(table, _ELSEWHERE)]))
    title = escape(table.title)
    for page, lines in enumerate(_pages(table)):
        end = _CONTINUED if page else title_end
        caption = rf"\caption{{{title}.}}\label{{tab:judgebench-{_key(table)}}}"
        if end:
            caption = rf"\addtocounter{{table}}{{-1}}\caption[]{{{title}{end}.}}"
        body = "".join(f"{line} \\tabularnewline\n" for line in lines)
        rows = f"%\n{head}{body}\\bottomrule\n"
        sides = "".join(map(_side, columns))
        yield f"\\judgebenchtable{{{caption}}}{{{sides}}}{{{rows}}}{{{longest}}}{{{notes}}}\n"


def _value_columns(table: Table) -> list[tuple[Cell, ...]]:
    """The cells of each column after the stubs."""
    return [*zip(*table.rows, strict=True)][table.stubs :]


def _side(column: Sequence[Cell]) -> str:
    """Numbers are at the right, and long texts break into lines."""
    if any(len(brief(cell)) > _LONG_TEXT for cell in column):
        return "p{26mm}"
    return "r" if all(map(_is_number, column)) else "l"


def _pages(table: Table) -> Iterator[list[str]]:
    """The lines of the table, as many together as fit a page."""
    page: list[str] = []
    room, first = 0, table.stubs - 1
    for line, row in zip(_lines(table, first), table.rows, strict=True):
        longest = max(len(cell.value) for cell in row[first:])
        height = 1 + longest // _LONG_TEXT + 2 * line.count("\\multicolumn{")
        if page and room < height:
            yield page
            page, room = [], 0
        room = room - height if page else _PAGE - height
        page.append(line)
    if page:
        yield page


def _lines(table: Table, first: int) -> Iterator[str]:
    """A line for each row, after one for each of what the stubs before the last one say; what
    single numbers rest on is left to results.csv."""
    gap = ""
    for group, same in groupby(table.rows, key=lambda row: ": ".join(c.value for c in row[:first])):
        for place, row in enumerate(same):
            above = ""
            if group and not place:
                wide = len(table.columns) - first
                # Without a width of its own it widens no column, and breaks where the table ends.
                box = rf"\rlap{{\parbox[t]{{\linewidth}}{{\raggedright\emph{{{escape(group)}}}}}}}"
                above = rf"{gap}\multicolumn{{{wide}}}{{@{{}}l}}{{{box}}}"
                above, gap = f"{above} \\tabularnewline\n", "\\addlinespace\n"
            name = rf"\raggedright {_breakable(row[first].value)}"
            yield above + " & ".join([name, *map(_cell, row[table.stubs :])])


def _cell(cell: Cell) -> str:
    text = brief(cell)
    shown = rf"\raggedright {_breakable(text)}" if len(text) > _LONG_TEXT else escape(text)
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
