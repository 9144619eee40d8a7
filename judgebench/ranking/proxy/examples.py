"""What an evaluator is trained on: which instances, each with which argument."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from judgebench.errors import Problem, SetupError
from judgebench.ranking.proxy.section import EvaluatorConfig, EvaluatorKind
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


@dataclass(frozen=True)
class EvaluatorPlan:
    """An evaluator to be trained. `arguments` maps a system to its texts by item; only LLM-trained
    evaluators read it, and draw number `draw` says which. `seed` decides everything random."""

    task: ProxyTask
    kind: EvaluatorKind
    config: EvaluatorConfig
    seed: int
    arguments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    draw: int = 0

    @property
    def name(self) -> str:
        """`TASK-KIND`, with the number of the draw for LLM-trained ones."""
        return evaluator_names(self.task.name, self.kind, self.draw + 1)[-1]

    @property
    def own_seed(self) -> int:
        """A seed for this evaluator alone."""
        what = [self.seed, self.task.name, self.kind, self.draw]
        return int(content_hash(what), 16) % 2**31

    def examples(self) -> Examples:
        """What it is trained and tuned on. Raises SetupError for a split in which nothing has an
        argument."""
        left_out = 0
        found: dict[str, list[Example]] = {}
        splits: tuple[Split, ...] = ("train", "development")
        for split in splits:
            instances = self.task.of(split)
            if split == "development":  # one order of the options per source, as in the test
                instances = [i for i in instances if i.version == 0]
            texts = self._read_beside(instances)
            read = [Example(i, texts[i.item_id]) for i in instances if i.item_id in texts]
            left_out += sum(i.version == 0 and i.item_id not in texts for i in instances)
            if not read:
                whose = "a model" if self.kind == "llm-trained" else "an expert"
                message = f"no instance of the split has an argument of {whose}"
                problem = message if self.kind != "baseline" else "is empty"
                raise SetupError(Problem(problem, field=f"{self.name}: {split}"))
            found[split] = read
        return Examples(_by_source(found["train"]), found["development"], left_out)

    def _read_beside(self, instances: Sequence[TaskInstance]) -> Mapping[str, str]:
        """The argument that is read beside each instance, by item; without those that have none."""
        if self.kind == "baseline":
            return {i.item_id: "" for i in instances}
        if self.kind == "expert-trained":
            return {i.item_id: i.argument for i in instances if i.argument.strip()}
        drawn = drawn_systems(instances, self.arguments, seed=self.seed, draw=self.draw)
        return {item: self.arguments[system][item] for item, system in drawn.items()}


def evaluator_names(task: str, kind: EvaluatorKind, draws: int) -> list[str]:
    """One per draw for the LLM-trained ones, else one."""
    if kind != "llm-trained":
        return [f"{task}-{kind}"]
    return [f"{task}-{kind}-{draw}" for draw in range(draws)]


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
    found: dict[tuple[str, ...], list[Example]] = {}
    for example in examples:
        i = example.instance
        source = (i.group, i.text) if i.options else (i.item_id,)
        found.setdefault(source, []).append(example)
    return [sorted(versions, key=lambda e: e.instance.version) for versions in found.values()]


def _content(example: Example) -> list[object]:
    i = example.instance
    return [i.item_id, i.text, i.label, list(i.options), i.context, i.version, example.argument]
