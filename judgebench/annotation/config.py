"""annotate.yaml, or the key `annotate` of a bench.yaml: what is labelled, by whom, and how much."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from judgebench.annotation.pictures import Picture, read_pictures
from judgebench.annotation.store import GOLD, LEAD
from judgebench.data.conversation import PairsConfig
from judgebench.data.load import load_data
from judgebench.errors import Problem, SetupError, raise_any
from judgebench.files import StrictModel, load_with_lines, read_text, validate
from judgebench.judges.config import Name
from judgebench.people.page import check_people
from judgebench.protocol import Protocol, load_protocol
from judgebench.records import ADJUDICATED, Answer, Dataset, content_hash
from judgebench.rubric import Rubric, load_rubric
from judgebench.runs.bench import BenchConfig
from judgebench.runs.load import Gathered, bench_file, read_config

Task = Literal["labels", "ranking", "preference", "criteria"]
Paths = Annotated[
    tuple[str, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)
]
_ANSWERS = Rubric.from_labels({"annotation": ["1", "2"]})  # of a ranking, which needs no rubric


class AnnotateConfig(StrictModel):
    """The key `annotate` of bench.yaml, whose data and rubric are then labelled.

    Every item is labelled by `per_item` of the `annotators`, whose training and experience is their
    `background`, after a round of `calibration` items for everybody. Where `auto_advance`, the last
    label of an item opens the next one. `gold` is a table of items whose labels are known, which
    stand among the others of everybody. The only annotator may be `adjudicated`, whose labels are
    gold.
    """

    task: Task = "labels"
    annotators: tuple[str, ...] = Field(min_length=1)
    per_item: int = Field(default=2, ge=1)
    calibration: int = Field(default=0, ge=0)
    guidelines: str = ""
    background: str = ""
    auto_advance: bool = False
    gold: str = ""
    seed: int = 0

    @property
    def makes_gold(self) -> bool:
        """True where `adjudicated` alone labels, in sight of the labels in question."""
        return self.annotators == GOLD


class StudyConfig(AnnotateConfig):
    """annotate.yaml. Paths are seen from its folder."""

    name: Name
    items: Paths = Field(min_length=1)
    rubric: str = ""
    metrics: tuple[str, ...] = ()
    pairs: PairsConfig | None = None


@dataclass(frozen=True)
class Setup:
    """A checked study, before anything is written.

    `rubric` holds the metrics that are asked; None of a ranking. `gold` are the known labels of
    items, by id and metric; `pictures` are those that texts name, by address, and `not_shown` why
    others are not.
    """

    config: StudyConfig
    file: Path
    rubric: Rubric | None
    dataset: Dataset
    guidelines: str
    gold: Mapping[str, Mapping[str, str]]
    pictures: Mapping[str, Picture] = field(default_factory=dict)
    not_shown: Mapping[str, str] = field(default_factory=dict)
    protocol: str = ""  # its SHA-256

    @property
    def texts(self) -> list[str]:
        """All that annotators read: the guidelines, and the parts of each item."""
        return [self.guidelines, *map(_text_of, self.dataset.answers)]


def load_setup(path: Path, protocol: str | Path | None = None) -> Setup:
    """The study that an annotate.yaml or a bench.yaml describes. Labels in the data are left out. A
    protocol says, in place of the file, by which rubric, by how many annotators each and of how
    many items.

    Raises SetupError with every problem of the file and of the files that it names.
    """
    file = path if path.suffix in (".yaml", ".yml") else bench_file(path)
    value, node = load_with_lines(file)
    gather = Gathered(str(file))
    if isinstance(value, Mapping) and "data" in value:
        bench, _ = read_config(file, data_needed=True)
        config, folder = _of_bench(bench, file), bench.data_home(file, None)
    else:
        config, folder = validate(value, StudyConfig, str(file), node), None
    promised = load_protocol(protocol) if protocol else None
    rubric = promised.rubric if promised else gather("rubric", _rubric, config, file)
    items = gather("items", _read, config, rubric, file, folder)
    if promised:
        config = config.model_copy(update={"per_item": promised.annotators})
        items = items and gather("items", _draw, items, promised, str(protocol), config.seed)
    path = file.parent / config.guidelines
    guidelines = gather("guidelines", read_text, path) if config.guidelines else ""
    known = None
    if config.gold and config.task != "labels":
        gather.tell("gold", Problem("is for other tasks", found=config.task, allowed="labels"))
    elif config.gold and items and rubric:
        known = gather("gold", read_gold, file.parent / config.gold, items, rubric)
    gather("annotators", check_people, config.annotators, "")
    gather("annotators", check_reserved, config.annotators)
    gather.raise_any()
    assert items is not None
    dataset, gold = known or (items, {})
    tables = filter(None, (*config.items, config.gold))
    folders = [(file.parent / name).parent for name in tables]
    setup = Setup(config, file, rubric, dataset, guidelines or "", gold)
    if promised:
        setup = replace(setup, protocol=promised.sha256)
    pictures, not_shown = read_pictures(setup.texts, folders)
    return replace(setup, pictures=pictures, not_shown=not_shown)


def _text_of(row: Answer) -> str:
    """All texts of an item, one below the other."""
    parts = (part.text for part in (*row.turns, *row.responses))
    return "\n\n".join([row.question, row.text, row.reference or "", *parts])


def check_reserved(names: Sequence[str]) -> None:
    """Raises SetupError for names that are no annotator's; `adjudicated` may label alone."""
    reserved = [name for name in names if name.casefold() in (LEAD, ADJUDICATED)]
    if reserved and tuple(names) != GOLD:
        message = "is no name for an annotator"
        raise SetupError([Problem(message, found=name) for name in sorted(reserved)])


