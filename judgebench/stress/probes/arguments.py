"""Control cases for arguments: texts that a judge of arguments must rank below any real argument.

An argument defends the label of an instance, such as the diagnosis of a case. The four cases: no
argument, the correct label alone, the argument of an unrelated instance, and retrieved passages.
They are those that proxy evaluators of medical arguments are tried with. The retriever here goes
by words; anything that takes a query and gives passages may stand in its place.
"""

from __future__ import annotations

import math
import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, get_args

from judgebench.data.findings import shorten
from judgebench.errors import Problem, SetupError
from judgebench.records import content_hash
from judgebench.stress.probes.text import sentences, words

ControlCase = Literal["no-argument", "label-only", "noise", "passages"]
CONTROL_CASES: tuple[ControlCase, ...] = get_args(ControlCase)

# A query gives passages, the best first.
Retrieve = Callable[[str], Sequence[str]]

_K1, _B = 1.2, 0.75


@dataclass(frozen=True, slots=True)
class Instance:
    """One text with its correct label and an argument for it.

    Instances of one `group` are related: no argument of it is noise to the others. It is the text
    where none is given.
    """

    item_id: str
    text: str
    label: str
    argument: str
    group: str = ""

    def __post_init__(self) -> None:
        if not self.group:
            object.__setattr__(self, "group", self.text)


def control_case(
    kind: ControlCase, instances: Sequence[Instance], seed: int, retrieve: Retrieve | None = None
) -> list[str]:
    """The argument that each instance gets in that case, in the order of `instances`.

    Only `noise` depends on the seed, and on no order; only `passages` needs `retrieve`, which is
    asked for each instance's text. Raises SetupError with every instance that has no unrelated
    argument, or for which nothing is retrieved.
    """
    match kind:
        case "no-argument":
            return ["" for _ in instances]
        case "label-only":
            return [instance.label for instance in instances]
        case "noise":
            return _noise(instances, seed)
        case "passages":
            if retrieve is None:
                raise SetupError("the control case passages needs a collection to retrieve from")
            return _passages(instances, retrieve)


# --- noise ---------------------------------------------------------------------------------------


def _noise(instances: Sequence[Instance], seed: int) -> list[str]:
    """The argument of an unrelated instance for each.

    Every argument is used once where no group holds more than half of the instances: in a row that
    keeps groups together, a shift by the size of the largest group leaves none in its own.
    """
    _check_ids(instances)
    row = _row(instances, seed)
    shift = max(Counter(instance.group for instance in row).values(), default=0)
    drawn: dict[str, str] = {}
    problems = []
    for i, instance in enumerate(row):
        donor: Instance | None = row[(i + shift) % len(row)]
        if donor is None or not _unrelated(instance, donor):
            donor = _any_unrelated(instance, row, seed)
        if donor is None:
            where = f"argument of {shorten(instance.item_id)}"
            problems.append(Problem("no unrelated instance has an argument", field=where))
        else:
            drawn[instance.item_id] = donor.argument
    if problems:
        raise SetupError(problems)
    return [drawn[instance.item_id] for instance in instances]


def _check_ids(instances: Sequence[Instance]) -> None:
    counts = Counter(instance.item_id for instance in instances)
    problems = [
        Problem("stands more than once", field="item_id", found=shorten(item_id))
        for item_id, count in counts.items()
        if count > 1
    ]
    if problems:
        raise SetupError(problems)


def _row(instances: Sequence[Instance], seed: int) -> list[Instance]:
    """Groups in an order of chance, and instances within them too, whatever order they came in."""

    def place(instance: Instance) -> tuple[str, str, str]:
        group = content_hash([seed, "group", instance.group])
        return group, instance.group, content_hash([seed, "instance", instance.item_id])

    return sorted(instances, key=place)


def _unrelated(instance: Instance, donor: Instance) -> bool:
    return (
        donor.argument.strip() != ""
        and donor.group != instance.group
        and donor.text != instance.text
        and donor.argument != instance.argument
    )


def _any_unrelated(instance: Instance, row: Sequence[Instance], seed: int) -> Instance | None:
    donors = [donor for donor in row if _unrelated(instance, donor)]
    if not donors:
        return None
    return donors[int(content_hash([seed, "donor", instance.item_id]), 16) % len(donors)]


# --- passages ------------------------------------------------------------------------------------


def _passages(instances: Sequence[Instance], retrieve: Retrieve) -> list[str]:
    found = ["\n\n".join(retrieve(instance.text)) for instance in instances]
    problems = [
        Problem("no passage is found for this text", field=shorten(instance.item_id))
        for instance, text in zip(instances, found, strict=True)
        if not text.strip()  # it would be the case no-argument under another name
    ]
    if problems:
        raise SetupError(problems)
    return found


def passages_of(text: str, characters: int = 300) -> list[str]:
    """`text` cut into passages of at most so many characters, white space folded.

    A cut falls between sentences; within a sentence only where it is too long, then between
    words; within a word only where that is too long.
    """
    whole = [" ".join(sentence.text.split()) for sentence in sentences(text)]
    parts = chain.from_iterable(
        textwrap.wrap(sentence, characters, break_on_hyphens=False) for sentence in whole
    )
    passages: list[str] = []
    for part in parts:
        if passages and len(passages[-1]) + 1 + len(part) <= characters:
            passages[-1] += f" {part}"
        else:
            passages.append(part)
    return passages


def lexical_retriever(passages: Sequence[str], k: int = 3) -> Retrieve:
    """The `k` passages that BM25 ranks highest for a query; equal ones in the order given.

    Robertson and Zaragoza (2009), "The Probabilistic Relevance Framework: BM25 and Beyond", with
    k1 = 1.2 and b = 0.75. A word's weight is log(1 + (N - n + 0.5) / (n + 0.5)), which is never
    negative, however many of the N passages the n with the word are. A word counts once in a query.
    A passage that shares no word with the query is never found.
    """
    index = _index(passages)

    def retrieve(query: str) -> Sequence[str]:
        scores: defaultdict[int, float] = defaultdict(float)
        for word in dict.fromkeys(words(query)):
            for place, weight in index.get(word, {}).items():
                scores[place] += weight
        best = sorted(scores, key=lambda place: (-scores[place], place))[:k]
        return [passages[place] for place in best]

    return retrieve


def _index(passages: Sequence[str]) -> Mapping[str, Mapping[int, float]]:
    """What each word adds to the score of each passage that holds it, by the passage's place."""
    counted = [Counter(words(passage)) for passage in passages]
    lengths = [count.total() for count in counted]
    mean = sum(lengths) / len(lengths) if any(lengths) else 1.0
    index: defaultdict[str, dict[int, float]] = defaultdict(dict)
    for place, count in enumerate(counted):
        norm = _K1 * (1 - _B + _B * lengths[place] / mean)
        for word, times in count.items():
            index[word][place] = times / (times + norm)
    for held in index.values():
        rarity = math.log(1 + (len(passages) - len(held) + 0.5) / (len(held) + 0.5))
        for place in held:
            held[place] *= rarity
    return index
