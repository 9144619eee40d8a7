"""Which generator's argument an LLM-trained evaluator is trained on, instance by instance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from judgebench.ranking.proxy.task import TaskInstance
from judgebench.records import content_hash


def drawn_systems(
    instances: Sequence[TaskInstance],
    arguments: Mapping[str, Mapping[str, str]],
    *,
    seed: int,
    draw: int = 0,
) -> dict[str, str]:
    """The system whose argument each instance gets, by item; those without any are left out.

    `arguments` maps a system to its texts by item. Over the instances that all systems wrote on,
    the systems' counts differ by one at most; the others then go to the system that was drawn
    least. Nothing depends on the order of instances or systems.
    """

    def chance(*what: str) -> str:
        return content_hash([seed, draw, *what])

    by_item = {
        i.item_id: [s for s in sorted(arguments) if arguments[s].get(i.item_id, "").strip()]
        for i in instances
    }
    drawn: dict[str, str] = {}
    counts: Counter[str] = Counter()
    # Those with the widest choice first, so that the rest can make up for what is uneven.
    order = sorted(by_item, key=lambda item: (-len(by_item[item]), chance("item", item)))
    for item in order:
        if by_item[item]:
            least = min(by_item[item], key=lambda s: (counts[s], chance("system", item, s)))
            drawn[item] = least
            counts[least] += 1
    return drawn
