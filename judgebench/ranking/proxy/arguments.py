"""Arguments on disk, one JSON object per line, and models that are asked for them.

Models write one-shot, drawn as in section 3.2.1 of the paper. An argument is on disk before the
next is waited for. What was written with the same model, prompt, decoding and seed on the same text
is never asked for again. Of an item's lines the last counts: one that was written otherwise is
followed by the one that is wanted, or by a blank one until it comes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from judgebench.data.findings import counted_once
from judgebench.errors import Problem, SetupError
from judgebench.files import drop_torn_line, read_lines, to_line, write_atomically
from judgebench.models.contract import Backend, Finish, Message, Reply, Request
from judgebench.ranking.proxy.task import CONTROL_CASES, GeneratorConfig, ProxyTask, TaskInstance
from judgebench.records import content_hash
from judgebench.texts import sentences
from judgebench.writer import WritingTerms, Written, which_model, write_texts

# Small models repeat the heading above the example.
_HEADING = re.compile(r"^\s*\**(?:argument|evidence)\**\s*:\**\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Argument:
    """The text of `system` on one instance of a task.

    `signature` hashes what it was made with (model, prompt, decoding, seed, instance), '' where it
    was given. `finish` is as of a backend's Reply: `length` was cut at the most tokens, and where a
    model declined (`refused`) or its context was too short (`too_long`) there is no text.
    `verbatim` is the share of an extract that occurs in the document, None for free text;
    `cost` is in US dollars, None if unknown.
    """

    task: str
    item_id: str
    system: str
    text: str
    signature: str = ""
    finish: Finish = "stop"
    verbatim: float | None = None
    cost: float | None = None


def argument_id(task: str, item_id: str, system: str) -> str:
    """The id under which one argument is judged, by evaluators and judges alike: the `item_id` of
    its Answer and of every Verdict on it."""
    return f"{task}/{item_id}/{system}"


def arguments_path(folder: Path, system: str) -> Path:
    """The file of one system's arguments in a run folder."""
    return folder / "proxy" / f"arguments-{system}.jsonl"


def read_arguments(path: Path) -> Iterator[Argument]:
    """The argument of every line; none without the file. Raises SetupError for a damaged line."""
    lines = read_lines(path) if path.is_file() else ()
    yield from (_argument(value, path, number) for number, value in lines)


def _argument(value: Mapping[str, Any], path: Path, number: int) -> Argument:
    try:
        argument = Argument(**value)
    except TypeError as error:
        raise SetupError(Problem(f"is no argument: {error}", str(path), number)) from None
    for name in ("task", "item_id", "system", "text"):
        said = getattr(argument, name)
        if not isinstance(said, str) or not (said.strip() or name == "text"):
            message = "must be a text" + (" that is not blank" if name != "text" else "")
            raise SetupError(Problem(message, str(path), number, name, repr(said)[:80]))
    return argument


def argument_line(argument: Argument) -> str:
    """The argument as a line of JSON, without fields that are unknown."""
    found = {f.name: getattr(argument, f.name) for f in fields(Argument)}
    return to_line({k: v for k, v in found.items() if v not in (None, "") or k == "text"})


def last_arguments(arguments: Iterable[Argument], task: str) -> dict[str, dict[str, Argument]]:
    """The arguments on one task that count, by system and item: the last of each item, none where
    that is blank, but for the control cases, which may be blank on purpose."""
    last = {(a.system, a.item_id): a for a in arguments if a.task == task}
    found: dict[str, dict[str, Argument]] = {}
    for (system, item), argument in last.items():
        if argument.text.strip() or system in CONTROL_CASES:
            found.setdefault(system, {})[item] = argument
    return found


def given_arguments(paths: Iterable[Path], tasks: Sequence[ProxyTask]) -> list[Argument]:
    """The arguments of the user's own files.

    Raises SetupError with every line that holds no argument, names an unknown task or item, or an
    item that this system has written on before. What several lines share is one problem.
    """
    known = {task.name: {i.item_id for i in task.instances} for task in tasks}
    found: dict[tuple[str, str, str], Argument] = {}
    problems: list[Problem] = []
    for path in paths:
        for number, given in read_lines(path):
            try:
                argument = _argument(given, path, number)
            except SetupError as error:
                problems += error.problems
                continue
            task, item, system = argument.task, argument.item_id, argument.system
            checks = {
                "is no task of this benchmark": task not in known,
                f"is no item of the task {task}": item not in known.get(task, ()),
                f"has an argument of {system} before": (task, item, system) in found,
            }
            if message := next((message for message, fails in checks.items() if fails), ""):
                field, value = ("item_id", item) if task in known else ("task", task)
                problems.append(Problem(message, str(path), number, field, value, kind=message))
            found[task, item, system] = argument
    if problems:
        raise SetupError(counted_once(problems))
    return list(found.values())


