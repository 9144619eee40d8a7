"""A small exam, synthetic and not clinically reviewed, and a model that opens its questions."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

from judgebench.models.contract import Reply, Request

ROWS = [
    # id, question, options, key
    ("antidote", "The antidote for ethylene glycol is:", ("Fomepizole", "Naloxone"), "1"),
    ("negative", "Which of these is NOT an opioid?", ("Morphine", "Aspirin"), "2"),
    ("list", "Which of the following is true?", ("Iron is a metal", "Iron is a gas"), "1"),
    ("vague", "A drug for a headache is:", ("Paracetamol", "Insulin"), "1"),
    ("told", "The capsule of Glisson covers:", ("Liver", "Spleen"), "1"),
    ("case", "Normal but for a rash, except on the face. What is it?", ("Eczema", "Gout"), "1"),
]  # fmt: skip


def exam(folder: Path) -> Path:
    """The exam as a CSV file."""
    path = folder / "exam.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item_id", "question", "option_1", "option_2", "key"])
        writer.writerows([item, asked, *options, key] for item, asked, options, key in ROWS)
    return path


def kind_of(request: Request) -> str:
    """Which of the prompts asks."""
    assert request.schema is not None
    return "+".join(request.schema["required"])


def model(request: Request) -> str:
    """Opens what it can: `list` is unsuitable by one prompt and points to options by the other,
    `vague` has another answer, `told` gives its answer away."""
    text = request.messages[1].content
    if kind_of(request) == "best":
        return json.dumps({"best": "A"})
    if kind_of(request) == "other+only":
        vague = "headache" in text
        return json.dumps({"other": "Ibuprofen" if vague else "", "only": "no" if vague else "yes"})
    asked = next(asked for _, asked, _, _ in ROWS if asked in text)
    plain = request.messages[0].content.startswith("You edit")
    if "following" in asked:
        suitable = {"suitable": "yes", "question": "Which of the following is true of iron?"}
        return json.dumps({"suitable": "no", "question": ""} if plain else suitable)
    if "Glisson" in asked:
        return json.dumps({"suitable": "yes", "question": "What covers the liver?"})
    return json.dumps(
        {"suitable": "yes", "question": f"{'What' if plain else 'Say what'}: {asked}"}
    )


def but(change: Callable[[Request], str | Reply | None]) -> Callable[[Request], str | Reply]:
    """The model, but for what `change` says otherwise."""
    return lambda request: change(request) or model(request)
