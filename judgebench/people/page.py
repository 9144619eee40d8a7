"""Self-contained pages on which people answer, and the answers that come back."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from judgebench.data.findings import Findings
from judgebench.data.formats import mark_forbidden, quoted, to_csv
from judgebench.data.tables import missing_columns, open_table
from judgebench.errors import Problem, SetupError, raise_any, shorten
from judgebench.records import content_hash

Item = Mapping[str, Any]
FILLED_IN = ("reviewer", "remark")  # beside the answers, by the reviewer


@dataclass(frozen=True)
class Question:
    """A question that is asked of every item: `key` names its column, `answers` are the words to
    choose from, the one that says that all is well first. Each begins with another letter, which is
    its key on the keyboard."""

    key: str
    text: str
    answers: Sequence[str] = ("pass", "fail")


@dataclass(frozen=True)
class Table:
    """A table as a page of questions saves it, with what the page tells of it.

    `rows` holds the cells of each item by column, answers too; `gone` those about texts that are no
    longer on the page, which stay at the table's end. `of` names what is reviewed.
    """

    file: str
    columns: Sequence[str]
    rows: Sequence[Mapping[str, str]]
    gone: Sequence[Mapping[str, str]] = ()
    of: str = "what a machine made"
    lead: str = ""
    notices: Sequence[str] = ()

    def cells(self, row: Mapping[str, str]) -> list[str]:
        """The cells of a row in the order of the columns, none of which a spreadsheet runs."""
        return [quoted(row.get(column, "")) for column in self.columns]

    def to_csv(self) -> bytes:
        """The table as a CSV file."""
        return to_csv(self.columns, map(self.cells, [*self.rows, *self.gone]))


def review_page(
    name: str, items: Sequence[Item], questions: Sequence[Question], beside: Table | None = None
) -> str:
    """A self-contained page on which a person answers the `questions` on each item.

    An item is a dict:

    - `id`, and `title`, a line above all;
    - `sections`, a list of [heading, text], or [heading, text, True], which is folded. In place of
      a text may stand a list of [heading, pieces], texts to compare, whose pieces are [text,
      whether it differs]; or a dict of short texts by heading, one of which may be a list of
      checks: [text, whether it failed];
    - `ask`, where a question has another text on this item: the text by the question's key;
    - `edit`, where the person may write another text: the text to begin with.

    Answers stay in the browser and are saved as NAME.decisions.csv (`read_decisions`), or as the
    table that lies `beside` the page, whose answers the page shows.
    """
    filled = [*(q.key for q in questions), *FILLED_IN]
    if beside is None:
        columns = ["item_id", "content_hash", *filled, "edit"]
        rows = [{"item_id": mark_forbidden(x["id"]), "content_hash": item_hash(x)} for x in items]
        table, store = Table(f"{name}.decisions.csv", columns, rows), "judgebench tune review of "
        filled.append("edit")
    else:
        table, store = beside, "judgebench review of "
    shown = [
        {
            "ask": {}, "edit": None, **item, "id": row["item_id"], "hash": row["content_hash"],
            "cells": table.cells(row), "answer": {column: row.get(column, "") for column in filled},
        }
        for item, row in zip(items, table.rows, strict=True)
    ]  # fmt: skip
    data = {
        "store": store + name, "beside": beside is not None, "table": table.file,
        "columns": table.columns, "gone": [table.cells(row) for row in table.gone],
        "blank": dict.fromkeys(filled, ""), "items": shown,
        "questions": [asdict(q) for q in questions],
    }  # fmt: skip
    words = dict.fromkeys(word for q in questions for word in q.answers)
    about = {"about": table, "beside": beside, "questions": questions, "words": words}
    return fill_in_page(_HERE / "review_page", data, name=name, **about)


def item_hash(item: Item) -> str:
    """Changes with anything that the person reads; the letter keeps it from being a number."""
    return "h" + content_hash([item["title"], item["sections"], item.get("edit")])


def check_answers(row: dict[str, str], questions: Sequence[Question]) -> Iterator[Problem]:
    """The problems of a row's answers, which it puts into lower case."""
    for q in questions:
        row[q.key] = row[q.key].strip().casefold()
        if row[q.key] not in ("", *q.answers):
            found, allowed = shorten(row[q.key]), ", ".join((*q.answers, "or blank"))
            yield Problem("is no answer", "", None, q.key, found, allowed)


def read_decisions(
    path: Path, items: Sequence[Item], questions: Sequence[Question]
) -> Mapping[str, Mapping[str, str]]:
    """The answers of one person to the items of a page, by id and column; a blank is no answer.

    Raises SetupError with every problem: a missing column, an unknown answer, an item that is not
    on the page, occurs again, or has changed since.
    """
    answered = dict[str, Mapping[str, str]]()
    known = {mark_forbidden(item["id"]): item for item in items}

    def check(_: int, row: dict[str, str]) -> Iterator[Problem]:
        item, wrong = known.get(row["item_id"]), ""
        if item is None:
            wrong = "is not among the items"
        elif row["content_hash"] != item_hash(item):
            wrong = "has changed since it was reviewed"
        elif item["id"] in answered:
            wrong = "occurs twice"
        else:
            answered[item["id"]] = row
        if wrong:
            yield Problem(wrong, field="item_id", found=shorten(row["item_id"]))
        yield from check_answers(row, questions)

    read_filled(path, ["item_id", "content_hash", *(q.key for q in questions)], check)
    return answered


