"""Arguments on disk: one JSON object a line, and the systems that wrote them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from judgebench.backends.contract import Finish
from judgebench.errors import Problem, SetupError
from judgebench.files import read_lines
from judgebench.ranking.proxy.task import CONTROL_CASES, ProxyTask


@dataclass(frozen=True, slots=True)
class Argument:
    """What `system` says on one instance of a task.

    `signature` hashes what it was made with (model, prompt, decoding, seed, instance), '' where it
    was given. `finish` is as of a backend's Reply: `length` was cut at the most tokens, and where a
    model declined (`refused`) or its context was too short (`too_long`) there is no text.
    `verbatim` is the share of an extract that really stands in the document, None for free text;
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
    """Where a run keeps what one system wrote."""
    return folder / "proxy" / f"arguments-{system}.jsonl"


def read_arguments(path: Path) -> Iterator[tuple[int, Argument]]:
    """Line number and argument of every line. Raises SetupError for a damaged one."""
    for number, value in read_lines(path):
        try:
            argument = Argument(**value)
        except TypeError as error:
            raise SetupError(Problem(f"is no argument: {error}", str(path), number)) from None
        for name in ("task", "item_id", "system", "text"):
            said = getattr(argument, name)
            if not isinstance(said, str) or not (said.strip() or name == "text"):
                message = "must be a text" + (" that is not blank" if name != "text" else "")
                raise SetupError(Problem(message, str(path), number, name, repr(said)[:80]))
        yield number, argument


def plain_argument(argument: Argument) -> dict[str, object]:
    """What stands in its line: what is unknown is left out."""
    found = {f.name: getattr(argument, f.name) for f in fields(Argument)}
    return {k: v for k, v in found.items() if v not in (None, "") or k == "text"}


def texts_by_system(arguments: Iterable[Argument], task: str) -> dict[str, dict[str, str]]:
    """What each system says on each item of one task, by system and item. The last of an item
    counts; where it is blank the item is left out, but for the control cases, which may be blank
    on purpose."""
    last = {(a.system, a.item_id): a.text for a in arguments if a.task == task}
    found: dict[str, dict[str, str]] = {}
    for (system, item), text in last.items():
        if text.strip() or system in CONTROL_CASES:
            found.setdefault(system, {})[item] = text
    return found


def given_arguments(paths: Iterable[Path], tasks: Sequence[ProxyTask]) -> list[Argument]:
    """The arguments of the user's own files.

    Raises SetupError with every line that names an unknown task or item, or an item that this
    system has written on before.
    """
    known = {task.name: {i.item_id for i in task.instances} for task in tasks}
    found: dict[tuple[str, str, str], Argument] = {}
    problems: list[Problem] = []
    for path in paths:
        for number, argument in read_arguments(path):
            problem = _problem(argument, known, found)
            if problem:
                field, message, value = problem
                problems.append(Problem(message, str(path), number, field, value, kind=message))
            found[argument.task, argument.item_id, argument.system] = argument
    if problems:
        raise SetupError(problems)
    return list(found.values())


def _problem(
    argument: Argument,
    known: Mapping[str, set[str]],
    found: Mapping[tuple[str, str, str], Argument],
) -> tuple[str, str, str] | None:
    """Field, message and value of what is wrong with it."""
    if argument.task not in known:
        return "task", "is no task of this benchmark", argument.task
    if argument.item_id not in known[argument.task]:
        return "item_id", f"is no item of the task {argument.task}", argument.item_id
    if (argument.task, argument.item_id, argument.system) in found:
        return "item_id", f"has an argument of {argument.system} before", argument.item_id
    return None
