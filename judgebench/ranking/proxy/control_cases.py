"""Control cases: texts in place of arguments, which must rank below any real argument.

An argument defends the label of an instance, such as the diagnosis of a case. The four cases: no
argument, the correct label alone, the argument of an unrelated instance, and retrieved passages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from judgebench.errors import Problem, SetupError, shorten
from judgebench.ranking.proxy.arguments import Argument
from judgebench.ranking.proxy.task import ControlCase, ProxyTask, TaskInstance
from judgebench.records import content_hash

if TYPE_CHECKING:
    from judgebench.ranking.proxy.passages import PassageRetriever


def control_arguments(
    task: ProxyTask, cases: Sequence[ControlCase], seed: int, retriever: PassageRetriever | None
) -> list[Argument]:
    """The texts of every case for every ranked test instance, by systems named as the cases.

    Noise is the gold argument of another of these instances, of another group; where nobody wrote
    gold arguments there is none. `retriever` is only asked for the case `passages`. Raises
    SetupError as `control_case` does.
    """
    found = []
    argued = any(i.argument.strip() for i in task.ranked)
    for case in (c for c in cases if argued or c != "noise"):
        texts = control_case(case, task.ranked, seed, retriever)
        about: Any = seed if case == "noise" else None
        if case == "passages" and retriever is not None:
            about = retriever.describe()
        found += [
            Argument(task.name, i.item_id, case, text, content_hash([case, about, i.text, text]))
            for i, text in zip(task.ranked, texts, strict=True)
        ]
    return found


def control_case(
    kind: ControlCase,
    instances: Sequence[TaskInstance],
    seed: int,
    retriever: PassageRetriever | None = None,
) -> list[str]:
    """The argument that each instance gets in that case, in the order of `instances`.

    Only `noise` depends on the seed, and on no order; only `passages` needs `retriever`, which is
    asked for each different text. Raises SetupError with every instance that has no unrelated
    argument, or for which nothing is retrieved.
    """
    match kind:
        case "no-argument":
            return ["" for _ in instances]
        case "label-only":
            return [instance.label_text for instance in instances]
        case "noise":
            return _noise(instances, seed)
        case "passages":
            if retriever is None:
                raise SetupError("the control case passages needs a collection to retrieve from")
            return _passages(instances, retriever)


def _noise(instances: Sequence[TaskInstance], seed: int) -> list[str]:
    """The argument of an unrelated instance for each.

    Every argument is used once where no group holds more than half of the instances: in a row that
    keeps groups together, a shift by the size of the largest group leaves none in its own.
    """

    def place(instance: TaskInstance) -> tuple[str, str, str]:
        """Groups in a random order, and the instances within them too, however they came in."""
        group = content_hash([seed, "group", instance.group])
        return group, instance.group, content_hash([seed, "instance", instance.item_id])

    row = sorted(instances, key=place)
    shift = max(Counter(instance.group for instance in row).values(), default=0)
    drawn: dict[str, str] = {}
    problems = []
    for i, instance in enumerate(row):
        donors = [row[(i + shift) % len(row)]]
        if not _unrelated(instance, donors[0]):
            donors = [donor for donor in row if _unrelated(instance, donor)]
        if donors:
            n = int(content_hash([seed, "donor", instance.item_id]), 16) % len(donors)
            drawn[instance.item_id] = donors[n].argument
        else:
            where = f"argument of {shorten(instance.item_id)}"
            problems.append(Problem("no unrelated instance has an argument", field=where))
    if problems:
        raise SetupError(problems)
    return [drawn[instance.item_id] for instance in instances]


def _unrelated(instance: TaskInstance, donor: TaskInstance) -> bool:
    return (
        donor.argument.strip() != ""
        and donor.group != instance.group
        and donor.text != instance.text
        and donor.argument != instance.argument
    )


def _passages(instances: Sequence[TaskInstance], retriever: PassageRetriever) -> list[str]:
    queries = list(dict.fromkeys(instance.text for instance in instances))
    held = dict(zip(queries, retriever.retrieve_all(queries), strict=True))
    found = ["\n\n".join(held[instance.text]) for instance in instances]
    problems = [
        Problem("no passage is found for this text", field=shorten(instance.item_id))
        for instance, text in zip(instances, found, strict=True)
        if not text.strip()  # it would be the case no-argument under another name
    ]
    if problems:
        raise SetupError(problems)
    return found