def read_filled(
    path: Path,
    needed: Sequence[str],
    check: Callable[[int, dict[str, str]], Iterable[Problem]],
    known: Sequence[str] = (),
    may_be_empty: bool = False,
) -> list[dict[str, str]]:
    """The rows of a table that people filled in, also one that a spreadsheet saved: with semicolons
    or tabs, in UTF-8 or UTF-16.

    `check` gives the problems of a row, without its file and line, and may change the row. Raises
    SetupError with every problem, in the order of the rows: a column of `needed` that is missing,
    one that is not among the `known`, a row that cannot be read.
    """
    findings = Findings()
    table = open_table(path, findings)
    rows, problems = list[dict[str, str]](), list[Problem]()
    if table is not None:
        message = "is no column of a review: write into remark instead"
        others = [column for column in table.columns if column not in known]
        allowed = ", ".join(known)
        problems += missing_columns(table, needed)
        # Writing the table anew would lose them.
        problems += [Problem(message, table.file, 1, x, "", allowed) for x in others if known]
        for line, row in table.records() if not problems else ():
            problems += [replace(x, file=table.file, line=line) for x in check(line, row)]
            rows.append(row)
    problems += [x for x in findings.errors if not (may_be_empty and x.kind == "no_rows")]
    if problems:
        raise SetupError(sorted(problems, key=lambda problem: problem.line or 0))
    return rows


_HERE = Path(__file__).parent
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@cache  # a template is compiled once
def page_environment(folder: Path, shown: Callable[[str], str]) -> jinja2.Environment:
    """Templates of a folder in which every value but markup goes through `shown` and is escaped."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader([folder, _HERE]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else shown(str(value)),
    )


def json_for_page(value: Any) -> Markup:
    """JSON that is safe inside a script element.

    All but ASCII is escaped, and so are < > and &: neither `</script>` nor `<!--` can stand in it.
    """
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def page_script(*paths: Path) -> str:
    """The scripts of a page as one, behind what all of them use (`page.js`)."""
    return _texts(_HERE / "page.js", *paths)


def script_hash(script: str) -> str:
    """The hash of a script as a page's policy names it, without `sha256-`."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def fill_in_page(page: Path, data: Mapping[str, Any], **values: Any) -> str:
    """A whole page on which people fill in a table: kept in the browser, saved as a CSV file.

    `page` names the three files of what is its own, without their endings: a template that extends
    `local.html.jinja`, a style and a script. `data` is what `local.js` and that script read, with
    the `columns` and the file name (`table`) of the table; `values` are for the template.
    """
    return local_page(page, _HERE / "local.js", data, table=data["table"], **values)[0]


def local_page(
    page: Path, before: Path, data: Any, *, connect: str = "'none'", **values: Any
) -> tuple[str, str]:
    """A page as HTML, and its policy: it loads nothing, runs the one script and style that it
    holds, and talks to nobody but `connect` (`'self'`: the server that it comes from).

    The template, as in `fill_in_page`, extends `local.html.jinja`; its script, which follows the
    one `before` it, finds `data` as JSON in the element of that id.
    """
    script = page_script(before, page.with_suffix(".js"))
    template = page_environment(page.parent, mark_forbidden).get_template(f"{page.name}.html.jinja")
    style = _texts(_HERE / "local.css", page.with_suffix(".css"))
    policy = (
        f"default-src 'none'; style-src 'sha256-{script_hash(style)}'; script-src"
        f" 'sha256-{script_hash(script)}'; connect-src {connect}; img-src data: blob:;"
        " base-uri 'none'; form-action 'none'"
    )
    html = template.render(
        **values,
        data=json_for_page(data),
        style=Markup(style),
        script=Markup(script),
        policy=Markup(policy),
    )
    return html, policy


def check_people(names: Sequence[str], field: str) -> None:
    """Raises SetupError where nobody is named, a name can name no file, or one is named twice."""
    problems = [] if names else [Problem("name somebody", field=field)]
    seen: set[str] = set()
    for name in names:
        if not _NAME.fullmatch(name):
            message = "cannot name a file"
            allowed = "letters a to z, digits, full stops, dashes and underscores"
            problems.append(Problem(message, "", None, field, shorten(name), allowed))
        elif name.casefold() in seen:
            problems.append(Problem("is named twice", field=field, found=shorten(name)))
        seen.add(name.casefold())
    raise_any(problems)


def _texts(*paths: Path) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in paths)
