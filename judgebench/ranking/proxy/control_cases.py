"""Control cases of a proxy task: what stands in place of an argument, for each ranked instance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from judgebench.ranking.proxy.arguments import Argument
from judgebench.ranking.proxy.task import ProxyTask
from judgebench.records import content_hash
from judgebench.stress.probes.arguments import ControlCase, Instance, Retrieve, control_case

if TYPE_CHECKING:
    from judgebench.ranking.proxy.retrieval.chain import PassageRetriever


def control_arguments(
    task: ProxyTask, cases: Sequence[ControlCase], seed: int, retriever: PassageRetriever | None
) -> list[Argument]:
    """The texts of every case for every ranked test instance, by systems named as the cases.

    Noise is the gold argument of another of these instances, of another group. `retriever` is only
    asked for the case `passages`. Raises SetupError as `probes.arguments.control_case` does.
    """
    instances = [instance.for_control_cases() for instance in task.ranked]
    return [
        argument for case in cases for argument in _of_case(task, case, instances, seed, retriever)
    ]


def _of_case(
    task: ProxyTask,
    case: ControlCase,
    instances: Sequence[Instance],
    seed: int,
    retriever: PassageRetriever | None,
) -> list[Argument]:
    about: Any = seed if case == "noise" else None
    retrieve: Retrieve | None = None
    if case == "passages" and retriever is not None:
        queries = list(dict.fromkeys(instance.text for instance in instances))
        retrieve = dict(zip(queries, retriever.retrieve_all(queries), strict=True)).__getitem__
        about = retriever.describe()
    texts = control_case(case, instances, seed, retrieve)
    return [
        Argument(
            task.name, i.item_id, case, text, signature=content_hash([case, about, i.text, text])
        )
        for i, text in zip(instances, texts, strict=True)
    ]