def _of_bench(bench: BenchConfig, file: Path) -> StudyConfig:
    """A bench.yaml as a study. Raises SetupError where it says nothing of annotators."""
    section = bench.section("annotate", AnnotateConfig)
    if section is None:
        message = "says nothing of who labels: add the key `annotate` with annotators"
        raise SetupError(Problem(message, str(file), None, "annotate"))
    names = (bench.data,) if isinstance(bench.data, str) else bench.data
    items = tuple(name for name in names if not name.endswith(".sqlite"))  # what comes of it
    values = {**section.model_dump(), "name": bench.name, "items": items, "rubric": bench.rubric}
    values |= {"metrics": bench.metrics, "pairs": bench.pairs}
    return validate(values, StudyConfig, str(file))


def _draw(items: Dataset, protocol: Protocol, path: str, seed: int) -> Dataset:
    """As many items as promised, question by question, in random order; all, where they were drawn
    in another way. Raises SetupError where they are too few, and for a protocol that was changed:
    labels would carry the hash of what nobody promised."""
    if protocol.content_hash != protocol.sha256:
        message = "was changed since it was written: write it again (judgebench plan --protocol)"
        raise SetupError(Problem(message, path))
    rows, n = items.answers, protocol.answers
    if len(rows) < n:
        message = f"are fewer than the {n:,} answers that the protocol promises"
        raise SetupError(Problem(message, found=str(len(rows))))
    if protocol.drawn == "random":
        rows = sorted(rows, key=lambda row: content_hash([seed, row.group]))[:n]
    return replace(items, answers=rows)


def _rubric(config: StudyConfig, file: Path) -> Rubric | None:
    if config.task == "ranking":
        return None
    if not config.rubric:
        raise SetupError(Problem(f"is needed for the task {config.task}"))
    rubric = load_rubric(config.rubric, relative_to=file.parent)
    return rubric.only(config.metrics) if config.metrics else rubric


def _read(
    config: StudyConfig, rubric: Rubric | None, file: Path, folder: Path | None
) -> Dataset | None:
    if rubric is None and config.task != "ranking":
        return None
    pairs = config.pairs.wanted(file, config.seed) if config.pairs else None
    paths = [file.parent / name for name in config.items]
    dataset = load_data(paths, rubric or _ANSWERS, folder=folder, pairs=pairs)
    raise_any([Problem("its items have no text to label", x) for x in dataset.textless])
    return dataset


def read_gold(
    path: Path, items: Dataset, rubric: Rubric
) -> tuple[Dataset, dict[str, dict[str, str]]]:
    """The items of a study and, behind them, the gold items; the known labels of these, by item id
    and metric. Raises SetupError with every problem of the table."""
    table = load_data([path], rubric)
    own = {row.item_id for row in items.answers}
    gold = defaultdict[str, dict[str, str]](dict)
    problems = [Problem("its items have no text to label", text) for text in table.textless]
    for given in table.labels:
        if given.label and gold[given.item_id].setdefault(given.metric, given.label) != given.label:
            wrong = "has several known labels"
            problems.append(Problem(wrong, str(path), None, given.metric, given.item_id))
    for name in (row.item_id for row in table.answers):
        if name in own:
            problems.append(Problem("is one of the items", str(path), found=name))
        if name not in gold:
            problems.append(Problem("has no known label", str(path), found=name))
    raise_any(problems)
    return replace(items, answers=(*items.answers, *table.answers)), gold
