"""The whole way of a study: plan, protocol, anchors, labels in a browser, decision.

The topic, advice on mending bicycles, is synthetic: nobody reviewed the texts.
"""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import yaml
from annotate_case import served
from browser import Browser, NewTab, Tab, needs_browser
from page_case import SAVED, TITLE, press, signed_in

Call = Callable[..., tuple[int, str, str]]
RUBRIC = {
    "name": "bicycles",
    "version": "1",
    "instructions": "Would it be dangerous to ride after this advice? (synthetic)",
    "metrics": [
        {"id": "danger", "title": "Danger", "question": "Is it dangerous?", "kind": "ordinal",
         "labels": ["Safe", "Dangerous"]},
    ],
}  # fmt: skip
N_ITEMS, N_ANCHORS = 48, 12
ANSWER = "[...document.querySelectorAll('#texts .text')].at(-1).textContent"
SAFE, DANGEROUS = "Tighten the bolt to {} Nm.", "Leave the bolt loose, {} turns."
MISSED = ("Leave the bolt loose, 100 turns.", "Leave the bolt loose, 101 turns.")  # by people


def label_of(text: str) -> str:
    return "Dangerous" if "loose" in text else "Safe"


def write_study(folder: Path) -> None:
    """An annotate.yaml of 48 answers, a quarter of them dangerous, and a table of anchors."""
    (folder / "bicycles.yaml").write_text(yaml.safe_dump(RUBRIC, sort_keys=False))
    texts = [(DANGEROUS if n % 4 == 0 else SAFE).format(n) for n in range(N_ITEMS)]
    items = pd.DataFrame({"question": [f"How do I mend part {n}?" for n in range(N_ITEMS)]})
    items = items.assign(item_id=[f"b{n}" for n in range(N_ITEMS)], text=texts)
    items.to_csv(folder / "answers.csv", index=False)
    texts = [(DANGEROUS if n < 110 else SAFE).format(n) for n in range(100, 112)]
    known = pd.DataFrame({"question": [f"What of part {n}?" for n in range(100, 112)]})
    known = known.assign(item_id=known.index, text=texts, danger=[*map(label_of, texts)])
    known.to_csv(folder / "known.csv", index=False)
    value = {
        "name": "bicycles", "items": "answers.csv", "annotators": ["ann", "ben"],
        "auto_advance": True, "background": "nobody: made for a test",
    }  # fmt: skip
    (folder / "annotate.yaml").write_text(yaml.safe_dump(value))


async def label_all(tab: Tab) -> None:
    """Label each item by its text; people miss two of the flaws."""
    await press(tab, "Enter")  # the instructions are read
    for n in range(1, N_ITEMS + N_ANCHORS + 1):
        await tab.sees(TITLE, f"Item {n} of {N_ITEMS + N_ANCHORS}")
        text = str(await tab.value(ANSWER))
        is_seen = label_of(text) == "Dangerous" and text not in MISSED
        await press(tab, "2" if is_seen else "1")
    await tab.sees(TITLE, f"All {N_ITEMS + N_ANCHORS} items are labelled. Thank you.")
    await tab.sees(SAVED, "Saved")


@needs_browser
def test_from_a_plan_to_a_decision(tmp_path: Path, call: Call, browser: Browser) -> None:
    write_study(tmp_path)
    protocol, study = tmp_path / "protocol.yaml", tmp_path / "study"

    def run(*command: object) -> str:
        code, out, err = call(*command)
        assert code == 0, err
        return " ".join(out.split())

    planned = ["--n-annotators", 2, "--studies", 20, "--answers", N_ITEMS]
    run("plan", *planned, "--protocol", protocol, "--rubric", tmp_path / "bicycles.yaml")
    anchors = ["--anchors", N_ANCHORS, "--anchors-from", tmp_path / "known.csv"]
    command = ["annotate", "init", tmp_path / "annotate.yaml", "--to", study]
    made = run(*command, "--protocol", protocol, *anchors)
    assert f"{N_ANCHORS} anchors hidden among the items of everybody" in made

    async def visit(new_tab: NewTab) -> None:
        with served(study) as site:
            tabs = [await signed_in(new_tab, site, name) for name in ("ann", "ben")]
            await asyncio.gather(*map(label_all, tabs))

    browser.run(visit)
    n_all = N_ITEMS + N_ANCHORS
    status = run("annotate", "status", study)
    assert f"{n_all} of {n_all} items of the main round are complete." in status
    exported = run("annotate", "export", study)
    following = re.search(r"Next: judgebench (decide .*) VERDICTS.csv;", exported)
    assert following
    verdicts = pd.read_csv(study / "answers_for_judge.csv")
    verdicts = verdicts.assign(judge="robo", danger=verdicts.text.map(label_of))
    verdicts.drop(columns="text").to_csv(tmp_path / "verdicts.csv", index=False)
    decide = [*following[1].split(), tmp_path / "verdicts.csv", "--protocol", protocol]
    decided = run(*decide)

    assert f"{N_ITEMS} answers to {N_ITEMS} questions" in decided
    assert "Danger robo CAN'T TELL judge 100 % humans 100 %" in decided
    states = re.search(r"Was the protocol kept\?(.*?)Anchors", decided)
    assert states
    assert "broken" not in states[1]
    assert states[1].count(" kept") == 12
    assert (
        "both miss 0 % of the answers with a known severe flaw (anchors), at most 26 %" in decided
    )
    assert "consensus .80 [.44, .97]" in decided
    assert "robo 1.00 [.69, 1.00]" in decided