@dataclass(frozen=True)
class ArgumentWriter:
    """A generator at work: its backend, the file of its arguments, and the seed of every draw."""

    generator: GeneratorConfig
    backend: Backend
    path: Path
    seed: int

    def write(
        self, task: ProxyTask, instances: Sequence[TaskInstance], terms: WritingTerms
    ) -> Written:
        """Have the model write on each instance and append its arguments to the file.

        Raises what `write_texts` raises; what was written is kept.
        """
        way = [
            task.name, task.prompt.content_hash, which_model(self.backend),
            self.generator.decoding.model_dump(), self.seed,
        ]  # fmt: skip
        wanted = {content_hash([*way, i.item_id, i.question, i.context]): i for i in instances}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        drop_torn_line(self.path)
        kept = list(read_arguments(self.path))
        done = {a.signature: a for a in kept if a.signature}
        todo = {signature: i for signature, i in wanted.items() if signature not in done}
        with self.path.open("ab", buffering=0) as file:
            righted = _set_right(wanted, done, kept, task.name)
            file.write("".join(map(argument_line, righted)).encode())

            def keep(instance: TaskInstance, reply: Reply) -> None:
                file.write(argument_line(self._argument(task, instance, reply)).encode())

            ask, before = partial(self._request, task), len(wanted) - len(todo)
            return write_texts(todo, self.backend, ask, keep, terms, before)

    def _request(self, task: ProxyTask, key: str, instance: TaskInstance) -> Request:
        decoding = self.generator.decoding
        return Request(
            key=key,
            messages=argument_messages(task, instance),
            max_tokens=decoding.max_tokens,
            temperature=decoding.temperature,
            top_p=decoding.top_p,
            # A seed of its own for each instance: with one for all, models repeat themselves.
            seed=int(content_hash([self.seed, instance.item_id]), 16) % 2**31,
        )

    def _argument(self, task: ProxyTask, instance: TaskInstance, reply: Reply) -> Argument:
        text = _HEADING.sub("", reply.text).strip() if reply.finish in ("stop", "length") else ""
        share = verbatim_share(text, instance.context) if task.prompt.reply == "evidence" else None
        system = self.generator.name
        return Argument(
            task.name, instance.item_id, system, text, reply.key, reply.finish, share, reply.cost
        )


def argument_messages(task: ProxyTask, instance: TaskInstance) -> tuple[Message, ...]:
    """The messages that ask a model for an argument on one instance."""
    system, user = task.prompt.render_texts(question=instance.question, context=instance.context)
    return Message("system", system), Message("user", user)


def write_pairs(task: ProxyTask, path: Path) -> int:
    """Write what a generator of this task can be tuned on (`judgebench tune generator`), and return
    how many lines that is: for each training instance what a model is asked, word for word, and the
    gold argument as its `target`. Nothing of the other splits is in it.

    After section 4.1 and Table 3 of the paper on proxy tasks. Raises SetupError where no training
    instance has an argument.
    """
    found = [i for i in task.of("train") if i.version == 0 and i.argument.strip()]
    if not found:
        where = f"task {task.name}"
        raise SetupError(Problem("has no gold argument in its training split", field=where))
    lines = [
        {
            "task": task.name,
            "item_id": i.item_id,
            "messages": [asdict(message) for message in argument_messages(task, i)],
            "target": i.argument.strip(),
        }
        for i in found
    ]
    write_atomically(path, "".join(map(to_line, lines)).encode())
    return len(lines)


def costs_of(path: Path) -> list[float]:
    """The cost of each argument of a file; a duplicate line was paid for once."""
    return [a.cost or 0.0 for a in {a.signature: a for a in read_arguments(path)}.values()]


def _set_right(
    wanted: Mapping[str, TaskInstance],
    done: Mapping[str, Argument],
    kept: Sequence[Argument],
    task: str,
) -> Iterator[Argument]:
    """Lines for items whose last line is of another signature: the wanted one again, or a blank
    one, which is no argument."""
    last = {a.item_id: a for a in kept if a.task == task}
    for signature, instance in wanted.items():
        before = last.get(instance.item_id)
        if before is None or before.signature == signature:
            continue
        if signature in done:
            yield done[signature]
        elif before.finish != "failed":
            yield Argument(task, instance.item_id, before.system, "", finish="failed")


# --- evidence: does an extract occur in the document, word for word? ----------

_SEPARATOR = re.compile(r"(?:^|(?<=\s))\*\*(?=\s|$)|\n")
_QUOTES, _DASHES = '"`´‘’‚‛“”„‟«»‹›′″', "‐‑‒–—―−﹘﹣－"
_FOLDED = str.maketrans(_QUOTES + _DASHES, "'" * len(_QUOTES) + "-" * len(_DASHES))
_BULLETS = "*•‣◦▪●○·∙⁃"
_NUMBERED = re.compile(r"^\(?(?:\d{1,2}|[a-z])[.)]\s+")
_ENDS = " '.,;:!?()[]"


def verbatim_share(extract: str, document: str) -> float | None:
    """The share of an extract's characters that occur in the document, None for an empty extract.

    The extract is split at ` ** ` and at line breaks, and a piece that is not found whole
    into its sentences; what is found counts with its length. White space, quotes, dashes, case,
    list bullets and the marks around a piece make no difference; a word counts only whole.

    share = sum of the lengths of pieces found / sum of the lengths of all pieces
    """
    held = " ".join(map(_fold, document.splitlines()))
    found = total = 0
    for part in _SEPARATOR.split(extract):
        whole = part.strip()
        for piece in [whole] if _stands(whole, held) else [s.text for s in sentences(whole)]:
            length = len(_NUMBERED.sub("", _fold(piece)).strip(_ENDS))
            total += length
            found += length * _stands(piece, held)
    return found / total if total else None


def _stands(piece: str, held: str) -> bool:
    """True where the words of a piece occur in the folded document in a row, with its number in a
    list or without."""
    folded = _fold(piece)
    for core in (folded.strip(_ENDS), _NUMBERED.sub("", folded).strip(_ENDS)):
        # No part of a word, and no part of a number: 18 does not occur in 18.5.
        pattern = rf"(?<!\w)(?<!\d[.,]){re.escape(core)}(?!\w)(?![.,]\d)"
        if core and core in held and re.search(pattern, held):
            return True
    return False


def _fold(text: str) -> str:
    """`text` in one line and in one spelling of letters, quotes and dashes, without bullets."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    words = (word.strip(_BULLETS) for word in folded.translate(_FOLDED).split())
    return " ".join(word for word in words if word.strip("-"))
