"""Run a case of a table as people have it, and check the facts that its case.yaml states.

benchmarks/follow_questions.py replaces `run` by one that forks. A fact that cannot be checked, such
as a number that is not shown, counts as not met.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

LIMIT_S = 60
CASE_KEYS = {"what", "kind", "command", "python", "right", "files"}
RIGHT_KEYS = {"roles", "judge_accuracy", "human_agreement", "outcome", "not_outcome", "says",
              "failed", "done", "refused", "names"}  # fmt: skip
ROLE_KEYS = {"annotators", "judges", "metrics", "items", "questions", "labels", "values", "item",
             "question"}  # fmt: skip
ENDED_WELL = (0, 3)
TRACEBACK = "Traceback (most recent call last)"
SNIPPET = """
import json, sys, warnings
warnings.simplefilter("ignore")
import judgebench as jb
try:
    exec(compile(open("case_snippet.py", encoding="utf-8").read(), "case_snippet.py", "exec"))
except jb.JudgebenchError as error:
    print("error:", error, file=sys.stderr); sys.exit(2)
decided, aligned = globals().get("decisions"), globals().get("alignment")
shown = {"decisions": None, "alignment": None, "notes": [str(decided), str(aligned)]}
if decided is not None:
    shown["decisions"] = [
        {"judge": row["judge"], "metric": row["metric"], "outcome": str(row["outcome"]),
         "shares": {"judge": row["accuracy"], "humans": row["humans"]},
         "more_data": {"answers_now": decided.n_answers}}
        for row in decided.table().reset_index().to_dict("records")
    ]
if aligned is not None:
    shown["alignment"] = json.loads(aligned.to_frame().to_json(orient="records"))
print(json.dumps(shown, default=str))
"""

Case = Mapping[str, Any]


class Seen:
    """What judgebench did: the exit code, the text, and what its JSON holds."""

    def __init__(self, code: int, out: str, err: str, timed_out: bool = False) -> None:
        self.code, self.out, self.err, self.timed_out = code, out, err, timed_out
        try:
            shown = json.loads(out)
        except ValueError:
            shown = None
        shown = shown if isinstance(shown, dict) else {}
        self.decisions, self.alignment = shown.get("decisions"), shown.get("alignment")
        self.bars = shown.get("bars") or []

    @cached_property
    def text(self) -> str:
        return f"{self.out}\n{self.err}"

    @property
    def has_traceback(self) -> bool:
        return TRACEBACK in self.text

    @property
    def error(self) -> str:
        """The text from the first `error` on."""
        start = re.search(r"\berror\b|^Usage:", self.text, re.IGNORECASE | re.MULTILINE)
        return self.text[start.start() :] if start else ""


def run(command: Sequence[str | bytes], folder: Path) -> Seen:
    """Run a command in a process of its own."""
    words = [
        sys.executable,
        *(["-m", "judgebench"] if command[1:2] != ["-c"] else []),
        *command[1:],
    ]
    env = {**os.environ, "COLUMNS": "400", "NO_COLOR": "1", "TERM": "dumb"}
    try:
        done = subprocess.run(
            words, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=LIMIT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Seen(-9, "", "", timed_out=True)
    return Seen(
        done.returncode,
        done.stdout.decode("utf-8", "replace"),
        done.stderr.decode("utf-8", "replace"),
    )


def execute(case: Case, folder: Path, judgebench: str) -> tuple[Seen, Seen | None]:
    """Run a case; what decide, or its last command, showed, and what align showed."""
    if "python" in case:
        (folder / "case_snippet.py").write_text(case["python"], encoding="utf-8")
        seen = run([judgebench, "-c", SNIPPET], folder)
        return seen, seen
    for text in as_list(case["command"]):
        words = [os.fsencode(word) for word in shlex.split(text)]  # names that are no UTF-8, too
        with_json = [b"--json"] if words[0] in (b"decide", b"align") else []
        seen = run([judgebench, *words, *with_json], folder)
        if seen.code not in ENDED_WELL or seen.has_traceback:
            return seen, None
    if words[0] == b"decide":
        return seen, run([judgebench, "align", *words[1:], "--json"], folder)
    return seen, seen if words[0] == b"align" else None


def as_list(value: Any) -> list[Any]:
    """The value, where it is a list; else a list of it alone."""
    return value if isinstance(value, list) else [value]


# --------------------------------------------------------------------------------- what is shown


def facts_of(seen: Seen, aligned: Seen | None) -> dict[str, Any]:
    """The facts that a case can state, as far as they are shown; None where one is not."""
    facts: dict[str, Any] = dict.fromkeys(
        ("annotators", "judges", "metrics", "items", "questions", "labels", "values", "accuracy",
         "humans", "outcomes", "failed")
    )  # fmt: skip
    decisions = seen.decisions if seen.decisions is not None else aligned and aligned.decisions
    if decisions:
        facts |= _facts_of_decisions(decisions)
    if aligned and aligned.alignment:
        facts |= _facts_of_rows(aligned, facts)
    return facts


def _facts_of_decisions(decisions: Sequence[Case]) -> dict[str, Any]:
    def by_judge(value: Callable[[Case], Any]) -> dict[tuple[str, str], Any]:
        return {(d["judge"], d["metric"]): value(d) for d in decisions}

    def largest(key: str) -> float | None:
        sizes = [number((d.get("more_data") or {}).get(key)) for d in decisions]
        return max(filter(None, sizes), default=None)

    return {
        "judges": {d["judge"] for d in decisions},
        "metrics": {d["metric"] for d in decisions},
        "outcomes": by_judge(lambda d: d["outcome"]),
        "accuracy": by_judge(lambda d: number((d.get("shares") or {}).get("judge"))),
        "humans": by_judge(lambda d: number((d.get("shares") or {}).get("humans"))),
        "items": largest("answers_now"),
        "questions": largest("questions_now"),
    }


def _facts_of_rows(aligned: Seen, facts: Case) -> dict[str, Any]:
    """The facts in the rows of an alignment, beside those of decisions."""
    people = _rows_of(aligned, "annotator_labels")
    spread = [
        row for row in _rows_of(aligned, "distribution") if row.get("blanks") in (None, "missing")
    ]
    values: dict[str, set[str]] = {}
    for row in (*people, *spread):
        values.setdefault(row["metric"], set()).add(str(row["human_label"]))
    more: dict[str, Any] = {"values": values}
    more["metrics"] = {row["metric"] for row in spread} or facts["metrics"]
    more["judges"] = facts["judges"] if facts["judges"] is not None else set()
    if people:
        more["annotators"] = {row["who"] for row in people}
        more["labels"] = round(sum(row["value"] for row in people))
    elif bar := re.fullmatch(r"Bar: ([^,]+)\.", aligned.bars[0] if aligned.bars else ""):
        more["annotators"] = None if " and " in bar[1] else {bar[1]}
    if facts["items"] is None and spread:
        more["items"] = max(row["n"] + (row.get("n_missing") or 0) for row in spread)
    rows = aligned.alignment or ()
    states = [r for r in rows if r["analysis"] == "verdicts" and r["judge"] in more["judges"]]
    if states:
        more["failed"] = round(sum(r["value"] for r in states if r["statistic"] != "ok"))
    return more


def _rows_of(aligned: Seen, analysis: str) -> list[Case]:
    rows = aligned.alignment or ()
    return [r for r in rows if r["analysis"] == analysis and r["statistic"] == "count"]


def number(value: Any) -> float | None:
    """The value, where it is a number."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value == value
    return value if is_number else None


