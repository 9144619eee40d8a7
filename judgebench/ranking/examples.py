"""The control cases, the examples that evaluators are trained on, and both as tokens.

An input longer than the encoder takes is cut: first a document, then the middle of the text, then
options, and an argument last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from judgebench.errors import Problem, SetupError, raise_any, shorten
from judgebench.judges.retrieval import Corpus, KeptVectors, nearest
from judgebench.models.checkpoints import Encoder
from judgebench.ranking.task import (
    Argument,
    ControlCase,
    EvaluatorConfig,
    EvaluatorKind,
    ProxyTask,
    Split,
    TaskInstance,
)
from judgebench.records import content_hash, group_by_key
from judgebench.text import passages_of

# Section 3.2.2 of the paper: the top documents, in chunks of so many characters, the top chunks.
N_DOCUMENTS, N_CHARACTERS, N_PASSAGES = 5, 300, 3


class PassageRetriever:
    """Finds passages of a corpus for a text: whole documents by their vectors, then the chunks of
    these by theirs. `encoder` is the name of a sentence encoder, whose vectors `folder` keeps.

    Raises what finding and opening an encoder raise.
    """

    def __init__(self, corpus: Corpus, encoder: str, folder: Path) -> None:
        self._corpus, self._vectors = corpus, KeptVectors(encoder, folder)
        self._documents = self._vectors.of(corpus.documents)

    def find(self, text: str) -> list[str]:
        """The passages for a text, the best first, of equal ones the first."""
        query = self._vectors.of([text])
        (documents,) = nearest(self._documents, query, N_DOCUMENTS)
        texts = (self._corpus.documents[place] for place in documents)
        chunks = list(dict.fromkeys(c for t in texts for c in passages_of(t, N_CHARACTERS)))
        (best,) = nearest(self._vectors.of(chunks), query, N_PASSAGES)
        return [chunks[place] for place in best]

    def close(self) -> None:
        """Write the vectors, and give back the encoder."""
        self._vectors.close()


def control_arguments(
    task: ProxyTask, cases: Sequence[ControlCase], seed: int, retriever: PassageRetriever | None
) -> list[Argument]:
    """The texts of every case for every ranked test instance, by systems named as the cases.

    Noise is the gold argument of another of these instances, of another group; where nobody wrote
    gold arguments there is none. `retriever` is only asked for the case `passages`. Raises
    SetupError as `control_case` does.
    """
    is_argued = any(i.argument.strip() for i in task.ranked)
    return [
        Argument(task.name, instance.item_id, case, text)
        for case in cases
        if is_argued or case != "noise"
        for instance, text in zip(
            task.ranked, control_case(case, task.ranked, seed, retriever), strict=True
        )
    ]


def control_case(
    kind: ControlCase,
    instances: Sequence[TaskInstance],
    seed: int,
    retriever: PassageRetriever | None = None,
) -> list[str]:
    """The argument that each instance gets in that case, in the order of `instances`.

    Only `noise` depends on the seed, and on no order; only `passages` needs `retriever`. Raises
    SetupError with every instance that has no unrelated argument.
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
            return ["\n\n".join(retriever.find(instance.text)) for instance in instances]


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
    raise_any(problems)
    return [drawn[instance.item_id] for instance in instances]


def _unrelated(instance: TaskInstance, donor: TaskInstance) -> bool:
    return (
        donor.argument.strip() != ""
        and donor.group != instance.group
        and donor.text != instance.text
        and donor.argument != instance.argument
    )


TEXT_FLOOR, OPTION_FLOOR = 64, 8  # tokens that are kept before the argument loses any
_NO_EXAMPLE: Mapping[EvaluatorKind, str] = {  # what is wrong with a split, by what reads it
    "baseline": "is empty",
    "expert-trained": "no instance of the split has an argument of an expert",
    "llm-trained": "no instance of the split has an argument of a model",
}


@dataclass(frozen=True, slots=True)
class Example:
    """An instance with the argument that is read beside it; '' for a baseline."""

    instance: TaskInstance
    argument: str


@dataclass(frozen=True)
class Examples:
    """`train` holds the versions of each source, the orders of its options; one is read in each
    epoch. Instances that have no argument to read are in neither."""

    train: Sequence[Sequence[Example]]
    development: Sequence[Example]

    @property
    def content_hash(self) -> str:
        """Changes with anything that is read in training."""
        return content_hash(asdict(self))

    def of_epoch(self, epoch: int) -> list[int]:
        """The version of each source that is read, by its place."""
        return [(epoch + n) % len(versions) for n, versions in enumerate(self.train)]


