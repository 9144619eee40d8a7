"""A proxy task: what a trained model decides, the arguments that may help it, and its splits; and
the section `proxy:` of a bench.yaml: tasks, the models that write arguments, evaluators.

Splits and samples are drawn by a seed: each class in its share, counts met exactly, the same on
every machine, whatever the order of the rows.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, field_validator, model_validator

from judgebench.data.findings import counted_once
from judgebench.errors import Problem, SetupError, raise_any
from judgebench.files import (
    StrictModel,
    disk_errors,
    read_lines,
    to_line,
    write_atomically,
    write_lines,
)
from judgebench.judges.config import BackendSpec, Name
from judgebench.models.contract import Backend, Finish, Message, Reply, Request
from judgebench.models.settings import BackendSettings
from judgebench.prompt import Prompt
from judgebench.records import content_hash, group_by_key
from judgebench.writer import WritingTerms, which_model, write_kept

Split = Literal["train", "development", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)

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
    options of one source are given, from 0.
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


class SplitSizes(StrictModel):
    """The size of each split: three counts of instances, or three fractions that add up to 1."""

    train: int | float
    development: int | float
    test: int | float

    @model_validator(mode="after")
    def _counts_or_fractions(self) -> SplitSizes:
        are_counts = all(isinstance(size, int) and size > 0 for size in self.sizes)
        are_shares = all(0 < size < 1 for size in self.sizes) and abs(sum(self.sizes) - 1) <= 1e-9
        if not are_counts and not are_shares:
            raise ValueError("give three counts above 0, or three fractions that add up to 1")
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
    SetupError where counts do not add up to the number of instances.
    """
    groups = group_by_key((instance.group, i) for i, instance in enumerate(instances))
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
    found = " + ".join(map(str, sizes.sizes))
    if isinstance(sizes.train, int) and sum(sizes.sizes) != n_items:
        message = f"the counts do not add up to the {n_items} instances"
        raise SetupError(Problem(message, field="split", found=f"{found} = {sum(sizes.sizes)}"))
    return shares(n_groups, sizes.sizes)


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
        counts = Counter(instance.label for instance in task.of(split))
        left_out = task.left_out if split == "test" else ()
        lacking = [label for label in task.labels if not counts[label] and label not in left_out]
        where = f"task {task.name}: the {split} split"
        if not counts:
            problems.append(Problem(f"{where} is empty", field="split"))
        elif lacking and not task.is_multiple_choice:
            found = ", ".join(f"{label}: {counts[label]}" for label in task.labels)
            message = f"{where} lacks the class {', '.join(map(repr, lacking))}"
            problems.append(Problem(message, field="split", found=found))
    raise_any(problems)


# --- the section `proxy` of a bench.yaml ----------------------------------------------------------

EvaluatorKind = Literal["baseline", "expert-trained", "llm-trained"]
EVALUATOR_KINDS: tuple[EvaluatorKind, ...] = ("baseline", "expert-trained", "llm-trained")


class GeneratorConfig(StrictModel):
    """A model that writes arguments. Its `settings` hold `concurrency` and the like. The defaults
    of the sampling are those of the paper (section 3.2.1); what is None is left out of the request.
    """

    name: Name
    backend: BackendSpec
    max_tokens: int = Field(default=256, ge=1)
    temperature: float | None = Field(default=0.9, ge=0, le=2)
    top_p: float | None = Field(default=0.85, gt=0, le=1)
    settings: BackendSettings = BackendSettings()

    @field_validator("name")
    @classmethod
    def _not_a_control(cls, name: str) -> str:
        if name in (GOLD, *CONTROL_CASES):
            raise ValueError(f"is kept for the {name} arguments: choose another name")
        return name

    @property
    def decoding(self) -> dict[str, Any]:
        """The sampling alone."""
        return self.model_dump(include={"max_tokens", "temperature", "top_p"})


class TrainingConfig(StrictModel):
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