# ------------------------------------------------------------------------------------ comparisons


def plain(text: object) -> str:
    """A name without case, accents and signs."""
    letters = unicodedata.normalize("NFKD", str(text).casefold())
    return re.sub(r"[\W_]+", "", "".join(c for c in letters if not unicodedata.combining(c)))


def same_labels(expected: Sequence[object], labels: Sequence[object] | set[str]) -> bool:
    """Labels differ in case and form of accents at most: 4,27 is not 4.27."""
    sides = [
        sorted(unicodedata.normalize("NFC", str(x)).casefold().strip() for x in side)
        for side in (expected, labels)
    ]
    return sides[0] == sides[1]


def same_names(expected: Any, names: set[str]) -> bool:
    """`expected` is a number, or a list of names; an entry may be a list of names that are as good,
    and `*` is any name."""
    if expected is None or isinstance(expected, int):
        return len(names) == (expected or 0)
    left = sorted(names)
    for options in sorted(map(as_list, expected), key=lambda options: "*" in options):
        hit = next((n for n in left if "*" in options or plain(n) in map(plain, options)), None)
        if hit is None:
            return False
        left.remove(hit)
    return not left


def is_close(expected: Any, value: float | None) -> bool:
    """True of a share that is one of those expected, but for rounding."""
    return value is not None and any(abs(value - x) <= 0.006 for x in as_list(expected))


def by_judge(
    expected: Any, shown: Mapping[tuple[str, str], Any] | None, test: Callable[[Any, Any], bool]
) -> str:
    """What is wrong by judge and metric, or empty. `expected` is for all, or by metric or judge."""
    if not shown:
        return "not shown"
    wrong = []
    for pair, value in shown.items():
        wanted = expected
        if isinstance(expected, dict):
            keys = [key for key in expected if plain(key) in map(plain, pair)]
            wanted = expected[keys[0]] if keys else None
        if wanted is None or not test(wanted, value):
            wrong.append(f"{'/'.join(pair)} {value}")
    if isinstance(expected, dict):
        names = {plain(name) for pair in shown for name in pair}
        wrong += [f"nothing of {key}" for key in expected if plain(key) not in names]
    return "; ".join(wrong[:4])