@dataclass(frozen=True)
class EvaluatorPlan:
    """An evaluator to be trained. `arguments` maps a system to its texts by item; only LLM-trained
    evaluators read it. Draw number `draw` says which, and how the training begins and goes;
    `seed` decides everything random."""

    task: ProxyTask
    kind: EvaluatorKind
    config: EvaluatorConfig
    seed: int
    arguments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    draw: int = 0

    @property
    def name(self) -> str:
        """`TASK-KIND`, with the number of the draw."""
        return evaluator_names(self.task.name, self.kind, self.draw + 1)[-1]

    @property
    def own_seed(self) -> int:
        """A seed for this evaluator alone."""
        return int(content_hash([self.seed, self.task.name, self.kind, self.draw]), 16) % 2**31

    def examples(self) -> Examples:
        """The examples that it is trained and tuned on. Raises SetupError for a split in which
        nothing has an argument."""
        found: dict[str, list[Example]] = {}
        splits: tuple[Split, ...] = ("train", "development")
        for split in splits:
            instances = self.task.of(split)
            if split == "development":  # one order of the options per source, as in the test
                instances = [i for i in instances if i.version == 0]
            texts = self._read_beside(instances)
            read = [Example(i, texts[i.item_id]) for i in instances if i.item_id in texts]
            if not read:
                raise SetupError(Problem(_NO_EXAMPLE[self.kind], field=f"{self.name}: {split}"))
            found[split] = read
        return Examples(_by_source(found["train"]), found["development"])

    def _read_beside(self, instances: Sequence[TaskInstance]) -> Mapping[str, str]:
        """The argument that is read beside each instance, by item; without those that have none."""
        if self.kind == "baseline":
            return {i.item_id: "" for i in instances}
        if self.kind == "expert-trained":
            return {i.item_id: i.argument for i in instances if i.argument.strip()}
        drawn = drawn_systems(instances, self.arguments, seed=self.seed, draw=self.draw)
        return {item: self.arguments[system][item] for item, system in drawn.items()}


def evaluator_names(task: str, kind: EvaluatorKind, draws: int) -> list[str]:
    """The names of the evaluators of all draws; the first of those that are not LLM-trained goes
    without a number."""
    names = [f"{task}-{kind}-{draw}" for draw in range(draws)]
    return names if kind == "llm-trained" else [f"{task}-{kind}", *names[1:]]


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


def label_places(task: ProxyTask, examples: Sequence[Example]) -> list[int]:
    """The right classes or options, counted from 0."""
    labels = [example.instance.label for example in examples]
    if task.is_multiple_choice:
        return [int(label) - 1 for label in labels]
    return [task.labels.index(label) for label in labels]


def _by_source(examples: Sequence[Example]) -> list[list[Example]]:
    """Versions of one source together, in their order."""
    by_source = group_by_key((example.instance.source, example) for example in examples)
    return [sorted(versions, key=lambda e: e.instance.version) for versions in by_source.values()]


# --- as tokens ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Second:
    """The second segment: an argument, or a context, which gives way first."""

    text: str
    is_argument: bool = True


@dataclass(frozen=True, slots=True)
class Input:
    """One input as tokens. `options` are the first and past-the-last place of each option's."""

    ids: list[int]
    types: list[int]
    options: tuple[tuple[int, int], ...] = ()
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Lengths:
    """The tokens of each part."""

    text: int
    options: tuple[int, ...]
    second: int


def second_in_training(kind: EvaluatorKind, instance: TaskInstance, argument: str) -> Second:
    """A baseline is trained on the context, the others on the argument."""
    return Second(instance.context, False) if kind == "baseline" else Second(argument)


def second_in_test(kind: EvaluatorKind, instance: TaskInstance, argument: str) -> Second:
    """Every evaluator reads the argument; without one a baseline reads what it was trained on."""
    return Second(argument) if argument.strip() else second_in_training(kind, instance, "")


