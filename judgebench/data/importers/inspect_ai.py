"""Logs of inspect_ai: `.eval` (through inspect_ai itself) and JSON.

A sample's output is an answer, its scorers are judges, and an epoch is one more answer, or a repeat
where the model wrote the same again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from string import ascii_uppercase
from typing import Any

from judgebench.data.importers.content import Content, parse_json
from judgebench.data.importers.log import (
    CORRECT,
    Given,
    Log,
    Sample,
    chat_text,
    content_text,
    first_line,
    label_text,
    scalars,
)
from judgebench.errors import MissingExtra

ABOUT = "inspect_ai logs (.eval, JSON)"
_GRADES = frozenset("CIPN")  # correct, incorrect, partially correct, no answer
_NOT_FOUND = "Grade not found in model output: "
_ATTACHED = re.compile("attachment://([0-9a-f]+)")
_UNREAD = {"events", "events_data", "messages", "store", "timelines"}
_UNREADABLE = ("grader_failed", "invalid_response_format")


def read(found: Content) -> Log | None:
    """The log in a file; None where it holds none. Raises SetupError."""
    if found.kind == "zip":
        if not {"header.json", "_journal/start.json"} & set(found.value):
            return None
        return _log(_unpacked(found), found)
    value = found.value
    if found.kind != "json" or not isinstance(value, dict) or "eval" not in value:
        return None
    about = value["eval"]
    if not isinstance(about, dict) or "task" not in about or "model" not in about:
        return None
    return _log(value, found)


def _unpacked(found: Content) -> dict[str, Any]:
    """The log as JSON: its archive is compressed as the standard library cannot read before 3.14,
    and samples of an unfinished log lie elsewhere."""
    try:
        from inspect_ai.log import read_eval_log
    except ImportError:
        raise MissingExtra("Reading an .eval log", "inspect", "inspect-ai") from None
    try:
        log = read_eval_log(str(found.path), format="eval", exclude_fields=_UNREAD)
        value = found.cleaned(parse_json(log.model_dump_json()))
    except Exception as error:  # of any kind, for the archive may hold anything
        raise found.fail(f"is damaged: inspect_ai cannot read it ({error})") from None
    assert isinstance(value, dict)
    return value


def _log(value: Mapping[str, Any], found: Content) -> Log:
    about = value["eval"]
    version = (about.get("packages") or {}).get("inspect_ai", "")
    log = Log(f"inspect_ai {version}, task {about['task']}, model {about['model']}")
    samples = value.get("samples") or []
    if not samples:
        raise found.fail(f"holds no samples (the status of the log is {value.get('status')!r})")
    if value.get("status") != "success":
        log.notes.append(f"the log is incomplete: its status is {value.get('status')!r}")
    places: Counter[tuple[str, int]] = Counter((str(s["id"]), s["epoch"]) for s in samples)
    if twice := [f"{name} (epoch {epoch})" for (name, epoch), n in places.items() if n > 1]:
        raise found.fail("has samples with the same id and epoch", found=", ".join(twice[:5]))
    expected = (about.get("dataset") or {}).get("samples")
    expected = (expected or 0) * ((about.get("config") or {}).get("epochs") or 1)
    if expected > len(samples):
        log.left_out["samples that were never run"] += expected - len(samples)
    due = _due(samples, about.get("scorers") or [])
    for sample in samples:
        if sample.get("invalidation"):
            log.left_out["samples that were marked as invalid"] += 1
        else:
            log.samples.append(_sample(sample, about["model"], due, log.left_out))
    if not due:
        log.notes.append("no scorer was run: there are no verdicts")
    return log


def _due(
    samples: Iterable[Mapping[str, Any]], scorers: Iterable[Mapping[str, Any]]
) -> dict[str, dict[str | None, str]]:
    """The metrics of each scorer: by key where its values are objects, else by None."""
    values: dict[str, dict[str | None, set[str]]] = {str(s["name"]): {} for s in scorers}
    for sample in samples:
        for name, score in (sample.get("scores") or {}).items():
            value = _value(score)
            single = not isinstance(value, dict | list)
            parts = {None: value} if single else value if isinstance(value, dict) else {}
            for key, part in parts.items():
                values.setdefault(name, {}).setdefault(key, set()).add(label_text(part))
    return {
        name: {key: _metric(name, key, found) for key, found in _without_none(parts).items()}
        for name, parts in values.items()
    }


def _without_none(parts: dict[str | None, set[str]]) -> dict[str | None, set[str]]:
    """The parts of a scorer: a value without parts beside such with parts is an unscored one."""
    if len(parts) > 1 and parts.get(None, set()) <= {""}:
        parts = {key: found for key, found in parts.items() if key is not None}
    return parts or {None: set()}


def _metric(scorer: str, key: str | None, values: set[str]) -> str:
    if key is not None:
        return key
    return CORRECT if values - {""} <= _GRADES else scorer


def _value(score: Mapping[str, Any]) -> Any:
    """What the scorer itself gave, before anybody edited it."""
    history = score.get("history") or []
    first = history[0].get("value", "UNCHANGED") if history else "UNCHANGED"
    return score.get("value") if first == "UNCHANGED" else first


def _sample(
    sample: Mapping[str, Any], model: str, due: Mapping[str, Mapping[str | None, str]],
    left_out: Counter[str],
) -> Sample:  # fmt: skip
    attached = sample.get("attachments") or {}

    def whole(text: str) -> str:
        return _ATTACHED.sub(lambda match: attached.get(match[1], match[0]), text)

    asked, target = sample.get("input", ""), sample.get("target") or ""
    question = asked if isinstance(asked, str) else chat_text(asked)
    for letter, choice in zip(ascii_uppercase, sample.get("choices") or (), strict=False):
        question += f"\n{letter}) {choice}"
    error = (sample.get("error") or {}).get("message", "")
    made = Sample(
        str(sample["id"]),
        whole(_completion(sample.get("output") or {})),
        whole(question),
        model,
        target if isinstance(target, str) else "; ".join(map(str, target)),
        error=error,
        metadata=scalars(sample.get("metadata") or {}),
    )
    scores = sample.get("scores") or {}
    for name, parts in due.items():
        score = scores.get(name)
        if score and isinstance(_value(score), list):
            left_out[f"values of the scorer {name} that are lists"] += 1
        elif score:
            if len(score.get("history") or []) > 1:
                left_out["edits of scores (the scorer's own value was kept)"] += 1
            made.verdicts += _verdicts(name, score, parts, whole)
        else:
            made.verdicts += [
                Given(name, metric, status="failed", raw=first_line(error))
                for metric in parts.values()
            ]
    return made


def _completion(output: Mapping[str, Any]) -> str:
    if "completion" in output:
        return str(output["completion"] or "")
    choices: Sequence[Any] = output.get("choices") or []
    return content_text(choices[0]["message"].get("content")) if choices else ""


def _verdicts(
    scorer: str, score: Mapping[str, Any], parts: Mapping[str | None, str], whole: Any
) -> Iterator[Given]:
    """The verdicts in a score. Before 0.3.245 a grade that was not found was scored `I`."""
    value, raw = _value(score), whole(score.get("explanation") or "")
    lost = raw.startswith(_NOT_FOUND)
    raw = raw.removeprefix(_NOT_FOUND)
    for key, metric in parts.items():
        single = value.get(key) if isinstance(value, dict) else value
        label = "" if lost else label_text(single)
        unread = lost or score.get("reason") in _UNREADABLE
        status = "ok" if label else "unparsed" if unread else "failed"
        yield Given(scorer, metric, label, status, raw)
