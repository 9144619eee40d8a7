r"""The tables as LaTeX that pastes into a paper: `main.tex` with those that a paper prints, each as
wide as one column of two, or as the page where it has to be, and in need of booktabs alone;
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
        pages = (page for table in paper for page in _pages(table))
        files["main.tex"] = "\n".join([_HEAD.format("booktabs"), *pages])
    appendix = [_HEAD.format("booktabs,longtable"), _ONE_COLUMN]
    for block in blocks_of(parts):
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

_COLUMN = 224  # points: the narrowest column of article, IEEEtran and acmart is 229 wide
_TEXT = 340  # points: the text of an article in one column is 345 wide
_SHORT_NAME = 10  # characters of a heading that is not broken inside a name
_BETWEEN, _MOST_BETWEEN = 4, 10  # points between two columns
_LEAST_NOTE = 200  # points of the sentences under a table
_LEAST_STUB, _MOST_PAPER_STUB = 40, 110
# Above a table, where article leaves no space between a caption and what is under it.
_CAPTION = "\\setlength{\\abovecaptionskip}{0pt}\\setlength{\\belowcaptionskip}{5pt}\n"
_IN_THE_APPENDIX = "; the appendix says what each number rests on"
_PAGE = 48  # lines; the others stand in a table after it


def _pages(table: Table) -> Iterator[str]:
    """The table in the width of one column of a paper, else of its page: a tabular for as many
    columns as fit, and a float for as many lines as fit a page."""
    parts, stub = _columns_that_fit(table, _COLUMN)
    wide = len(parts) > 1  # `table*` is `table` in a paper of one column
    room, float_ = (_TEXT, "table*") if wide else (_COLUMN, "table")
    parts, stub = _columns_that_fit(table, room) if wide else (parts, stub)
    said = [*table.notes, *rests_on(table, _IN_THE_APPENDIX)]
    notes = " ".join(map(escape, said))
    title, again = escape(table.title), ""
    for part in parts:
        used, gaps = stub + _values_width(part), len(part.columns) - part.stubs
        apart = min(_MOST_BETWEEN, _BETWEEN + (room - used) / gaps)
        under = max(_LEAST_NOTE, used + gaps * (apart - _BETWEEN))
        for lines in _paper_pages(part, stub):
            caption = rf"\caption{{{title}.}}\label{{tab:judgebench-{_key(table)}}}"
            yield (
                f"\\begin{{{float_}}}\n\\centering\n{_CAPTION}{again or caption}\n\\scriptsize"
                f"\\setlength{{\\tabcolsep}}{{{apart / 2:.3g}pt}}\n"
                f"{_tabular(part, lines, stub)}"
                f"\\par\\smallskip\\parbox{{{under:.0f}pt}}{{\\raggedright {notes}}}\n"
                f"\\end{{{float_}}}\n"
            )
            again = rf"\addtocounter{{table}}{{-1}}\caption[]{{{title} (continued).}}"


def _columns_that_fit(table: Table, room: float) -> tuple[list[Table], float]:
    """The table cut into as few as fit `room` points, and the points of the column that names the
    rows. Names may break after their signs, into two lines, before the table is cut."""
    column = [row[table.stubs - 1].value for row in table.rows]
    names = max((_points(name) + 2 for name in column), default=0)
    pieces = (_points(piece) + 2 for name in column for piece in _pieces_of(name, 0))
    whole = min(_MOST_PAPER_STUB, max(_LEAST_STUB, names))
    least = min(_MOST_PAPER_STUB, max([_LEAST_STUB, names / 2 + 8, *pieces]))
    for most in range(len(table.columns) - table.stubs, 0, -1):
        parts = split_columns(table, most)
        left = room - max(map(_values_width, parts))
        if left >= least:
            break
    return parts, max(least, min(whole, left))


def _values_width(table: Table) -> float:
    values = range(table.stubs, len(table.columns))
    return sum(_paper_width(table, i) + _BETWEEN for i in values)


def _paper_pages(table: Table, stub: float) -> Iterator[list[str]]:
    """The lines of the table, as many together as fit a page."""
    page: list[str] = []
    room, first = 0.0, table.stubs - 1
    for line, row in zip(_paper_lines(table, first), table.rows, strict=True):
        height = 2 * line.count("\\multicolumn{") + 1 + _points(row[first].value) // stub
        if page and room < height:
            yield page
            page, room = [], 0.0
        room = room - height if page else _PAGE - height
        page.append(line)
    if page:
        yield page


def _tabular(table: Table, lines: Sequence[str], stub: float) -> str:
    first = table.stubs - 1
    sides = "".join(
        "r" if all(map(_is_number, column)) else "l"
        for column in list(zip(*table.rows, strict=True))[table.stubs :]
    )
    names = [escape(table.columns[first]), *map(_stacked, table.columns[table.stubs :])]
    body = "".join(f"{line} \\tabularnewline\n" for line in lines)
    return (
        f"\\begin{{tabular}}{{@{{}}p{{{stub:.0f}pt}}{sides}@{{}}}}\n\\toprule\n"
        f"{' & '.join(names)} \\tabularnewline\n\\midrule\n{body}\\bottomrule\n\\end{{tabular}}\n\n"
    )


def _paper_lines(table: Table, first: int) -> Iterator[str]:
    """A line for each row, after one for each first stub where there are two; what single numbers
    rest on is left to the appendix."""
    gap = ""
    for group, same in groupby(table.rows, key=lambda row: row[0].value if first else ""):
        for place, row in enumerate(same):
            above = ""
            if group and not place:
                wide = len(table.columns) - first
                above = rf"{gap}\multicolumn{{{wide}}}{{@{{}}l}}{{\emph{{{escape(group)}}}}}"
                above, gap = f"{above} \\tabularnewline\n", "\\addlinespace\n"
            name = row[first].value
            name = (
                rf"\raggedright {escape(name) if _points(name) < _LEAST_STUB else _breakable(name)}"
            )
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


def _paper_width(table: Table, i: int) -> float:
    cells = max((_points(brief(row[i])) for row in table.rows), default=0)
    return max(cells, *map(_points, _pieces_of(table.columns[i])))


def _points(text: str) -> float:
    """The width of a text in Computer Modern at 7 points, on the wide side."""
    return sum(4.05 if c.isdigit() else 5.5 if c.isupper() else _WIDTHS.get(c, 3.7) for c in text)


_WIDTHS = {**dict.fromkeys(".,:;[]()|!'il", 2.3), " ": 2.7, "m": 6.3, "w": 5.4, "–": 4, "-": 2.7}


_NUMBER = re.compile(r"[+-]?[\d,]+(\.\d+)?")
_LONG_WORD = re.compile(r"(?<=\w{8})(?=\w{2})")
