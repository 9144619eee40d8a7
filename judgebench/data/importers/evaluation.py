"""Logs of tools that evaluate models: inspect_ai, lm-evaluation-harness and promptfoo.

A sample's output, a document's reply, the output of a provider under a prompt is an answer; a
scorer, a metric with a filter (`exact_match.strict-match`), an assertion is a judge.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from string import ascii_uppercase
from typing import Any

from judgebench.data.findings import Findings
from judgebench.data.guess import roles_by_name
from judgebench.data.importers.log import (
    CORRECT,
    Content,
    Given,
    Log,
    Sample,
    chat_text,
    content_text,
    first_line,
    label_text,
    parse_json,
    scalars,
)
from judgebench.errors import MissingExtra, raise_any
from judgebench.records import canonical_json

INSPECT_AI = "inspect_ai logs (.eval, JSON)"
_GRADES = frozenset("CIPN")  # correct, incorrect, partially correct, no answer
_NO_GRADE = "Grade not found in model output: "
_ATTACHED = re.compile("attachment://([0-9a-f]+)")
_UNREAD = {"events", "events_data", "messages", "store", "timelines"}
_UNREAD_REASONS = ("grader_failed", "invalid_response_format")


def read_inspect_ai(found: Content) -> Log | None:
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
    places = (f"{sample['id']} (epoch {sample['epoch']})" for sample in samples)
    found.check_once(places, "has samples with the same id and epoch")
    expected = (about.get("dataset") or {}).get("samples")
    expected = (expected or 0) * ((about.get("config") or {}).get("epochs") or 1)
    if expected > len(samples):
        log.left_out["samples that were never run"] += expected - len(samples)
    due = _due(samples, about.get("scorers") or [])
    for sample in samples:
        if sample.get("invalidation"):
            log.left_out["samples that were marked as invalid"] += 1
        else:
            log.samples.append(_epoch(sample, about["model"], due, log.left_out))
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
    """The value that the scorer itself gave, before anybody edited it."""
    history = score.get("history") or []
    first = history[0].get("value", "UNCHANGED") if history else "UNCHANGED"
    return score.get("value") if first == "UNCHANGED" else first


def _epoch(
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
            made.verdicts += _of_scorer(name, score, parts, whole)
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


def _of_scorer(
    scorer: str, score: Mapping[str, Any], parts: Mapping[str | None, str], whole: Any
) -> Iterator[Given]:
    """The verdicts in a score. Before 0.3.245 a grade that was not found was scored `I`."""
    value, raw = _value(score), whole(score.get("explanation") or "")
    lost = raw.startswith(_NO_GRADE)
    raw = raw.removeprefix(_NO_GRADE)
    for key, metric in parts.items():
        single = value.get(key) if isinstance(value, dict) else value
        label = "" if lost else label_text(single)
        unread = lost or score.get("reason") in _UNREAD_REASONS
        status = "ok" if label else "unparsed" if unread else "failed"
        yield Given(scorer, metric, label, status, raw)


LM_EVAL = "lm-evaluation-harness samples (--log_samples, JSONL)"
_NEEDED = ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps")
_KEYS = frozenset((
    *_NEEDED, "filter", "metrics", "doc_hash", "prompt_hash", "target_hash",
))  # fmt: skip
_INVALID = "[invalid]"
_CORRECT = ("acc", "exact_match")


def read_lm_eval(found: Content) -> Log | None:
    """The samples in a file; None where it holds none. Raises SetupError."""
    value = found.value
    if found.kind == "json" and isinstance(value, dict) and {"results", "configs"} <= value.keys():
        if "lm_eval_version" in value or "n-shot" in value:
            raise found.fail(
                "holds the scores of lm-evaluation-harness, and no replies",
                allowed="the file samples_….jsonl of --log_samples beside it",
            )
        return None
    rows = found.objects("doc_id", "doc", "filtered_resps")
    if not rows:
        return None
    lacking = Findings()
    for line, row in enumerate(rows, start=1):
        if missing := [key for key in _NEEDED if key not in row]:
            lacking.add("malformed", f"lacks {', '.join(missing)}", (str(found.path), line))
    raise_any(lacking.errors)
    places = (f"{row['doc_id']} (filter {row.get('filter', 'none')})" for row in rows)
    message = "has several rows of one document and filter: import each task by itself"
    found.check_once(places, message)
    log = Log("lm-evaluation-harness")
    log.notes.append("the file does not name the model: `system` is blank")
    several = len({row.get("filter") for row in rows}) > 1
    samples: dict[tuple[str, str], Sample] = {}
    for row in rows:
        made = _document(row)
        made = samples.setdefault((made.id, made.text), made)
        if len(made.replies) == 1:
            reading = _chosen(row["filtered_resps"]).strip()
            made.readings[row["filter"] if several else ""] = "" if reading == _INVALID else reading
        made.verdicts += _of_metrics(row, f".{row['filter']}" if several else "", log.left_out)
    log.samples = list(samples.values())
    return log


def _document(row: Mapping[str, Any]) -> Sample:
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
        likelihoods = [float(pair[0] if isinstance(pair, list) else pair) for pair in filtered]
        return choices[likelihoods.index(max(likelihoods))].strip(), ()
    replies = tuple(map(label_text, row["resps"][0] if row["resps"] else ()))
    if len(replies) < 2:
        return "".join(replies), replies
    return _chosen(filtered), replies


def _chosen(filtered: Sequence[Any]) -> str:
    """The reply that the filter left."""
    chosen = filtered[0] if filtered else ""
    return label_text(chosen[0] if isinstance(chosen, list) and chosen else chosen)


def _of_metrics(row: Mapping[str, Any], rule: str, left_out: Counter[str]) -> Iterator[Given]:
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


PROMPTFOO = "promptfoo results (--output results.json)"
# Before 0.121 nothing but the reason said that a grader's reply could not be read.
_HUMAN = "human"  # a rating in the web page: it replaces the result of the whole test
_UNREAD_WORDS = ("Could not extract JSON", "produced malformed response")


def read_promptfoo(found: Content) -> Log | None:
    """The results in a file; None where it holds none. Raises SetupError."""
    value = found.value
    if found.kind != "json" or not isinstance(value, dict):
        return None
    results = value.get("results", value)  # what --output writes, or its summary alone
    results = results.get("results") if isinstance(results, dict) else None
    if not isinstance(results, list) or not {"stats", "version"} & {*value, *value["results"]}:
        return None
    if not results:
        raise found.fail("holds no results: the evaluation ran no test")
    if not all(isinstance(r, dict) and "vars" in r and "provider" in r for r in results):
        return None
    version = (value.get("metadata") or {}).get("promptfooVersion", "")
    log = Log(f"promptfoo {version}".strip())
    prompts = list(dict.fromkeys(map(_prompt, results)))
    systems = {  # the prompt is named where there are several
        (who, prompt): f"{who}, prompt {prompts.index(prompt) + 1}" if len(prompts) > 1 else who
        for who, prompt in ((_provider(r["provider"]), _prompt(r)) for r in results)
    }
    tests: dict[str, int] = {}
    for result in results:
        number = tests.setdefault(canonical_json(result["vars"]), len(tests) + 1)
        sample = _test_result(result, f"test-{number}", systems)
        _grade(sample, result, log.left_out)
        log.samples.append(sample)
    if any(sample.labels for sample in log.samples):
        log.notes.append(
            "ratings by hand are labels of `human` for the metric 'result'; promptfoo does not say "
            "whose they are, and the graders' results may have been in view"
        )
    return log


def _provider(about: Any) -> str:
    if isinstance(about, dict):
        return str(about.get("label") or about.get("id") or "")
    return str(about)


def _prompt(result: Mapping[str, Any]) -> str:
    """The prompt before the variables were put into it."""
    prompt = result.get("prompt") or {}
    return str(prompt.get("label") or prompt.get("raw") or "")


def _test_result(
    result: Mapping[str, Any], name: str, systems: Mapping[tuple[str, str], str]
) -> Sample:
    variables = scalars(result["vars"])
    roles = roles_by_name(variables)
    prompt = (result.get("prompt") or {}).get("raw") or ""
    with suppress(ValueError, AttributeError):  # a chat is written as JSON
        prompt = chat_text(json.loads(prompt))
    question = variables[roles["question"]] if "question" in roles else prompt
    response = result.get("response") or {}
    output = response.get("output")
    error = result.get("error") or response.get("error") or ""
    none = output is None or (result.get("failureReason") == 2 and not output)
    return Sample(
        name,
        "" if none else output if isinstance(output, str) else json.dumps(output),
        question,
        systems[_provider(result["provider"]), _prompt(result)],
        variables.get(roles.get("reference", ""), ""),
        prompt=prompt,
        error=(error or "no output") if none else "",
        metadata=variables,
    )


def _grade(sample: Sample, result: Mapping[str, Any], left_out: Counter[str]) -> None:
    """Add what people and graders said of a sample."""
    parts = [p for p in (result.get("gradingResult") or {}).get("componentResults") or () if p]
    named = [part for part in parts if part.get("assertion")]
    if len(named) < len(parts):
        left_out["results of a whole set of assertions"] += len(parts) - len(named)
    by_hand = [part for part in named if part["assertion"].get("type") == _HUMAN]
    sample.labels += (Given(_HUMAN, "result", _passed(part)) for part in by_hand)
    graded = [part for part in named if part not in by_hand]
    if graded:
        names = _names([part["assertion"] for part in graded])
        sample.verdicts += map(_verdict, names, graded)
    elif sample.text:
        why = first_line(result.get("error") or "")
        due = _names((result.get("testCase") or {}).get("assert") or ())
        sample.verdicts += (Given(*names, "", "failed", why) for names in due)


def _passed(part: Mapping[str, Any]) -> str:
    return "pass" if part.get("pass") else "fail"


def _names(assertions: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """The judge and the metric of each assertion: its type and grader, and its `metric`, or else
    its type, numbered where a test has several of it."""
    types: Counter[str] = Counter()
    for assertion in assertions:
        kind, grader = str(assertion.get("type")), assertion.get("provider")
        judge = f"{kind} ({_provider(grader)})" if grader else kind
        metric = assertion.get("metric")
        if not metric:
            types[judge] += 1
            metric = kind if types[judge] == 1 else f"{kind} {types[judge]}"
        yield judge, str(metric)


def _verdict(names: tuple[str, str], part: Mapping[str, Any]) -> Given:
    """The verdict of one assertion: where the grader failed, promptfoo says `fail`, which is
    none."""
    reason = str(part.get("reason") or "")
    unreadable = any(words in reason for words in _UNREAD_WORDS)
    if unreadable or (part.get("metadata") or {}).get("graderError"):
        return Given(*names, status="unparsed" if unreadable else "failed", raw=reason)
    return Given(*names, _passed(part), "ok", reason)
