"""Samples of lm-evaluation-harness: the JSONL of `--log_samples`.

A document's reply is an answer, a metric with a filter is a judge: `exact_match.strict-match`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from judgebench.data.findings import Findings
from judgebench.data.guess import roles_by_name
from judgebench.data.importers.content import Content
from judgebench.data.importers.log import (
    CORRECT,
    Given,
    Log,
    Sample,
    chat_text,
    label_text,
    scalars,
)
from judgebench.errors import SetupError

ABOUT = "lm-evaluation-harness samples (--log_samples, JSONL)"
_NEEDED = ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps")
_KEYS = frozenset((
    *_NEEDED, "filter", "metrics", "doc_hash", "prompt_hash", "target_hash",
))  # fmt: skip
_NOT_FOUND = "[invalid]"
_CORRECT = ("acc", "exact_match")


def read(found: Content) -> Log | None:
    """The samples in a file; None where it holds none. Raises SetupError."""
    value = found.value
    if found.kind == "json" and isinstance(value, dict) and {"results", "configs"} <= value.keys():
        if "lm_eval_version" in value or "n-shot" in value:
            message = "holds the scores of lm-evaluation-harness, and no replies"
            raise found.fail(message, allowed="the file samples_….jsonl of --log_samples beside it")
        return None
    rows = found.objects("doc_id", "doc", "filtered_resps")
    if not rows:
        return None
    lacking = Findings()
    for line, row in enumerate(rows, start=1):
        if missing := [key for key in _NEEDED if key not in row]:
            lacking.add("malformed", f"lacks {', '.join(missing)}", (str(found.path), line))
    if lacking.errors:
        raise SetupError(lacking.errors)
    places = Counter((str(row["doc_id"]), row.get("filter", "none")) for row in rows)
    if twice := [f"{doc} (filter {name})" for (doc, name), n in places.items() if n > 1]:
        message = "has several rows of one document and filter: import each task by itself"
        raise found.fail(message, found=", ".join(twice[:5]))
    log = Log("lm-evaluation-harness")
    log.notes.append("the file does not name the model: `system` is blank")
    several = len({row.get("filter") for row in rows}) > 1
    samples: dict[tuple[str, str], Sample] = {}
    for row in rows:
        made = _sample(row)
        made = samples.setdefault((made.id, made.text), made)
        if len(made.replies) == 1:
            made.readings[row["filter"] if several else ""] = _reading(row)
        made.verdicts += _verdicts(row, f".{row['filter']}" if several else "", log.left_out)
    log.samples = list(samples.values())
    return log


def _sample(row: Mapping[str, Any]) -> Sample:
    doc = row["doc"] if isinstance(row["doc"], dict) else {"document": row["doc"]}
    roles = roles_by_name(doc)
    prompt, choices = _asked(row["arguments"])
    question = str(doc[roles["question"]]) if "question" in roles else prompt
    text, replies = _text(row, choices)
    target = row["target"]
    return Sample(
        str(row["doc_id"]), text, question,
        reference=target if isinstance(target, str) else json.dumps(target, ensure_ascii=False),
        prompt=prompt, replies=replies, metadata=scalars(doc),
    )  # fmt: skip


def _asked(arguments: Any) -> tuple[str, list[str]]:
    """The prompt, and the continuation of each request whose likelihood was asked for."""
    if isinstance(arguments, dict):  # since 0.4.3: {gen_args_0: {arg_0: …, arg_1: …}}
        arguments = [list(pair.values()) for pair in arguments.values()]
    if not arguments:
        return "", []
    prompt = arguments[0][0]
    prompt = prompt[0] if isinstance(prompt, list) and prompt else prompt
    with suppress(ValueError, AttributeError, TypeError):  # a chat is written as JSON
        prompt = chat_text(json.loads(prompt))
    texts = [pair[1] for pair in arguments if len(pair) > 1 and isinstance(pair[1], str)]
    return str(prompt), texts


def _text(row: Mapping[str, Any], choices: list[str]) -> tuple[str, tuple[str, ...]]:
    """The text that the metrics are about, and every reply."""
    filtered = row["filtered_resps"]
    if choices and len(choices) == len(filtered):
        return choices[_likeliest(filtered)].strip(), ()
    replies = tuple(map(label_text, row["resps"][0] if row["resps"] else ()))
    if len(replies) < 2:
        return "".join(replies), replies
    return _chosen(filtered), replies


def _chosen(filtered: Sequence[Any]) -> str:
    """What the filter left of the replies."""
    chosen = filtered[0] if filtered else ""
    return label_text(chosen[0] if isinstance(chosen, list) and chosen else chosen)


def _reading(row: Mapping[str, Any]) -> str:
    """What the filter read from a reply; nothing where it found nothing."""
    found = _chosen(row["filtered_resps"]).strip()
    return "" if found == _NOT_FOUND else found


def _likeliest(pairs: Sequence[Any]) -> int:
    """The place of the highest log-likelihood."""
    found = [float(pair[0] if isinstance(pair, list) else pair) for pair in pairs]
    return found.index(max(found))


def _verdicts(row: Mapping[str, Any], rule: str, left_out: Counter[str]) -> Iterator[Given]:
    """A verdict of each metric; what is no single value is an intermediate result."""
    for name in row.get("metrics") or [key for key in row if key not in _KEYS]:
        value = row.get(name)
        if isinstance(value, list | dict) or name not in row:
            left_out[f"values of the metric {name} that are no single value"] += 1
            continue
        label = label_text(value)
        metric = CORRECT if name.startswith(_CORRECT) and label in ("0", "1") else name
        status = "ok" if label else "failed"
        yield Given(f"{name}{rule}", metric, label, status)
