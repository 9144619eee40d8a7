"""A proxy task: what a trained model decides, the arguments that may help it, and its splits.

Splits and samples are drawn by a seed: each class in its share, counts met exactly, the same on
every machine, whatever the order of the rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal, get_args

from pydantic import model_validator

from judgebench.errors import Problem, SetupError
from judgebench.prompt import Prompt
from judgebench.records import content_hash
from judgebench.yaml_file import Strict

Split = Literal["train", "development", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
TaskMetric = Literal["accuracy", "micro_f1"]

ControlCase = Literal["no-argument", "label-only", "noise", "passages"]
CONTROL_CASES: tuple[ControlCase, ...] = get_args(ControlCase)
GOLD = "gold"  # the system that wrote the gold arguments: the experts


@dataclass(frozen=True, slots=True)
class TaskInstance:
    """One thing to decide.

    `text` is what is asked: a claim, a statement, a case with its question. `label` is the right
    class, or with `options` the place of the right one, "1" for the first. `argument` is what an
    expert wrote for it. `context` is the document that evidence is taken from: a baseline reads it
    where others read an argument. Instances of one `group` share a source: they are resampled
    whole, and no argument of one is noise to another; `version` counts the orders in which the
    options of one source are given, from 0. `row` is the place in the source file, from 0.
    """

    item_id: str
    text: str
    label: str
    argument: str
    split: Split
    options: tuple[str, ...] = ()
    context: str = ""
    group: str = ""
    version: int = 0
    row: int = 0

    def __post_init__(self) -> None:
        if not self.group:  # many questions with options begin alike: "Which of these is true?"
            object.__setattr__(self, "group", "\n".join([self.text, *sorted(self.options)]))

    @property
    def source(self) -> tuple[str, ...]:
        """What all versions of a question have in common, and no other instance."""
        return (self.group, self.text, *sorted(self.options)) if self.options else (self.item_id,)

    @property
    def label_text(self) -> str:
        """The right class, or the text of the right option."""
        return self.options[int(self.label) - 1] if self.options else self.label

    @property
    def numbered(self) -> list[str]:
        """The options with their places."""
        return [f"{i}. {option}" for i, option in enumerate(self.options, 1)]

    @property
    def question(self) -> str:
        """What is asked, with the numbered options where there are some."""
        return "\n".join([self.text, *self.numbered])


def versions(instance: TaskInstance) -> list[TaskInstance]:
    """The instance as it is, and one more for each other place of the right option; the wrong ones
    keep their order."""
    right = int(instance.label) - 1
    others = [o for i, o in enumerate(instance.options) if i != right]
    places = [right, *(i for i in range(len(instance.options)) if i != right)]
    return [
        replace(
            instance,
            item_id=f"{instance.item_id}-v{version}" if version else instance.item_id,
            label=str(place + 1),
            options=(*others[:place], instance.options[right], *others[place:]),
            version=version,
        )
        for version, place in enumerate(places)
    ]


@dataclass(frozen=True)
class ProxyTask:
    """A task with all its instances. `labels` are the classes, or the places of the options.

    Test instances whose label is in `left_out` are not ranked (they are still trained on): of a
    claim without evidence no argument is right. `prompt` asks a model for an argument. `notes` are
    sentences for the report, such as where the data comes from; `files` maps each to its SHA-256.
    """

    name: str
    title: str
    labels: tuple[str, ...]
    metric: TaskMetric
    instances: Sequence[TaskInstance]
    prompt: Prompt
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)

    def of(self, split: Split) -> list[TaskInstance]:
        """The instances of one split, in the order of the source."""
        return [instance for instance in self.instances if instance.split == split]

    @property
    def ranked(self) -> list[TaskInstance]:
        """The test instances whose arguments are ranked: one version per source."""
        return [i for i in self.of("test") if i.label not in self.left_out and i.version == 0]

    @property
    def is_multiple_choice(self) -> bool:
        """Whether options are given, and not classes."""
        return any(instance.options for instance in self.instances)


class SplitSizes(Strict):
    """The size of each split: three counts of instances, or three fractions that add up to 1."""

    train: int | float
    development: int | float
    test: int | float

    @model_validator(mode="after")
    def _counts_or_fractions(self) -> SplitSizes:
        sizes = self.sizes
        if all(isinstance(size, int) for size in sizes):
            if min(sizes) < 1:
                raise ValueError("each split needs one instance or more")
        elif not all(0 < size < 1 for size in sizes) or abs(sum(sizes) - 1) > 1e-9:
            raise ValueError("give three counts, or three fractions that add up to 1")
        return self

    @property
    def sizes(self) -> tuple[int | float, ...]:
        """Train, development, test."""
        return (self.train, self.development, self.test)


def seeded_split(
    instances: Sequence[TaskInstance], contents: Sequence[str], sizes: SplitSizes, seed: int
) -> list[TaskInstance]:
    """The instances, each in the split that the seed gives it, each class in its share to within
    one.

    `contents` decide the places of the instances in the draw. Instances of one `group` fall into
    one split, so that no test instance was half seen in training: where groups hold several, whole
    groups are drawn, stratified by the labels in them; the shares are then met in groups. Raises
    SetupError where counts do not add up to the number of instances, or cannot be met because
    groups must not be torn.
    """
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for i, instance in enumerate(instances):
        groups[instance.group].append(i)
    counts = _counts(sizes, len(instances), len(groups))
    strata: defaultdict[tuple[str, ...], list[tuple[str, str]]] = defaultdict(list)
    for group, places in groups.items():
        labels = tuple(sorted(instances[i].label for i in places))
        key = content_hash([seed, "split", sorted(contents[i] for i in places)])
        strata[labels].append((key, group))
    split_of: dict[str, Split] = {}
    names = sorted(strata)
    for name, cells in zip(names, apportion([len(strata[n]) for n in names], counts), strict=True):
        drawn = [split for split, n in zip(SPLITS, cells, strict=True) for _ in range(n)]
        for (_, group), split in zip(sorted(strata[name]), drawn, strict=True):
            split_of[group] = split
    return [replace(instance, split=split_of[instance.group]) for instance in instances]


def _counts(sizes: SplitSizes, n_items: int, n_groups: int) -> list[int]:
    """How many groups each split gets."""
    if isinstance(sizes.train, float):
        return shares(n_groups, sizes.sizes)
    counts = [int(size) for size in sizes.sizes]
    found = " + ".join(map(str, counts))
    if sum(counts) != n_items:
        message = f"the counts do not add up to the {n_items} instances"
        raise SetupError(Problem(message, field="split", found=f"{found} = {sum(counts)}"))
    if n_groups != n_items:
        message = "counts cannot be met where groups hold several instances and stay whole"
        allowed = "three fractions, or a column that says the split"
        raise SetupError(Problem(message, field="split", found=found, allowed=allowed))
    return counts


def shares(total: int, weights: Sequence[int | float]) -> list[int]:
    """`total` shared out by weight with the largest remainders (Hamilton's method); of equal
    remainders the first."""
    exact = [Fraction(str(w)) for w in weights]
    quotas = [total * w / sum(exact) for w in exact]
    counts = [int(q) for q in quotas]
    by_remainder = sorted(range(len(quotas)), key=lambda i: (counts[i] - quotas[i], i))
    for i in by_remainder[: total - sum(counts)]:
        counts[i] += 1
    return counts


def apportion(rows: Sequence[int], columns: Sequence[int]) -> list[list[int]]:
    """A table of counts with these sums of rows and of columns, each cell the product of its shares
    rounded down or up, larger remainders up first.

    Such a table always exists (Cox 1987, "A Constructive Procedure for Unbiased Controlled
    Rounding", JASA 82, 520-524). Both sums must have one total. It is found as a matching by
    augmenting paths.
    """
    total = max(sum(rows), 1)
    cells = [[r * c // total for c in columns] for r in rows]
    remainders = [[r * c % total for c in columns] for r in rows]
    lacking = [c - sum(row[j] for row in cells) for j, c in enumerate(columns)]
    raised: set[tuple[int, int]] = set()

    def raise_one(i: int, seen: set[int]) -> bool:
        """One more in row i, if need be by moving what others rows have raised."""
        for j in sorted(range(len(columns)), key=lambda j: (-remainders[i][j], j)):
            if not remainders[i][j] or (i, j) in raised or j in seen:
                continue
            seen.add(j)
            if lacking[j]:
                lacking[j] -= 1
            else:
                others = [k for k in range(len(rows)) if (k, j) in raised]
                k = next((k for k in others if raise_one(k, seen)), None)
                if k is None:
                    continue
                raised.remove((k, j))
            raised.add((i, j))
            return True
        return False

    for i, r in enumerate(rows):
        for _ in range(r - sum(cells[i])):
            raise_one(i, set())
    for i, j in raised:
        cells[i][j] += 1
    return cells


def draw(labels: Sequence[str], keys: Sequence[str], n: int, seed: int) -> list[int]:
    """The places of `n` of these items, or of all where there are no more, each label in its share.

    `keys` are the items' ids: the draw follows from them and the seed, and from no order.
    """
    if n >= len(keys):
        return list(range(len(keys)))
    names = sorted(set(labels))
    counts = dict(zip(names, shares(n, [labels.count(name) for name in names]), strict=True))
    order = sorted(range(len(keys)), key=lambda i: content_hash([seed, "sample", keys[i]]))
    drawn: list[int] = []
    taken: Counter[str] = Counter()
    for i in order:
        if taken[labels[i]] < counts[labels[i]]:
            taken[labels[i]] += 1
            drawn.append(i)
    return sorted(drawn)


def check_splits(task: ProxyTask) -> None:
    """Raise SetupError for every split without instances, and for every class that one lacks.

    A class that is not ranked may be missing in the test split. Where options are given, their
    places are no classes: then only empty splits are reported.
    """
    problems = []
    for split in SPLITS:
        held = Counter(instance.label for instance in task.of(split))
        found = ", ".join(f"{label}: {held[label]}" for label in task.labels)
        left_out = task.left_out if split == "test" else ()
        lacking = [label for label in task.labels if not held[label] and label not in left_out]
        where = f"task {task.name}: the {split} split"
        if not held:
            problems.append(Problem(f"{where} is empty", field="split"))
        elif not task.is_multiple_choice:
            allowed = "every class in every split; in the test split but for leave_out"
            problems += [
                Problem(f"{where} lacks the class {label!r}", "", None, "split", found, allowed)
                for label in lacking
            ]
    if problems:
        raise SetupError(problems)
