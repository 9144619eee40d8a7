"""annotate.yaml, or the key `annotate` of a bench.yaml: what is labelled, by whom, and how much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from judgebench.annotation.screens import ChooseConfig, Gold, GoldConfig, Paths, chosen, read_gold
from judgebench.annotation.store import GOLD, LEAD, WITHOUT_RUBRIC
from judgebench.data.conversation import PairsConfig
from judgebench.data.load import load_data
from judgebench.errors import Problem, SetupError, raise_any
from judgebench.files import StrictModel, load_with_lines, read_text, validate
from judgebench.judges.config import Name
from judgebench.people.page import check_people
from judgebench.records import ADJUDICATED, Dataset
from judgebench.rubric import Rubric, load_rubric
from judgebench.runs.bench import BenchConfig
from judgebench.runs.load import Gathered, bench_file, read_config

Task = Literal["labels", "ranking", "preference", "criteria", "two-part", "review"]
_ANSWERS = Rubric.from_labels({"annotation": ["1", "2"]})  # where no rubric is needed


class AnnotateConfig(StrictModel):
    """The key `annotate` of bench.yaml, whose data and rubric are then labelled.

    Every item is labelled by `per_item` of the `annotators`, whose training and experience is their
    `background`, after a round of `calibration` items for everybody. `looks` are the numbers of
    complete items at which a judge's decision may be looked at. Where `auto_advance`, the last
    label of an item opens the next one. `choose` draws the items that are labelled; `gold` adds
    items whose labels are known. Where `spans`, annotators mark the words that are the reason for a
    label. The only annotator may be `adjudicated`, whose labels are gold. `assessments` are texts
    about the responses to a question, labelled on `assessment_metrics` once the responses are
    labelled (the task `two-part`).
    """

    task: Task = "labels"
    annotators: tuple[str, ...] = Field(min_length=1)
    per_item: int = Field(default=2, ge=1)
    calibration: int = Field(default=0, ge=0)
    guidelines: str = ""
    background: str = ""
    auto_advance: bool = False
    looks: tuple[int, ...] = ()
    assessments: Paths = ()
    assessment_metrics: tuple[str, ...] = ()
    choose: ChooseConfig | None = None
    gold: GoldConfig | None = None
    spans: bool = False
    seed: int = 0

    @property
    def makes_gold(self) -> bool:
        """True where `adjudicated` alone labels, in sight of the labels in question."""
        return self.annotators == GOLD

    @field_validator("looks")
    @classmethod
    def _rising(cls, looks: tuple[int, ...]) -> tuple[int, ...]:
        if any(a >= b for a, b in pairwise((0, *looks))):
            raise ValueError("numbers of items, each larger than the one before")
        return looks


class StudyConfig(AnnotateConfig):
    """annotate.yaml. Paths are seen from its folder."""

    name: Name
    items: Paths = Field(min_length=1)
    rubric: str = ""
    metrics: tuple[str, ...] = ()
    pairs: PairsConfig | None = None


@dataclass(frozen=True)
class Setup:
    """A checked study, before anything is written. `rubric` holds the metrics that are asked;
    None where the task needs none. `assessments` are those of the task `two-part`, `gold` what is
    known of items, by their ids."""

    config: StudyConfig
    file: Path
    rubric: Rubric | None
    dataset: Dataset
    assessments: Dataset | None
    guidelines: str
    gold: Mapping[str, Gold]


def load_setup(path: Path) -> Setup:
    """The study that an annotate.yaml or a bench.yaml describes. Labels in the data are left out.

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
    rubric = gather("rubric", _rubric, config, file)
    found = gather("items", _read, config, config.items, rubric, file, folder)
    about = gather("assessments", _read, config, config.assessments, rubric, file, folder)
    path = file.parent / config.guidelines
    text = gather("guidelines", read_text, path) if config.guidelines else ""
    _check_two_parts(config, rubric, gather)
    gold = dict[str, Gold]()
    if config.task != "labels":
        for key in (key for key in ("choose", "gold", "spans") if getattr(config, key)):
            gather.tell(key, Problem("is for other tasks", found=config.task, allowed="labels"))
    elif found and rubric:
        if config.choose:
            found = gather("choose", chosen, config.choose, found, rubric, file.parent, config.seed)
        if config.gold and found:
            known = gather("gold", read_gold, config.gold, found, rubric, file.parent)
            found, gold = known or (found, gold)
    gather("annotators", check_people, config.annotators, "")
    for name in {LEAD, ADJUDICATED}.intersection(config.annotators):
        if not config.makes_gold:
            message = "is no name for an annotator, unless `adjudicated` alone labels"
            gather.tell("annotators", Problem(message, found=name))
    gather.raise_any()
    assert found is not None
    return Setup(config, file, rubric, found, about, text or "", gold)


def _of_bench(bench: BenchConfig, file: Path) -> StudyConfig:
    """A bench.yaml as a study. Raises SetupError where it says nothing of annotators."""
    asked = bench.section("annotate", AnnotateConfig)
    if asked is None:
        message = "says nothing of who labels: add the key `annotate` with annotators"
        raise SetupError(Problem(message, str(file), None, "annotate"))
    names = (bench.data,) if isinstance(bench.data, str) else bench.data
    items = tuple(name for name in names if not name.endswith(".sqlite"))  # what comes of it
    values = {**asked.model_dump(), "name": bench.name, "items": items, "rubric": bench.rubric}
    values |= {"metrics": bench.metrics, "pairs": bench.pairs}
    return validate(values, StudyConfig, str(file))


def _rubric(config: StudyConfig, file: Path) -> Rubric | None:
    if config.task in WITHOUT_RUBRIC:
        return None
    if not config.rubric:
        raise SetupError(Problem(f"is needed for the task {config.task}"))
    rubric = load_rubric(config.rubric, relative_to=file.parent)
    return rubric.only(config.metrics) if config.metrics else rubric


def _read(
    config: StudyConfig, names: tuple[str, ...], rubric: Rubric | None, file: Path,
    folder: Path | None,
) -> Dataset | None:  # fmt: skip
    if not names or (rubric is None and config.task not in WITHOUT_RUBRIC):
        return None
    pairs = config.pairs.wanted(file, config.seed) if config.pairs else None
    paths, asked = [file.parent / name for name in names], rubric or _ANSWERS
    found = load_data(paths, asked, folder=folder, pairs=pairs)
    raise_any([Problem("its items have no text to label", x) for x in found.textless])
    return found


def _check_two_parts(config: StudyConfig, rubric: Rubric | None, gather: Gathered) -> None:
    """`assessments` and their metrics belong to one task, and that needs both."""
    given = {"assessments": config.assessments, "assessment_metrics": config.assessment_metrics}
    for key, value in given.items():
        if bool(value) != (config.task == "two-part"):
            message = "is for the task two-part" if value else "is needed for the task two-part"
            gather.tell(key, Problem(message, found=", ".join(value)))
    if rubric is not None and config.assessment_metrics:
        gather("assessment_metrics", rubric.only, config.assessment_metrics)
