"""annotate.yaml: what is labelled, by whom, and how much."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from judgebench.annotation.anchors import SHIPPED, Anchor, draw_anchors, read_anchors
from judgebench.annotation.pictures import Picture, read_pictures
from judgebench.annotation.store import GOLD, LEAD
from judgebench.data.conversation import PairsConfig
from judgebench.data.load import load_data
from judgebench.errors import Problem, SetupError, raise_any, shorten
from judgebench.files import StrictModel, load_with_lines, read_text, validate
from judgebench.judges.config import Name
from judgebench.protocol import Protocol, load_protocol
from judgebench.records import ADJUDICATED, Answer, Dataset, content_hash
from judgebench.rubric import Rubric, load_rubric
from judgebench.runs.load import Gathered
from judgebench.studies.reference_labels import drawn_of

Task = Literal["labels", "ranking", "preference", "criteria"]
Paths = Annotated[
    tuple[str, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)
]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # can name a file on every system
_ANSWERS = Rubric.from_labels({"annotation": ["1", "2"]})  # of a ranking, which needs no rubric


class AnnotateConfig(StrictModel):
    """annotate.yaml. Paths are seen from its folder.

    Every item is labelled by `per_item` of the `annotators`, whose training and experience is their
    `background`, after a round of `calibration` items for everybody. Where `auto_advance`, the last
    label of an item opens the next one. So many `anchors` are hidden among the items of everybody,
    drawn from the tables and sets of altered answers `anchors_from`; all of these without a number,
    and none for 0.
    The only annotator may be `adjudicated`, whose labels are gold.
    """

    name: Name
    task: Task = "labels"
    items: Paths = Field(min_length=1)
    rubric: str = ""
    metrics: tuple[str, ...] = ()
    pairs: PairsConfig | None = None
    annotators: tuple[str, ...] = Field(min_length=1)
    per_item: int = Field(default=2, ge=1)
    calibration: int = Field(default=0, ge=0)
    guidelines: str = ""
    background: str = ""
    auto_advance: bool = False
    anchors: int | None = Field(default=None, ge=0)
    anchors_from: Paths = ()
    seed: int = 0

    @property
    def makes_gold(self) -> bool:
        """True where `adjudicated` alone labels, in sight of the labels in question."""
        return self.annotators == GOLD


@dataclass(frozen=True)
class Setup:
    """A checked study, before anything is written.

    `rubric` holds the metrics that are asked; None of a ranking. `known` are the right labels of
    anchors, by id and metric; `pictures` are those that texts name, by address, and `not_shown` the
    addresses of others, which stay text.
    """

    config: AnnotateConfig
    file: Path
    rubric: Rubric | None
    dataset: Dataset
    guidelines: str
    known: Mapping[str, Mapping[str, str]]
    pictures: Mapping[str, Picture] = field(default_factory=dict)
    not_shown: Sequence[str] = ()
    protocol: Protocol | None = None

    @property
    def texts(self) -> list[str]:
        """All that annotators read: the guidelines, and the parts of each item."""
        return [self.guidelines, *map(text_of, self.dataset.answers)]


def load_setup(
    file: Path, changes: Mapping[str, Any] = {}, protocol: str | Path | None = None
) -> Setup:
    """The study that an annotate.yaml with these changes describes. Labels in the data are left
    out. A protocol says, in place of the file, by which rubric, by how many annotators each and of
    how many items.

    Raises SetupError with every problem of the file and of the files that it names.
    """
    value, node = load_with_lines(file)
    value = {**value, **changes} if isinstance(value, Mapping) else value
    config = validate(value, AnnotateConfig, str(file), node)
    gather = Gathered(str(file))
    promised = load_protocol(protocol) if protocol else None
    rubric = promised.rubric if promised else gather("rubric", _rubric, config, file)
    items = gather("items", _read, config, rubric, file)
    if promised:
        config = config.model_copy(update={"per_item": promised.annotators})
        items = items and gather("items", _draw, items, promised, str(protocol), config)
    path = file.parent / config.guidelines
    guidelines = gather("guidelines", read_text, path) if config.guidelines else ""
    has_anchors = bool(config.anchors_from if config.anchors is None else config.anchors)
    anchors = None
    if has_anchors and config.task != "labels":
        gather.tell("anchors", Problem("is for other tasks", found=config.task, allowed="labels"))
    elif has_anchors and items and rubric:
        anchors = gather("anchors", _anchors, config, file, items, rubric)
    gather("annotators", check_annotators, config.annotators)
    gather.raise_any()
    assert items is not None
    dataset = replace(items, answers=(*items.answers, *(row for row, _ in anchors or ())))
    known = {row.item_id: labels for row, labels in anchors or ()}
    setup = Setup(config, file, rubric, dataset, guidelines or "", known, protocol=promised)
    folders = [(file.parent / name).parent for name in (*config.items, *config.anchors_from)]
    pictures, not_shown = read_pictures(setup.texts, folders)
    return replace(setup, pictures=pictures, not_shown=not_shown)


def columns_of(protocol: Protocol | None) -> tuple[str, ...]:
    """The columns of items that a protocol names: labels carry them."""
    return (*protocol.subgroups, *drawn_of(protocol.drawn).columns) if protocol else ()


def cell_of(row: Answer, column: str) -> str:
    """The cell of an item in a column that is kept beside its texts, or its system."""
    return row.system if column == "system" else row.metadata.get(column, "")


def text_of(row: Answer) -> str:
    """All texts of an item, one below the other."""
    parts = (part.text for part in (*row.turns, *row.responses))
    return "\n\n".join([row.question, row.text, row.reference or "", *parts])


def check_annotators(names: Sequence[str], field: str = "") -> None:
    """Raises SetupError for names that are reserved, occur twice or cannot name a file;
    `adjudicated` may label alone."""
    taken = set[str]() if tuple(names) == GOLD else {LEAD, ADJUDICATED}
    problems = []
    for name in names:
        if not _NAME.fullmatch(name):
            allowed = "letters a to z, digits, full stops, dashes and underscores"
            problems.append(Problem("cannot name a file", "", None, field, shorten(name), allowed))
        elif name.casefold() in taken:
            wrong = "is reserved, or named twice"
            problems.append(Problem(wrong, field=field, found=shorten(name)))
        taken.add(name.casefold())
    raise_any(problems)


def _draw(items: Dataset, protocol: Protocol, path: str, config: AnnotateConfig) -> Dataset:
    """As many items as promised and those of calibration, question by question, in random order;
    all, where they were drawn in another way. Raises SetupError where they are too few, lack a
    column that is promised, or have fewer annotators, and for a protocol that was changed: labels
    would carry the hash of what nobody promised."""
    if protocol.content_hash != protocol.sha256:
        message = "was changed since it was written: write it again (judgebench plan --protocol)"
        raise SetupError(Problem(message, path))
    rows, n = items.answers, protocol.answers + config.calibration
    n_annotators, most = protocol.annotators, len(config.annotators)
    problems = [
        Problem("is promised, and no column of the items", path, found=column)
        for column in columns_of(protocol)
        if not any(cell_of(row, column) for row in rows)
    ]
    if len(rows) < n:
        message = (
            f"are fewer than the {protocol.answers:,} answers that the protocol promises and "
            f"{config.calibration:,} of calibration"
        )
        problems.append(Problem(message, found=str(len(rows)), allowed=f"{n:,} or more"))
    if n_annotators > most:
        about = ("annotators", str(n_annotators), f"at most {most:,}")
        problems.append(Problem("cannot be met", path, None, *about))
    raise_any(problems)
    if protocol.drawn == "random":
        rows = sorted(rows, key=lambda row: content_hash([config.seed, row.group]))[:n]
    return replace(items, answers=rows)


def _rubric(config: AnnotateConfig, file: Path) -> Rubric | None:
    if config.task == "ranking":
        return None
    if not config.rubric:
        raise SetupError(Problem(f"is needed for the task {config.task}"))
    rubric = load_rubric(config.rubric, relative_to=file.parent)
    return rubric.only(config.metrics) if config.metrics else rubric


def _read(config: AnnotateConfig, rubric: Rubric | None, file: Path) -> Dataset | None:
    if rubric is None and config.task != "ranking":
        return None
    pairs = config.pairs.wanted(file, config.seed) if config.pairs else None
    paths = [file.parent / name for name in config.items]
    dataset = load_data(paths, rubric or _ANSWERS, pairs=pairs)
    raise_any([Problem("its items have no text to label", x) for x in dataset.textless])
    return dataset


def _anchors(config: AnnotateConfig, file: Path, items: Dataset, rubric: Rubric) -> list[Anchor]:
    anchors = read_anchors(config.anchors_from or (SHIPPED,), file.parent, items, rubric)
    return draw_anchors(anchors, config.anchors or 0, rubric, config.seed)