class InputMaker:
    """Makes inputs for one tokenizer, which must be a fast one. Every text is read once."""

    def __init__(self, tokenizer: Any, max_tokens: int) -> None:
        self._tokenizer, self._max_tokens = tokenizer, max_tokens
        self._known: dict[str, list[int]] = {}
        self._alone = _frame(tokenizer, "a")
        self._paired = _frame(tokenizer, "a", "b")

    def make(self, instances: Sequence[TaskInstance], seconds: Sequence[Second]) -> list[Input]:
        """One input per instance, in their order."""
        pairs = list(zip(instances, seconds, strict=True))
        texts = dict.fromkeys(text for i, s in pairs for text in (i.text, *i.numbered, s.text))
        if new := [text for text in texts if text not in self._known]:
            # Texts are data: what looks like a control token in them is plain text.
            found = self._tokenizer(
                new, add_special_tokens=False, split_special_tokens=True, truncation=False,
                padding=False, return_attention_mask=False, verbose=False,
            )  # fmt: skip
            self._known.update(zip(new, found["input_ids"], strict=True))
        return [self._one(instance, second) for instance, second in pairs]

    def _one(self, instance: TaskInstance, second: Second) -> Input:
        text, tail = self._known[instance.text], self._known[second.text]
        options = [self._known[option] for option in instance.numbered]
        frame = self._paired if tail else self._alone
        full = Lengths(len(text), tuple(map(len, options)), len(tail))
        room = self._max_tokens - sum(place < 0 for place in frame)
        kept = fit(full, room, cut_second_first=not second.is_argument)
        head = _without_middle(text, kept.text)
        start, spans = list(frame).index(0), []
        for option, length in zip(options, kept.options, strict=True):
            spans.append((start + len(head), start + len(head) + length))
            head = head + option[:length]
        segments = {0: head, 1: tail[: kept.second]}
        ids: list[int] = []
        types: list[int] = []
        for place, (token, type_id) in frame.items():
            tokens = segments.get(place, [token])
            ids += tokens
            types += [type_id] * len(tokens)
        return Input(ids, types, tuple(spans), kept != full)


def _without_middle(ids: list[int], length: int) -> list[int]:
    """A case states its patient first and asks its question last: both ends are kept."""
    return ids if length >= len(ids) else ids[: (length + 1) // 2] + ids[len(ids) - length // 2 :]


def fit(full: Lengths, room: int, *, cut_second_first: bool = False) -> Lengths:
    """The lengths that fit into `room` tokens, cut in the order that the module names.

    The floors shrink where there is little room, so that something of every part is kept before
    the argument, which may go altogether.
    """
    text_floor = min(TEXT_FLOOR, room // 2)
    option_floor = min(OPTION_FLOOR, room // 2 // max(len(full.options), 1))
    text, options, second = full.text, full.options, full.second
    if cut_second_first:
        second = max(0, min(second, room - text - sum(options)))
    text = max(min(text, text_floor), min(text, room - sum(options) - second))
    options = _level(options, room - text - second, option_floor)
    second = max(0, min(second, room - text - sum(options)))
    return Lengths(text, options, second)


def _level(lengths: tuple[int, ...], room: int, floor: int) -> tuple[int, ...]:
    """The longest lose tokens until all fit, none below the floor."""
    most = max(lengths, default=0)
    while most > floor and sum(min(length, most) for length in lengths) > room:
        most -= 1
    return tuple(min(length, most) for length in lengths)


def _frame(tokenizer: Any, *segments: str) -> dict[int, tuple[int, int]]:
    """Token and type id by place: 0 and 1 are the segments, each special token has a place below 0.
    Found by example, for every family of encoders has its own."""
    example = tokenizer(*segments, return_token_type_ids=True)
    tokens = zip(
        example.sequence_ids(0), example["input_ids"], example["token_type_ids"], strict=True
    )
    return {
        ~i if segment is None else segment: (token, type_id)
        for i, (segment, token, type_id) in enumerate(tokens)
    }


@dataclass(frozen=True, slots=True)
class Batch:
    """Tensors on one device. `inputs` are what the encoder is called with, (inputs, tokens) each.

    `labels` (inputs,) counts from 0. `options` (inputs, options, tokens) marks the tokens of each;
    where classes are decided there are no options.
    """

    inputs: Any
    labels: Any
    options: Any


def collate(encoder: Encoder, inputs: Sequence[Input], labels: Sequence[int] = ()) -> Batch:
    """The inputs, padded to the longest of them, on the encoder's device."""
    import torch

    rows = {"input_ids": [i.ids for i in inputs]}
    if "token_type_ids" in encoder.tokenizer.model_input_names:
        rows["token_type_ids"] = [i.types for i in inputs]
    padded = encoder.tokenizer.pad(rows, padding_side="right", return_tensors="pt", verbose=False)
    shape = len(inputs), max(len(i.options) for i in inputs), padded["input_ids"].shape[1]
    options = torch.zeros(shape, dtype=torch.bool)
    for row, each in enumerate(inputs):
        for place, (start, end) in enumerate(each.options):
            options[row, place, start:end] = True
    return Batch(*(part.to(encoder.device) for part in (padded, torch.tensor(labels), options)))
