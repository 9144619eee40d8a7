"""Check boxes: a metric on which several labels may be right, from the page to a decision."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from annotate_case import Person, command, enters, label_rows, served
from browser import Browser, NewTab, Tab, needs_axe, needs_browser
from built_case import study_file, table
from page_case import SAVED, TITLE

import judgebench as jb
from judgebench.annotation.init import annotate
from judgebench.annotation.lead import Collected
from judgebench.annotation.store import SERVED, Store
from judgebench.annotation.tasks import read_key
from judgebench.records import ADJUDICATED

LABELS = ("Calm", "Warm", "Curt", "Rude")
PEOPLE = ("ann", "ben", "cem")
TONE = {
    "id": "tone", "title": "Tone", "question": "Which tone?", "kind": "nominal", "several": True,
    "labels": [*LABELS], "abstain": "No idea",
}  # fmt: skip
RIGHT = {
    "quartz-0s": ("Calm", "Warm"),
    "quartz-1h": ("Curt", "Rude"),
}  # else Warm alone
CHECKED = "[...document.querySelectorAll('#fields :checked')].map(e => e.value).join('+')"
FIRST = "[...document.querySelectorAll('.first')].map(e => e.querySelector('input').value).join()"


def made(folder: Path, **changes: Any) -> Path:
    """A study of twelve answers for three people."""
    file = study_file(folder, rubric="tone.yaml", per_item=3, **changes)
    rubric = {"name": "tone", "version": "1", "instructions": "Label.", "metrics": [TONE]}
    (folder / "tone.yaml").write_text(yaml.safe_dump(rubric), "utf-8")
    annotate(file, folder / "study")
    return folder / "study"


def items_of(study: Path) -> dict[str, str]:
    """The item behind each screen."""
    screens = read_key(study / "key.json").screens
    return {name: of["tone"].columns["item_id"] for name, of in screens.items()}


def says(who: str, item: str) -> str:
    """Ben turns the order around; cem gives one label only."""
    is_anchor = not item.startswith("quartz")  # the ids of anchors say nothing
    labels = RIGHT["quartz-0s"] if is_anchor else RIGHT.get(item, ("Warm",))
    return " | ".join({"ann": labels, "ben": labels[::-1], "cem": labels[-1:]}[who])


def everybody_labels(study: Path) -> None:
    items = items_of(study)
    with served(study) as site:
        for who in PEOPLE:
            label_all(site.enters(who), who, items)


def label_all(person: Person, who: str, items: dict[str, str]) -> None:
    for one in person.gets("/api/work")["items"]:
        event = person.event(one["id"], "tone", says(who, items[one["id"]]))
        assert person.save(event)["saved"] == [event["client_id"]]


def test_sets_survive_a_kill_and_are_decided_upon(tmp_path: Path) -> None:
    study = made(tmp_path)
    items = items_of(study)
    with command(study, "--port", "0") as (process, _, address):
        label_all(enters(study, address, "ann"), "ann", items)
        half = dict(list(items.items())[:6])
        ben = enters(study, address, "ben")
        for screen, item in half.items():
            ben.save(ben.event(screen, "tone", says("ben", item)))
        process.kill()
        process.wait()
    with command(study, "--port", "0") as (_, _, address):
        for who in ("ben", "cem"):
            label_all(enters(study, address, who), who, items)
    rows = label_rows(study)
    found = {(row["annotator"], row["item_id"]): row["label"] for row in rows}
    assert found == {(who, item): says(who, item) for who in PEOPLE for item in items.values()}
    verdicts = pd.DataFrame(
        [(item, "one", RIGHT.get(item, ("Warm",))[0]) for item in items.values()]
        + [(item, "all", " | ".join(LABELS)) for item in items.values()],
        columns=["item_id", "judge", "tone"],
    )
    made_study = jb.study(
        study / SERVED, verdicts, rubric=tmp_path / "tone.yaml", truth={"blind": "yes"},
    )  # fmt: skip
    kept = made_study.humans["tone"].ratings.sets
    assert sorted({*kept.ravel().tolist()}) == [2, 3, 8, 12]
    gaps = {
        d.judge: next(c.estimate.value for c in d.replace if c.key == "humans_accuracy")
        for d in jb.decide(made_study).decisions
    }
    assert gaps["one"] > gaps["all"]
    drawn = jb.draw(made_study, "agreed", judge="one", items=10)  # as sets: all but two
    expert = pd.DataFrame({
        "item_id": drawn.item_id, "annotator": "eve", "tone": ["Warm", *["Warm | Calm"] * 9],
    })  # fmt: skip
    sentence = jb.count_drawn(made_study, "agreed", expert, judge="one")
    assert "contradicts 9 of 10 items" in sentence


@pytest.mark.parametrize(
    "label", ["Calm | Calm", "Calm | Kind", "Calm | No idea", "Calm | ", "Calm|Warm", '["Calm"]']
)
def test_what_is_no_set_of_labels_is_refused(tmp_path: Path, label: str) -> None:
    study = made(tmp_path)
    screen = next(iter(items_of(study)))
    with served(study) as site:
        ann = site.enters("ann")
        event = ann.event(screen, "tone", label)
        assert ann.save(event)["refused"] == {event["client_id"]: "is no label"}
        fine = [ann.event(screen, "tone", one) for one in ("No idea", "Rude | Calm", "", None)]
        assert len(ann.save(*fine)["saved"]) == 4


def test_the_lead_counts_every_label_and_adjudicates_sets(tmp_path: Path) -> None:
    study = made(tmp_path)
    everybody_labels(study)
    items = items_of(study)
    with served(study) as site:
        lead = site.enters("lead")
        figures = lead.gets("/api/lead")
        (use,) = figures["distribution"]
        assert use["people"]["ann"] == use["people"]["ben"] == [1, 11, 1, 1]
        assert use["people"]["cem"] == [0, 11, 0, 1]
        agreement = {r["statistic"]: r["value"] for r in figures["agreement"] if r["n"]}
        # On two items cem gives one of the two labels that both others give.
        assert agreement["hit"] == 1
        assert agreement["coverage"] == pytest.approx((34 + 2 * 0.5) / 36)
        cases = lead.gets("/api/lead/disagreements")
        assert {items[one["screen"]] for one in cases} == {"quartz-0s", "quartz-1h"}
        calm = next(one for one in cases if items[one["screen"]] == "quartz-0s")
        assert calm["labels"] == ["Calm | Warm", "Warm", "Warm | Calm"]
        assert (calm["field"]["together"], len(calm["field"]["options"])) == (4, 5)
        sent = {
            "client_id": "adjudication-0001", "screen": calm["screen"], "hash": calm["hash"],
            "field": "tone", "label": "Warm | Calm", "reason": "genuine", "remark": "",
        }  # fmt: skip
        assert lead.asks("POST", "/api/lead/adjudicate", sent).value["refused"] == {}
    kept = [row["label"] for row in label_rows(study) if row["annotator"] == ADJUDICATED]
    assert kept == ["Warm | Calm"]
    with closing(Store(study / SERVED)) as store:
        said = " ".join(str(Collected(store)).split())
    assert "Hit Coverage" in said


def test_a_known_set_is_found_in_whatever_order(tmp_path: Path) -> None:
    tmp_path.mkdir(exist_ok=True)
    table(
        tmp_path / "known.csv", ["item_id", "question", "text", "tone"],
        [["known-1", "Is tea good?", "Yes.", "Warm; Calm"]],
    )  # fmt: skip
    study = made(tmp_path, anchors_from="known.csv")
    everybody_labels(study)
    with closing(Store(study / SERVED)) as store:
        found = Collected(store)
    hits = {row.keys["who"]: row.estimate.value for row in found.hits}
    assert hits == {"ann": 1, "ben": 1, "cem": 0}
    (missed,) = found.figures["missed"]
    assert missed["said"] == {"cem": "Warm"}


async def opened(new_tab: NewTab, address: str) -> Tab:
    tab = await new_tab(address, "ann")
    await tab.sees(TITLE, "Item 1 of 12")
    await tab.press("Escape")  # the instructions
    return tab


@needs_browser
@needs_axe
def test_boxes_are_chosen_by_key_and_by_hand(browser: Browser, tmp_path: Path) -> None:
    study = made(tmp_path)

    async def visit(new_tab: NewTab) -> None:
        with served(study) as site:
            tab = await opened(new_tab, f"{site.address}/#{site.link('ann')}")
            await tab.press("3")
            await tab.press("1")
            await tab.sees(CHECKED, "Calm+Curt")
            assert await tab.value(FIRST) == "Curt"
            await tab.press("3")  # taken back
            await tab.sees(CHECKED, "Calm")
            assert await tab.value(FIRST) == ""
            await tab.press("u")
            await tab.sees(CHECKED, "Calm+Curt")
            await tab.press("5")  # no label of several
            await tab.sees(CHECKED, "No idea")
            await tab.press("2")
            await tab.sees(CHECKED, "Warm")
            await tab.press("0")
            await tab.sees(CHECKED, "")
            assert await tab.value("document.querySelectorAll('#fields :checked').length") == 1
            await tab.value("document.querySelector('input[value=Rude]').click()")
            await tab.value("document.querySelector('input[value=Warm]').click()")
            await tab.sees(CHECKED, "Warm+Rude")
            assert await tab.value(FIRST) == "Rude"
            for width, scheme in ((1440, "light"), (390, "dark")):
                await tab.scheme(scheme)
                await tab.screen(width)
                assert await tab.axe() == []
                assert await tab.value("document.documentElement.scrollWidth") <= width
            await tab.press("Enter")
            await tab.sees(TITLE, "Item 2 of 12")
            await tab.press("ArrowLeft")
            await tab.sees(CHECKED, "Warm+Rude")
            await tab.sees(SAVED, "Saved")
            assert not tab.complaints()

    browser.run(visit)
    (row,) = label_rows(study)
    assert row["label"] == "Rude | Warm"
