"""A proxy task: what a trained model decides, the arguments that may help it, and its splits; and
the section `proxy:` of a bench.yaml: tasks, the models that write arguments, evaluators.

Splits and samples are drawn by a seed: each class in its share, counts met exactly, the same on
every machine, whatever the order of the rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal, get_args

from pydantic import Field, field_validator, model_validator

from judgebench.errors import Problem, SetupError, raise_any
from judgebench.judges.config import BackendSpec, Name
from judgebench.models.settings import BackendSettings
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
    where others read an argument. Instances of one `group` share a source: they are taken
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
        """A key that all versions of a question have in common, and no other instance."""
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
        """The text, with the numbered options where there are some."""
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
        """True where options are given, and not classes."""
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
    """The number of groups in each split."""
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
    ordered = {name: [i for i in order if labels[i] == name] for name in names}
    return sorted(i for name in names for i in ordered[name][: counts[name]])


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
    raise_any(problems)


# --- the section `proxy` of a bench.yaml ----------------------------------------------------------

EvaluatorKind = Literal["baseline", "expert-trained", "llm-trained"]
EVALUATOR_KINDS: tuple[EvaluatorKind, ...] = ("baseline", "expert-trained", "llm-trained")


class ArgumentDecoding(Strict):
    """The sampling of arguments; the defaults are those of the paper (section 3.2.1). What is None
    is left out of the request."""

    max_tokens: int = Field(default=256, ge=1)
    temperature: float | None = Field(default=0.9, ge=0, le=2)
    top_p: float | None = Field(default=0.85, gt=0, le=1)


class GeneratorConfig(Strict):
    """A model that writes arguments. Its `settings` hold `concurrency` and the like."""

    name: Name
    backend: BackendSpec
    decoding: ArgumentDecoding = ArgumentDecoding()
    settings: BackendSettings = BackendSettings()

    @field_validator("name")
    @classmethod
    def _not_a_control(cls, name: str) -> str:
        if name in (GOLD, *CONTROL_CASES):
            raise ValueError(f"is kept for the {name} arguments: choose another name")
        return name


class TrainingConfig(Strict):
    """The settings of an evaluator's training.

    AdamW with a linear warm-up over the share `warmup` of all steps and a linear way down. Training
    ends after `patience` epochs without a better score on the development split, or after `epochs`.
    `max_tokens` None means all that the encoder takes, 512 where it states no limit.
    """

    epochs: int = Field(default=10, ge=1)
    patience: int = Field(default=3, ge=1)
    learning_rate: float = Field(default=5e-5, gt=0)
    weight_decay: float = Field(default=0.01, ge=0)
    warmup: float = Field(default=0.1, ge=0, lt=1)
    batch_size: int = Field(default=16, ge=1)
    max_tokens: int | None = Field(default=None, ge=16)


class EvaluatorConfig(Strict):
    """`encoder` is a folder, a hub name, or `minilm`; `draws` counts the trainings of each
    kind, which begin and go otherwise, of an LLM-trained evaluator on another draw of arguments.
    With one alone nothing is claimed of an evaluator's order."""

    encoder: str = "minilm"
    kinds: tuple[EvaluatorKind, ...] = EVALUATOR_KINDS
    draws: int = Field(default=3, ge=1)
    training: TrainingConfig = TrainingConfig()


class PassagesConfig(Strict):
    """The source of the texts of the control case `passages`.

    `corpus` is a JSONL file with a key `text`, a CSV with a column of that name, or a folder of
    text files. `late_interaction` names ColBERT weights, a hub name or a folder; None means the
    fallback, which scores passages by the sentence encoder `encoder`.
    """

    corpus: str
    column: str = "text"
    encoder: str = "minilm"
    late_interaction: str | None = None
    documents: int = Field(default=5, ge=1)
    passages: int = Field(default=3, ge=1)
    characters: int = Field(default=300, ge=50)


class LearntConfig(Strict):
    """At most so many instances of the splits that are learnt from; None means all."""

    train: int | None = Field(default=None, ge=2)
    development: int | None = Field(default=None, ge=2)


class SampleConfig(LearntConfig):
    """At most so many instances of each split, drawn by the seed, each class in its share."""

    test: int | None = Field(default=None, ge=2)


class TaskEntry(Strict):
    """A task of the benchmark: a shipped name or the path of a YAML file, and what is particular to
    it here.

    `sample` is all that is used of the task. `arguments_for` says on how many train and development
    instances of these models write, which only LLM-trained evaluators read; all that is ranked is
    written on. `judged: false` keeps the arguments from the judges. Both spare calls.
    """

    task: str
    sample: SampleConfig = SampleConfig()
    arguments_for: LearntConfig = LearntConfig()
    kinds: tuple[EvaluatorKind, ...] | None = None
    generators: tuple[Name, ...] | None = None
    training: TrainingConfig | None = None
    judged: bool = True


class ProxyConfig(Strict):
    """The key `proxy` of a bench.yaml. Paths are seen from the folder of the file.

    `arguments` are files of arguments that were written before, one JSON object per line.
    `families` says which generators and judges are of one family, for the self-preference.
    """

    tasks: tuple[str | TaskEntry, ...] = Field(min_length=1)
    data_folder: str | None = None
    generators: tuple[GeneratorConfig, ...] = ()
    arguments: tuple[str, ...] = ()
    control_cases: tuple[ControlCase, ...] = ("no-argument", "label-only", "noise")
    passages: PassagesConfig | None = None
    evaluators: EvaluatorConfig = EvaluatorConfig()
    human_ranks: tuple[str, ...] = ()
    families: dict[str, tuple[Name, ...]] = Field(default_factory=dict)

    @property
    def entries(self) -> tuple[TaskEntry, ...]:
        """Every task as an entry."""
        return tuple(TaskEntry(task=t) if isinstance(t, str) else t for t in self.tasks)

    @property
    def controls(self) -> tuple[ControlCase, ...]:
        """The control cases: `passages` is one of them where a corpus is named."""
        named = (*self.control_cases, *(("passages",) if self.passages else ()))
        return tuple(dict.fromkeys(named))

    @model_validator(mode="after")
    def _corpus_for_passages(self) -> ProxyConfig:
        if "passages" in self.control_cases and self.passages is None:
            raise ValueError("the control case passages needs a corpus: proxy.passages.corpus")
        return self
