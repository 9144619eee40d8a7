"""The part of a run folder that a ranking adds: `proxy/`, enough to rank again offline.

proxy/ranking.json            tasks, ranked instances, evaluators, settings (rewritten whole)
proxy/given.jsonl             arguments on ranked instances that this run did not make: the experts'
                              (gold), and those of the user's files
proxy/split-TASK.json         which rows of the source are trained on, tuned on, tested on
proxy/arguments-SYSTEM.jsonl  what each model wrote, and each control case
proxy/evaluators/NAME/        a trained evaluator: weights, tokenizer, manifest
proxy/passages/               embeddings of the corpus
verdicts-NAME.jsonl           what each evaluator decided with each argument, and how surely
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from judgebench.errors import Problem, SetupError
from judgebench.features import FEATURES
from judgebench.files import disk_errors, read_object, to_json, write_atomically
from judgebench.ranking.proxy.arguments import (
    Argument,
    argument_id,
    argument_line,
    arguments_path,
    last_arguments,
    read_arguments,
)
from judgebench.ranking.proxy.examples import evaluator_names
from judgebench.ranking.proxy.task import GOLD, EvaluatorKind, TaskInstance
from judgebench.ranking.rankers import RankedTask, System, SystemKind
from judgebench.records import Answer
from judgebench.runs.verdict_log import verdict_path
from judgebench.stats.arrays import FloatArray
from judgebench.yaml_file import validate

PROXY = "proxy/"
GIVEN_ARGUMENTS = f"{PROXY}given.jsonl"
(RANKING,) = FEATURES["ranking"].run_files

At = tuple[int, int]  # instance and system
BySystem = Mapping[str, Mapping[str, Argument]]  # by system and item


class _Kept(BaseModel):
    """A part of a file that judgebench writes; a newer version may have written more."""

    model_config = ConfigDict(extra="ignore", frozen=True, from_attributes=True)


class KeptInstance(_Kept):
    """A ranked instance: what is asked, and its right class."""

    item_id: str
    group: str
    question: str
    context: str
    label: str
    label_text: str


class KeptText(_Kept):
    """An argument, and the share of an extract that stands in the document."""

    text: str
    verbatim: float | None = None


class KeptTask(_Kept):
    """One task. `learnt_from` names the systems that LLM-trained evaluators learnt from; every kind
    of evaluator is trained `draws` times."""

    name: str
    title: str
    metric: str
    labels: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    files: dict[str, str] = {}
    kinds: tuple[EvaluatorKind, ...]
    draws: int
    judged: bool
    generators: tuple[str, ...]
    learnt_from: tuple[str, ...]
    instances: tuple[KeptInstance, ...]
    # Not in ranking.json: what was read from the files of arguments, by system and item, and the
    # names of the control cases.
    arguments: dict[str, dict[str, KeptText]] = {}
    controls: tuple[str, ...] = ()

    @property
    def items(self) -> tuple[str, ...]:
        """The ids of the ranked instances."""
        return tuple(i.item_id for i in self.instances)

    @property
    def groups(self) -> dict[str, str]:
        """The group of every item."""
        return {i.item_id: i.group for i in self.instances}

    @property
    def shown(self) -> RankedTask:
        """The task as a report names it."""
        return RankedTask(self.name, self.title, self.metric, self.systems, self.left_out)

    @cached_property
    def systems(self) -> tuple[System, ...]:
        """The writers of at least one argument on the ranked instances: gold first, then models,
        then control cases."""
        kinds: dict[str, SystemKind] = {GOLD: "gold", **dict.fromkeys(self.controls, "control")}
        written = (name for name, by_item in self.arguments.items() if by_item)
        return tuple(System(name, kinds.get(name, "model")) for name in written)

    @property
    def evaluators(self) -> list[tuple[EvaluatorKind, str]]:
        """Kind and name of each evaluator, trained or not; those of one kind stand together."""
        return [(k, name) for k in self.kinds for name in evaluator_names(self.name, k, self.draws)]

    def text(self, system: str, item: str) -> str | None:
        """The argument of a system on an item; None where there is none."""
        found = self.arguments[system].get(item)
        return None if found is None else found.text

    def answers(self, *, document: bool = True) -> dict[At, Answer]:
        """Every argument as it is put to a judge, or without documents to an evaluator."""
        return {
            (row, column): argument_answer(self.name, i, s.name, text, document=document)
            for row, i in enumerate(self.instances)
            for column, s in enumerate(self.systems)
            if (text := self.text(s.name, i.item_id)) is not None
        }

    @cached_property
    def words(self) -> FloatArray:
        """The words of each argument (instances, systems), NaN where there is none."""
        texts = [self.text(s.name, item) for item in self.items for s in self.systems]
        words = [np.nan if text is None else float(len(text.split())) for text in texts]
        return np.array(words).reshape(len(self.items), len(self.systems))


class KeptRanking(_Kept):
    """The content of ranking.json. `generators` maps each to its backend, `retrieval` is what the
    passages were found with, empty without any."""

    judgebench: str
    name: str
    seed: int
    controls: tuple[str, ...]
    families: dict[str, tuple[str, ...]]
    generators: dict[str, str]
    retrieval: dict[str, Any]
    tasks: tuple[KeptTask, ...]


class Trained(_Kept):
    """A finished training, from the manifest of its evaluator. `cut` counts inputs of training that
    were longer than the encoder takes, `cut_arguments` those that lost some of the argument."""

    task: str
    evaluator: str
    kind: EvaluatorKind
    signature: str
    draw: int
    encoder: str
    train: int
    development: int
    epochs: int
    best_epoch: int
    development_score: float
    seconds: float
    cut: int
    cut_arguments: int


def argument_answer(
    task: str,
    instance: TaskInstance | KeptInstance,
    system: str,
    text: str,
    *,
    document: bool = True,
) -> Answer:
    """One argument as an Answer: what is asked, the document if any and if wanted, and the argument
    as its text.

    The gold label is not in it: who judges an argument has to decide as the reader does.
    """
    question = instance.question
    if document and instance.context:
        question += f"\n\nDocument:\n{instance.context}"
    return Answer(
        item_id=argument_id(task, instance.item_id, system),
        text=text,
        question=question,
        system=system,
        group=f"{task}/{instance.group}",
        metadata={"task": task, "instance": instance.item_id},
    )


# --- reading and writing -------------------------------------------------------------------------


def read_ranking(run: Path) -> KeptRanking:
    """The content of ranking.json. Raises SetupError where it is missing or damaged."""
    path = run / RANKING
    if not path.is_file():
        raise SetupError(Problem("is no ranking run: it holds no " + RANKING, file=str(run)))
    return validate(read_object(path.read_bytes(), path), KeptRanking, str(path))


def read_tasks(run: Path) -> list[KeptTask]:
    """The tasks of a ranking run with their arguments. Raises SetupError where the folder is none
    or is damaged."""
    ranking = read_ranking(run)
    names = (*ranking.generators, *ranking.controls)
    paths = [run / GIVEN_ARGUMENTS, *(arguments_path(run, name) for name in names)]
    written = [a for path in paths for a in read_arguments(path)]
    return [_filled(task, ranking, written) for task in ranking.tasks]


def _filled(task: KeptTask, ranking: KeptRanking, written: Iterable[Argument]) -> KeptTask:
    """The task with its arguments of those that were written."""
    ranked = set(task.items)
    unasked = ranking.generators.keys() - set(task.generators)  # of other tasks
    kept = (a for a in written if a.item_id in ranked and a.system not in unasked)
    arguments = {
        system: {item: KeptText.model_validate(a) for item, a in by_item.items()}
        for system, by_item in last_arguments(kept, task.name).items()
    }
    return task.model_copy(update={"controls": ranking.controls, "arguments": arguments})


def files_of(run: Path) -> list[str]:
    """Every file in a run folder that its rankings depend on and that no judge writes."""
    names = [name for task in read_tasks(run) for _, name in task.evaluators]
    found = [verdict_path(run, name) for name in names]
    found += [evaluator_folder(run, name) / "manifest.json" for name in names]
    found += [run / RANKING, run / "human" / "given.csv", *(run / PROXY).glob("*.jsonl")]
    return [path.relative_to(run).as_posix() for path in found]


def write_ranking(run: Path, content: KeptRanking, given: Iterable[Argument]) -> None:
    """Replace ranking.json, and the arguments that this run did not make. Raises DiskFailed."""
    write_arguments_file(run / GIVEN_ARGUMENTS, given)
    plain = content.model_dump(mode="json", exclude_unset=True)
    write_text(run / RANKING, to_json(plain, indent=1) + "\n")


def write_arguments_file(path: Path, arguments: Iterable[Argument]) -> None:
    """One line per argument. Raises DiskFailed."""
    write_text(path, "".join(map(argument_line, arguments)))


def evaluator_folder(run: Path, name: str) -> Path:
    """The folder of a trained evaluator."""
    return run / "proxy" / "evaluators" / name


def read_trained(run: Path, name: str) -> Trained | None:
    """The training of an evaluator; None where it is not trained. Raises SetupError where its
    manifest is damaged."""
    path = evaluator_folder(run, name) / "manifest.json"
    if not path.is_file():
        return None
    return validate(read_object(path.read_bytes(), path), Trained, str(path))


def write_text(path: Path, text: str) -> None:
    """Replace the text of a file in a folder that need not be there yet. Raises DiskFailed."""
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode("utf-8"))