def missing_words(words: Sequence[Any], text: str) -> list[str]:
    """The words that a text lacks; of a list one is enough, and `=Word` keeps its case."""
    folded = unicodedata.normalize("NFC", text).casefold()

    def stands(word: str) -> bool:
        if word.startswith("="):
            return word[1:] in text
        return unicodedata.normalize("NFC", word).casefold() in folded

    options = [[str(word) for word in as_list(entry)] for entry in words]
    return ["/".join(words) for words in options if not any(map(stands, words))]


# ------------------------------------------------------------------------------------- judgements


def wrong_facts(right: Case, seen: Seen, aligned: Seen | None) -> Iterator[str]:
    """What a reading that is right has and this one has not."""
    facts = facts_of(seen, aligned)
    for key, expected in (right.get("roles") or {}).items():
        yield from _wrong_role(key, expected, facts, seen.text)
    tests: Mapping[str, tuple[str, Callable[[Any, Any], bool]]] = {
        "judge_accuracy": ("accuracy", is_close),
        "human_agreement": ("humans", is_close),
        "outcome": ("outcomes", lambda wanted, value: value in as_list(wanted)),
        "not_outcome": ("outcomes", lambda wanted, value: value not in as_list(wanted)),
    }
    for key, (fact, test) in tests.items():
        if key in right and (wrong := by_judge(right[key], facts[fact], test)):
            yield f"{key} {right[key]}: {wrong}"
    if "failed" in right and facts["failed"] not in as_list(right["failed"]):
        yield f"failed verdicts: {facts['failed']}, not {right['failed']}"
    text = seen.text + (aligned.text if aligned and aligned is not seen else "")
    yield from (f"does not say {word}" for word in missing_words(right.get("says", ()), text))
    if "roles" in right and aligned and aligned.code not in ENDED_WELL:
        yield f"align ends with {aligned.code}"


def _wrong_role(key: str, expected: Any, facts: Case, text: str) -> Iterator[str]:
    if key in ("item", "question"):  # a column, which the text alone names
        form = r"(?:items by|questions in) columns? ([^;\n\"]+)"
        column = re.search(form if key == "item" else form.replace("items by|", ""), text)
        is_right = column and expected is not None and plain(expected) in plain(column[1])
        if not is_right and (column or expected is not None):
            yield f"{key}: {column[1] if column else 'not said'}, not {expected}"
        return
    shown = facts[key]
    if shown is None:
        yield f"{key}: not shown"
    elif key in ("annotators", "judges", "metrics"):
        if not same_names(expected, shown):
            yield f"{key}: {', '.join(sorted(shown))}, not {expected}"
    elif key == "values":
        yield from _wrong_values(expected, shown)
    elif shown not in as_list(expected):
        yield f"{key}: {shown}, not {expected}"


def _wrong_values(expected: Mapping[str, Any], shown: Mapping[str, set[str]]) -> Iterator[str]:
    for metric, labels in expected.items():
        values = [v for m, v in shown.items() if metric == "*" or plain(m) == plain(metric)]
        if not values or not all(same_labels(labels, v) for v in values):
            yield f"values of {metric}: {[*map(sorted, values)]}, not {labels}"


def judge_case(case: Case, seen: Seen, aligned: Seen | None) -> tuple[str, str]:
    """How a case ends: ok, refused well, WRONG or traceback, and what is wrong."""
    right = as_list(case["right"])
    if seen.timed_out:
        return "WRONG", f"no end within {LIMIT_S} s"
    if seen.has_traceback or (aligned and aligned.has_traceback):
        return "traceback", seen.err.strip().splitlines()[-1]
    if seen.code not in ENDED_WELL:
        refusals = [wanted for wanted in right if wanted.get("refused")]
        lacking = [missing_words(wanted.get("names", ()), seen.error) for wanted in refusals]
        if seen.error and [] in lacking:
            return "refused well", ""
        words = min(lacking, key=len, default=["nothing: a reading was due"])
        error = seen.error.partition("\n")[0]
        return "WRONG", f"refused, but does not name {', '.join(words)}: {error}"
    readings = [wanted for wanted in right if not wanted.get("refused")]
    wrong = [[*wrong_facts(wanted, seen, aligned)] for wanted in readings]
    if [] in wrong:
        return "ok", ""
    facts = min(wrong, key=len, default=["read, though nothing in it can be read"])
    return "WRONG", " | ".join(facts)


def check_case(case: Case, name: str) -> None:
    """Raise ValueError for a case that states nothing that can be checked."""
    unknown = {*case} - CASE_KEYS
    for right in as_list(case["right"]):
        unknown |= {*right} - RIGHT_KEYS | {*(right.get("roles") or ())} - ROLE_KEYS
        unknown |= set() if {*right} - {"refused"} else {"right"}
    if unknown or ("command" in case) == ("python" in case):
        raise ValueError(f"{name}/case.yaml: {', '.join(sorted(unknown)) or 'command or python'}")
