"""Self-contained pages on which people answer, and the answers that come back."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from judgebench.data.findings import Findings
from judgebench.data.formats import mark_forbidden
from judgebench.data.tables import missing_columns, open_table
from judgebench.errors import Problem, SetupError, raise_any, shorten
from judgebench.records import content_hash

Item = Mapping[str, Any]
Row = Mapping[str, str]


@dataclass(frozen=True)
class Question:
    """A question that is asked of every item: `key` names its column, `answers` are the words to
    choose from, the one that says that all is well first. Each begins with another letter, which is
    its key on the keyboard."""

    key: str
    text: str
    answers: Sequence[str] = ("pass", "fail")


def review_page(name: str, items: Sequence[Item], questions: Sequence[Question]) -> str:
    """A self-contained page on which a person answers the `questions` on each item.

    An item is a dict:

    - `id`, and `title`, a line above all;
    - `sections`, a list of [heading, text], or [heading, text, True], which is folded. In place of
      a text may stand a list of [heading, pieces], texts to compare, whose pieces are [text,
      whether it differs]; or a dict of short texts by heading, one of which may be a list of
      checks: [text, whether it failed];
    - `ask`, where a question has another text on this item: the text by the question's key;
    - `edit`, where the person may write another text: the text to begin with.

    Answers stay in the browser and are saved as NAME.decisions.csv (`read_decisions`).
    """
    page_items = [
        {"ask": {}, "edit": None, **item, "id": mark_forbidden(item["id"]), "hash": item_hash(item)}
        for item in items
    ]
    table = f"{name}.decisions.csv"
    data = {"table": table, "items": page_items, "questions": [asdict(q) for q in questions]}
    words = dict.fromkeys(word for q in questions for word in q.answers)
    return local_page(_HERE / "review_page", data, name=name, words=words)[0]


def item_hash(item: Item) -> str:
    """Changes with anything that the person reads; the letter keeps it from being a number."""
    return "h" + content_hash([item["title"], item["sections"], item.get("edit")])


def read_decisions(
    path: Path, items: Sequence[Item], questions: Sequence[Question]
) -> Mapping[str, Row]:
    """The answers of one person to the items of a page, by id and column; a blank is no answer. A
    spreadsheet may have saved them: with semicolons or tabs, in UTF-8 or UTF-16.

    Raises SetupError with every problem: a missing column, an unknown answer, an item that is not
    on the page, occurs again, or has changed since.
    """
    findings = Findings()
    table = open_table(path, findings)
    columns = ["item_id", "content_hash", *(q.key for q in questions)]
    problems = [] if table is None else missing_columns(table, columns)
    rows = () if table is None or problems else table.records()
    item_by_id = {mark_forbidden(item["id"]): item for item in items}
    answers = dict[str, Row]()
    for line, row in rows:
        item = item_by_id.get(row["item_id"])
        wrong = [*_item_problems(row, item, answers), *_answer_problems(row, questions)]
        problems += [replace(problem, file=str(path), line=line) for problem in wrong]
        if item:
            answers[item["id"]] = row
    raise_any(sorted([*problems, *findings.errors], key=lambda problem: problem.line or 0))
    return answers


def read_tables(
    paths: Sequence[Path], items: Sequence[Item], questions: Sequence[Question]
) -> Sequence[Mapping[str, Row]]:
    """The answers of several people, as `read_decisions`. Raises SetupError also where one file is
    given twice."""
    counts = Counter(path.resolve() for path in paths)
    if twice := [path for path, n in counts.items() if n > 1]:
        raise SetupError([Problem("is given twice", str(path)) for path in twice])
    return [read_decisions(path, items, questions) for path in paths]


def _item_problems(row: Row, item: Item | None, answers: Mapping[str, Row]) -> Iterator[Problem]:
    wrong = ""
    if item is None:
        wrong = "is not among the items"
    elif row["content_hash"] != item_hash(item):
        wrong = "has changed since it was reviewed"
    elif item["id"] in answers:
        wrong = "occurs twice"
    if wrong:
        yield Problem(wrong, field="item_id", found=shorten(row["item_id"]))


def _answer_problems(row: dict[str, str], questions: Sequence[Question]) -> Iterator[Problem]:
    for q in questions:
        row[q.key] = row[q.key].strip().casefold()
        if row[q.key] not in ("", *q.answers):
            found, allowed = shorten(row[q.key]), ", ".join((*q.answers, "or blank"))
            yield Problem("is no answer", "", None, q.key, found, allowed)


_HERE = Path(__file__).parent


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


def local_page(
    page: Path, data: Any, *scripts: Path, connect: str = "'none'", **values: Any
) -> tuple[str, str]:
    """A page as HTML, and its policy: it loads nothing, runs the one script and style that it
    holds, and talks to nobody but `connect` (`'self'`: the server that it comes from).

    `page` names the three files of what is its own, without their endings: a template that extends
    `local.html.jinja`, a style and a script. The script, which follows the other `scripts`, finds
    `data` as JSON in the element of that id; `values` are for the template.
    """
    script = page_script(*scripts, page.with_suffix(".js"))
    template = page_environment(page.parent, mark_forbidden).get_template(f"{page.name}.html.jinja")
    style = _texts(_HERE / "local.css", page.with_suffix(".css"))
    policy = (
        f"default-src 'none'; style-src 'sha256-{script_hash(style)}'; script-src"
        f" 'sha256-{script_hash(script)}'; connect-src {connect}; worker-src {connect};"
        " img-src data: blob:;"
        " base-uri 'none'; form-action 'none'"
    )
    parts = {"style": style, "script": script, "policy": policy}
    marked = {name: Markup(part) for name, part in parts.items()}
    return template.render(**values, **marked, data=json_for_page(data)), policy


def _texts(*paths: Path) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in paths)
