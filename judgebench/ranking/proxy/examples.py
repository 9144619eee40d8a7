"""What an evaluator is trained on: which instances, each with which argument."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from judgebench.errors import Problem, SetupError
from judgebench.ranking.proxy.config import EvaluatorKind
from judgebench.ranking.proxy.draws import drawn_systems
from judgebench.ranking.proxy.task import ProxyTask, Split, TaskInstance
from judgebench.records import content_hash


@dataclass(frozen=True, slots=True)
class Example:
    """An instance with the argument that is read beside it; '' for a baseline."""

    instance: TaskInstance
    argument: str


@dataclass(frozen=True)
class Examples:
    """`train` holds the versions of each source, the orders of its options; one is read in each
    epoch. `left_out` counts instances of both splits that have no argument to read."""

    train: Sequence[Sequence[Example]]
    development: Sequence[Example]
    left_out: int

    @property
    def content_hash(self) -> str:
        """Changes with anything that is read in training."""
        return content_hash(
            [
                [[_content(e) for e in v] for v in self.train],
                [_content(e) for e in self.development],
            ]
        )

    def of_epoch(self, epoch: int) -> list[int]:
        """Which version of each source is read, by its place."""
        return [(epoch + n) % len(versions) for n, versions in enumerate(self.train)]


def evaluator_name(task: str, kind: EvaluatorKind, draw: int) -> str:
    """`TASK-KIND`, with the number of the draw for LLM-trained ones."""
    return f"{task}-{kind}-{draw}" if kind == "llm-trained" else f"{task}-{kind}"


def choose(
    task: ProxyTask,
    kind: EvaluatorKind,
    arguments: Mapping[str, Mapping[str, str]],
    *,
    seed: int,
    draw: int,
) -> Examples:
    """What this evaluator is trained and tuned on. `arguments` (texts by system and item) is read
    for an LLM-trained one only. Raises SetupError for a split in which nothing has an argument."""
    left_out = 0
    found: dict[str, list[Example]] = {}
    splits: tuple[Split, ...] = ("train", "development")
    for split in splits:
        instances = task.of(split)
        if split == "development":  # one order of the options a source, as in the test
            instances = [i for i in instances if i.version == 0]
        argument = _reader(kind, instances, arguments, seed, draw)
        read = [Example(i, text) for i in instances if (text := argument(i)) is not None]
        left_out += sum(i.version == 0 for i in instances)
        left_out -= sum(e.instance.version == 0 for e in read)
        if not read:
            whose = "a model" if kind == "llm-trained" else "an expert"
            message = f"no instance of the split has an argument of {whose}"
            where = f"{evaluator_name(task.name, kind, draw)}: {split}"
            raise SetupError(Problem(message if kind != "baseline" else "is empty", field=where))
        found[split] = read
    return Examples(_by_source(found["train"]), found["development"], left_out)


def label_places(task: ProxyTask, examples: Sequence[Example]) -> list[int]:
    """The right classes or options, counted from 0."""
    labels = [example.instance.label for example in examples]
    if task.is_multiple_choice:
        return [int(label) - 1 for label in labels]
    return [task.labels.index(label) for label in labels]


def _reader(
    kind: EvaluatorKind,
    instances: Sequence[TaskInstance],
    arguments: Mapping[str, Mapping[str, str]],
    seed: int,
    draw: int,
) -> Callable[[TaskInstance], str | None]:
    """Gives the argument that is read beside an instance, None where there is none."""
    if kind == "baseline":
        return lambda instance: ""
    if kind == "expert-trained":
        return lambda instance: instance.argument if instance.argument.strip() else None
    drawn = drawn_systems(instances, arguments, seed=seed, draw=draw)

    def argument(instance: TaskInstance) -> str | None:
        system = drawn.get(instance.item_id)
        return None if system is None else arguments[system][instance.item_id]

    return argument


def _by_source(examples: Sequence[Example]) -> list[list[Example]]:
    """Versions of one source together, in their order."""
    found: dict[tuple[str, ...], list[Example]] = {}
    for example in examples:
        i = example.instance
        source = (i.group, i.text) if i.options else (i.item_id,)
        found.setdefault(source, []).append(example)
    return [sorted(versions, key=lambda e: e.instance.version) for versions in found.values()]


def _content(example: Example) -> list[object]:
    i = example.instance
    return [i.item_id, i.text, i.label, list(i.options), i.context, i.version, example.argument]