class EvaluatorConfig(StrictModel):
    """`encoder` is a folder, a hub name, or `minilm`; `draws` counts the trainings of each
    kind, which begin and go otherwise, of an LLM-trained evaluator on another draw of arguments.
    With one alone nothing is claimed of an evaluator's order."""

    encoder: str = "minilm"
    kinds: tuple[EvaluatorKind, ...] = EVALUATOR_KINDS
    draws: int = Field(default=3, ge=1)
    training: TrainingConfig = TrainingConfig()


class ProxyConfig(StrictModel):
    """The key `proxy` of a bench.yaml. Paths are seen from the folder of the file.

    `tasks` are shipped names or paths of YAML files, of which at most `sample` instances of each
    split are used, drawn by the seed, each class in its share. `arguments` are files of arguments
    that were written before, one JSON object per line. `corpus` is a table with a column `text` or
    a folder of text files, in which the sentence encoder `retriever` finds the control case
    `passages`. `families` says which generators and judges are of one family, for the
    self-preference.
    """

    tasks: tuple[str, ...] = Field(min_length=1)
    data_folder: str | None = None
    sample: dict[Split, Annotated[int, Field(ge=2)]] = Field(default_factory=dict)
    generators: tuple[GeneratorConfig, ...] = ()
    arguments: tuple[str, ...] = ()
    corpus: str | None = None
    retriever: str = "minilm"
    evaluators: EvaluatorConfig = EvaluatorConfig()
    human_ranks: tuple[str, ...] = ()
    families: dict[str, tuple[Name, ...]] = Field(default_factory=dict)

    @property
    def controls(self) -> tuple[ControlCase, ...]:
        """The control cases: `passages` is one of them where a corpus is named."""
        return CONTROL_CASES if self.corpus else CONTROL_CASES[:-1]


# Small models repeat the heading above the example.
_HEADING = re.compile(r"^\s*\**(?:argument|evidence)\**\s*:\**\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Argument:
    """The text of `system` on one instance of a task.

    `signature` hashes what it was made with (model, prompt, decoding, seed, instance), '' where it
    was given. `finish` is as of a backend's Reply: `length` was cut at the most tokens, and where a
    model declined (`refused`) or its context was too short (`too_long`) there is no text.
    """

    task: str
    item_id: str
    system: str
    text: str
    signature: str = ""
    finish: Finish = "stop"


def argument_id(task: str, item_id: str, system: str) -> str:
    """The id under which one argument is judged, by evaluators and judges alike: the `item_id` of
    its Answer and of every Verdict on it."""
    return f"{task}/{item_id}/{system}"


def arguments_path(folder: Path, system: str) -> Path:
    """The file of one system's arguments in a run folder."""
    return folder / "proxy" / f"arguments-{system}.jsonl"


def read_arguments(path: Path) -> Iterator[Argument]:
    """The argument of every line; none without the file. Raises SetupError for a damaged line."""
    lines = read_lines(path) if path.is_file() else ()
    yield from (_argument(value, path, number) for number, value in lines)


def _argument(value: Mapping[str, Any], path: Path, number: int) -> Argument:
    try:
        argument = Argument(**value)
    except TypeError as error:
        raise SetupError(Problem(f"is no argument: {error}", str(path), number)) from None
    for name in ("task", "item_id", "system", "text"):
        text = getattr(argument, name)
        if not isinstance(text, str) or not (text.strip() or name == "text"):
            message = "must be a text" + (" that is not blank" if name != "text" else "")
            raise SetupError(Problem(message, str(path), number, name, repr(text)[:80]))
    return argument


def argument_line(argument: Argument) -> str:
    """The argument as a line of JSON, without fields that are unknown."""
    return to_line({k: v for k, v in asdict(argument).items() if v or k == "text"})


def write_arguments(path: Path, arguments: Iterable[Argument]) -> None:
    """One line per argument, in place of what the file held. Raises DiskFailed."""
    write_text(path, "".join(map(argument_line, arguments)))


def write_text(path: Path, text: str) -> None:
    """Replace the text of a file in a folder that need not be there yet. Raises DiskFailed."""
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode("utf-8"))


