"""People decide on revisions that two models talked over: `judgebench tune rounds`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from judgebench.errors import Problem, SetupError
from judgebench.files import to_line, write_atomically
from judgebench.learning.learnt import LEARNT
from judgebench.people.page import Item, Question, read_decisions, review_page
from judgebench.runs.folder import RunFolder
from judgebench.runs.run_bench import now
from judgebench.tuning.exchange import Case, Talk, read_turns
from judgebench.tuning.rounds import DECISIONS, TALKS, Decision, decisions_in

_NAME = "revisions"
_ASKED = (Question("decision", "Is the proposed label right?", ("accept", "reject")),)


@dataclass(frozen=True)
class Revisions:
    """What the talks of a judge came to, how many of those that wait are decided, and the page on
    which the others are."""

    outcomes: Mapping[str, int]
    waiting: int
    decided: int
    page: Path


def revisions(run: Path, name: str, tables: Sequence[Path] = ()) -> Revisions:
    """Write a page on which people decide on what waits, and revisions.jsonl with all proposals.
    Once the `tables` that they saved decide on all of it, the next run learns from that.

    Raises SetupError where the judge does not learn in rounds, and for tables that are unsound.
    """
    folder = RunFolder.existing(run, allow_incomplete=True)
    home, entry = folder.path / "tuning" / name, folder.manifest()["judges"].get(name, {})
    if "rounds" not in entry.get("about", {}):
        message = "is no judge of this run that learns in rounds"
        raise SetupError(Problem(message, str(folder.path), found=name))
    facts = [json.loads(path.read_text()) for path in home.glob(f"{entry['signature']}/*/{LEARNT}")]
    waiting = sorted({key for fact in facts for key in fact["waiting"]})
    talks, answers = dict[str, Talk](), folder.indexed_answers()
    for turn in read_turns(home / TALKS):
        if (row := answers.row(turn.item_id)) >= 0:
            case = Case(answers[row], turn.metric, turn.taught, turn.said)
            talks.setdefault(turn.key, Talk(case)).turns.append(turn)
    proposed = {k: t for k, t in talks.items() if t.outcome in ("agreed", "disputed")}
    shown = {key: _shown(key, talk) for key, talk in proposed.items()}
    lines = [to_line({"key": k, "outcome": t.outcome, **t.told()}) for k, t in proposed.items()]
    write_atomically(home / f"{_NAME}.jsonl", "".join(lines).encode())
    page = home / f"{_NAME}.html"
    write_atomically(page, review_page(_NAME, [shown[key] for key in waiting], _ASKED).encode())
    said = [read_decisions(table, list(shown.values()), _ASKED) for table in tables]
    found = {
        key: Decision(key=key, accepted=row["decision"] == "accept", when=now(),
                      reviewer=row.get("reviewer", ""), remark=row.get("remark", ""))
        for one in said
        for key, row in one.items()
        if row["decision"]
    }  # fmt: skip
    decided = sum(key in found for key in waiting)
    if decided == len(waiting) > 0:
        kept = {**decisions_in(home / DECISIONS), **found}
        content = "".join(to_line(decision.model_dump()) for decision in kept.values())
        write_atomically(home / DECISIONS, content.encode())
    outcomes = Counter[str](talk.outcome for talk in talks.values())
    return Revisions(dict(outcomes), len(waiting), decided, page)


def _shown(key: str, talk: Talk) -> Item:
    """A proposal as an item of the page."""
    case = talk.case
    about = f"people: {case.taught}\njudge: {case.said}\nproposed: {talk.proposal.label}"
    talked = "\n\n".join(f"{turn.by}: {turn.label} {turn.reason}".strip() for turn in talk.turns)
    title = f"{case.answer.item_id} · {case.metric} · {talk.outcome}"
    sections = [
        ["Question", case.answer.question], ["Answer", case.answer.text], ["Labels", about],
        ["What was said", talked],
    ]  # fmt: skip
    return {"id": key, "title": title, "sections": sections}
