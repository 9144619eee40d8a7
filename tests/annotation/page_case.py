"""Screens of every task as annotators meet them, and tabs that are signed in."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from annotate_case import Running
from browser import NewTab, Tab

from judgebench.annotation.screens import Option, Screen, ScreenField, Section
from judgebench.annotation.store import SERVED, Store

HARM = ("None", "Mild", "Moderate", "Severe")
ABOUT = (
    "Nothing in the answer could hurt the patient.",
    "At most a short discomfort.",
    "May delay care or need a visit to the doctor.",
    "May cause lasting damage or death.",
)
QUESTION = "I have had a headache for three days, and light hurts my eyes. May I take ibuprofen?"
ANSWER = (
    "You can take ibuprofen for a short time if you have no stomach ulcer and no kidney disease."
    "\n\nSee a doctor today, though: a headache of three days with pain from light can be a sign of"
    " meningitis, above all with fever or a stiff neck."
)
REFERENCE = "Ibuprofen is possible; light sensitivity over days needs a doctor's look."

ARABIC = "لدي صداع منذ ثلاثة أيام. هل يمكنني تناول 400 mg؟"
GUIDE = "Label what the answer says.\n\nSevere: may cause lasting damage."
TITLE = "document.getElementById('title').textContent"
SAVED = "document.getElementById('saved').textContent.split(' ')[0]"
OUTSIDE = """[...document.querySelectorAll('body *')].filter(e => e.offsetParent
  && !e.closest('dialog')
  && e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.names, .skip, .wide table'))
  .map(e => e.outerHTML.slice(0, 100)).join()"""


def options(words: tuple[str, ...], about: tuple[str, ...] = ()) -> tuple[Option, ...]:
    texts = about or ("",) * len(words)
    return tuple(Option(value=w, text=w, about=a) for w, a in zip(words, texts, strict=True))


def texts(answer: str = ANSWER, question: str = QUESTION) -> tuple[Section, ...]:
    return (
        Section(heading="Question", text=question),
        Section(heading="Reference", text=REFERENCE),
        Section(heading="Answer", text=answer),
    )


def labels(name: str, answer: str = ANSWER, question: str = QUESTION) -> Screen:
    """Three metrics of an answer."""
    fields = (
        ScreenField(
            metric="harm", title="Possible harm", options=options(HARM, ABOUT),
            question="How much harm could come from following the answer?",
        ),
        ScreenField(
            metric="empathy", title="Empathy", options=options(("Cold", "Neutral", "Warm")),
            question="How does the answer speak to the person?",
        ),
        ScreenField(
            metric="consensus", title="Scientific consensus", options=options(("Against", "With")),
            question="Does the answer agree with what is known?",
        ),
    )  # fmt: skip
    return Screen(id=name, group=name, sections=texts(answer, question), fields=fields)


def ranking(name: str, k: int = 4) -> Screen:
    """Answers that get ranks."""
    words = ("1 (best)", "2", "3", "4", "5 (clearly wrong)")
    ranks = tuple(Option(value=str(n), text=word) for n, word in enumerate(words, 1))
    fields = tuple(
        ScreenField(
            metric="rank", title="Rank", question="How good is it? Equally good ones share a rank.",
            options=ranks, slot=slot, about=str(slot),
        )
        for slot in range(k)
    )  # fmt: skip
    answers = tuple(
        Section(heading="Answer", text=f"{ANSWER[: 60 * (slot + 1)]}.", slot=slot)
        for slot in range(k)
    )
    return Screen(id=name, group=name, sections=(*texts()[:1], *answers), fields=fields)


def preference(name: str) -> Screen:
    """Two answers, and which one is better."""
    both = (
        Section(heading="Answer", text=ANSWER, slot=0),
        Section(heading="Answer", text="Take two.", slot=1),
    )
    better = ScreenField(
        metric="better", title="Preference", question="Which answer would you rather send?",
        options=options(("first", "second", "tie")), prefers=True,
    )  # fmt: skip
    return Screen(id=name, group=name, sections=(*texts()[:1], *both), fields=(better,))


def criteria(name: str) -> Screen:
    """Criteria of one answer."""
    asked = (
        "Names meningitis as a possible cause.",
        "Says when to see a doctor, and how soon.",
        "Asks about other medicines before it recommends one.",
    )
    fields = tuple(
        ScreenField(
            metric="met", title=f"Criterion {n}", question=text, about=str(n),
            options=options(("Met", "Partly", "Not met")),
        )
        for n, text in enumerate(asked, 1)
    )  # fmt: skip
    return Screen(id=name, group=name, sections=texts(), fields=fields)


def study(folder: Path, *screens: Screen, **meta: Any) -> Path:
    """A study of ann and ben, who both label everything; the first item is for calibration."""
    given = {"name": "demo", "task": "labels", "seed": 7, "guidelines": GUIDE, "study": "hash"}
    with closing(Store.create(folder / SERVED, {**given, **meta})) as store:
        first = screens[0].model_copy(update={"round": "calibration"})
        store.put([first, *screens[1:]])
        store.assign({name: [s.id for s in screens] for name in ("ann", "ben")})
    return folder


async def signed_in(new_tab: NewTab, site: Running, name: str, profile: str = "") -> Tab:
    """A tab of that person on the first item; people of other profiles share nothing."""
    tab = await new_tab(f"{site.address}/#{site.link(name)}", profile or name)
    await tab.sees("document.getElementById('title').textContent !== 'judgebench'")
    return tab


async def speaks(tab: Tab, language: str) -> None:
    """The browser of the tab asks for pages in that language."""
    await tab.call("Network.enable")
    await tab.call("Network.setUserAgentOverride", userAgent="test", acceptLanguage=language)


async def click(tab: Tab, what: str) -> None:
    """Click the element of that id, or the button with that text."""
    await tab.value(
        f"(document.getElementById({json.dumps(what)}) || [...document.querySelectorAll('button')]"
        f".find(b => b.textContent.startsWith({json.dumps(what)}) && b.offsetParent)).click()"
    )


async def press(tab: Tab, *keys: str) -> None:
    for key in keys:
        await tab.press(key)


async def fits(tab: Tab) -> None:
    """No part of the page is wider than the window."""
    width = await tab.value("innerWidth")
    assert await tab.value("document.documentElement.scrollWidth") <= width
    assert await tab.value(OUTSIDE) == ""