def last_arguments(arguments: Iterable[Argument], task: str) -> dict[str, dict[str, Argument]]:
    """The arguments on one task that count, by system and item: the last of each item, none where
    that is blank, but for the control cases, which may be blank on purpose."""
    last = {(a.system, a.item_id): a for a in arguments if a.task == task}
    found: dict[str, dict[str, Argument]] = {}
    for (system, item), argument in last.items():
        if argument.text.strip() or system in CONTROL_CASES:
            found.setdefault(system, {})[item] = argument
    return found


def given_arguments(paths: Iterable[Path], tasks: Sequence[ProxyTask]) -> list[Argument]:
    """The arguments of the user's own files.

    Raises SetupError for a line that holds no argument, and with every line that names an unknown
    task or item, or an item that this system has written on before. What several lines share is one
    problem.
    """
    known = {(task.name, i.item_id) for task in tasks for i in task.instances}
    arguments: dict[tuple[str, str, str], Argument] = {}
    problems: list[Problem] = []
    for path in paths:
        for number, value in read_lines(path):
            argument = _argument(value, path, number)
            item, system = (argument.task, argument.item_id), argument.system
            message = "" if item in known else "is no item of a task of this benchmark"
            if (*item, system) in arguments:
                message = f"has an argument of {system} before"
            if message:
                at = "/".join(item)
                problems.append(Problem(message, str(path), number, "item_id", at, kind=message))
            arguments[*item, system] = argument
    raise_any(counted_once(problems))
    return list(arguments.values())


@dataclass(frozen=True)
class ArgumentWriter:
    """A generator at work: its backend, the file that keeps its replies, and the seed of every
    draw."""

    generator: GeneratorConfig
    backend: Backend
    path: Path
    seed: int

    def write(
        self, task: ProxyTask, instances: Sequence[TaskInstance], terms: WritingTerms
    ) -> list[Argument]:
        """The model's arguments on these instances, but for those without a reply.

        Raises what `write_kept` raises; what was written is kept.
        """
        way = [
            task.name, task.prompt.content_hash, which_model(self.backend),
            self.generator.decoding, self.seed,
        ]  # fmt: skip
        wanted = {content_hash([*way, i.item_id, i.question, i.context]): i for i in instances}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        replies = write_kept(self.path, wanted, self.backend, partial(self._request, task), terms)
        return [self._argument(task, wanted[key], reply) for key, reply in replies.items()]

    def _request(self, task: ProxyTask, key: str, instance: TaskInstance) -> Request:
        return Request(
            key=key,
            messages=argument_messages(task, instance),
            **self.generator.decoding,
            # A seed of its own for each instance: with one for all, models repeat themselves.
            seed=int(content_hash([self.seed, instance.item_id]), 16) % 2**31,
        )

    def _argument(self, task: ProxyTask, instance: TaskInstance, reply: Reply) -> Argument:
        text = _HEADING.sub("", reply.text).strip() if reply.finish in ("stop", "length") else ""
        name = self.generator.name
        return Argument(task.name, instance.item_id, name, text, reply.key, reply.finish)


def argument_messages(task: ProxyTask, instance: TaskInstance) -> tuple[Message, ...]:
    """The messages that ask a model for an argument on one instance."""
    system, user = task.prompt.render_texts(question=instance.question, context=instance.context)
    return Message("system", system), Message("user", user)


def write_pairs(task: ProxyTask, path: Path) -> int:
    """Write what a generator of this task can be tuned on (`judgebench tune generator`), and return
    how many lines that is: for each training instance what a model is asked, word for word, and the
    gold argument as its `target`. Nothing of the other splits is in it.

    After section 4.1 and Table 3 of the paper on proxy tasks. Raises SetupError where no training
    instance has an argument.
    """
    found = [i for i in task.of("train") if i.version == 0 and i.argument.strip()]
    if not found:
        where = f"task {task.name}"
        raise SetupError(Problem("has no gold argument in its training split", field=where))
    lines = [
        {
            "task": task.name,
            "item_id": i.item_id,
            "messages": [asdict(message) for message in argument_messages(task, i)],
            "target": i.argument.strip(),
        }
        for i in found
    ]
    write_lines(path, lines)
    return len(lines)
