"""The model that the tools ask while they write the files of these tests: what it is asked and what
it replies, always the same. It answers questions, and it grades answers."""

import json
from collections import Counter
from typing import Any

from loopback import Body, Loopback, Play, said, status

QUESTIONS = [
    ("opening", "When is the library open on Sundays?", "From 10 to 16."),
    ("loan", "For how long may I keep a book?", "For four weeks."),
    ("fine", "What does a late book cost?", "20 cents per day."),
    ("café", "Is there a café, and does it take cards?", "Yes, and it takes cards."),
    ("print", "Can I print at the library?", "Yes, 10 cents per page."),
    ("room", "How do I book a study room?", "On the website, up to a week ahead."),
]
ANSWERS = {
    "opening": "From 10 to 16.",
    "loan": 'Four weeks, then "renew", please.',
    "fine": "Nothing, books are free.",
    "café": "Yes:\n- coffee, tea\n- cards are accepted",
    "print": "I cannot say.",
    "room": "",  # a reply without any text
}
AGAIN = {"opening": "Sundays from 10."}  # every second time
NO_GRADE = "The answer could be right or wrong, I would rather not say."


def about(text: str) -> str:
    """The id of the question that a prompt is about: it names the question, or what to answer."""
    found = {
        text.rfind(words): key
        for key, question, reference in QUESTIONS
        for words in (question, reference, ANSWERS[key])
        if words
    }
    return found[max(found)] if max(found) >= 0 else "room"


def serve(fails: str = "") -> Loopback:
    """The models `small`, `broken` and `grader` behind an OpenAI-compatible server. The last two
    fail where a prompt is about the question `fails`."""

    asked: Counter[str] = Counter()

    def play(body: Body, _: int) -> Play:
        text = "\n".join(_text(message) for message in body["messages"])
        asked[text] += 1
        again, key = asked[text] % 2 == 0, about(text)
        if key == fails and body["model"] in ("grader", "broken"):
            return status(400, "the prompt was rejected")
        if body["model"] == "grader" or "GRADE" in text:
            return said(_grade(key, again, json_wanted="JSON" in text))
        return said(AGAIN.get(key, ANSWERS[key]) if again else ANSWERS[key])

    return Loopback(play)


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)


def _grade(key: str, again: bool, json_wanted: bool) -> str:
    if key == "room":
        return NO_GRADE
    good = key in ("opening", "loan") or (key == "café" and not again)
    reason = "It agrees with the rules." if good else "It does not agree with the rules."
    if json_wanted:
        return json.dumps({"reason": reason, "score": float(good), "pass": good})
    return f"{reason}\nGRADE: {'C' if good else 'I'}"
