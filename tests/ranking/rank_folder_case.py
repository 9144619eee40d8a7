"""A ranking run written by hand, whose scores can be worked out on paper."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judgebench.files import to_line
from judgebench.ranking.rank import measure_rankings, read_ranked_run
from judgebench.ranking.rankers import (
    GIVEN_ARGUMENTS,
    RANKING,
    KeptRanking,
    Rankings,
    evaluator_folder,
)
from judgebench.ranking.task import Argument, argument_id, write_arguments
from judgebench.records import Answer, Status, Verdict, content_hash
from judgebench.rubric import Rubric
from judgebench.runs.folder import RunFolder
from judgebench.runs.open import open_folder
from judgebench.runs.verdict_log import verdict_line

RUBRIC = Rubric.model_validate(
    {
        "name": "quality",
        "version": "1",
        "instructions": "Rate it.",
        "metrics": [
            {
                "id": "reasons", "title": "Reasons", "question": "Good?", "kind": "ordinal",
                "labels": [{"text": "Strong"}, {"text": "Weak"}, {"text": "None"}],
                "abstain": "Cannot say",
            },
            {
                "id": "truth", "title": "Truth", "question": "True?", "kind": "ordinal",
                "labels": [{"text": "True", "severity": 0}, {"text": "False", "severity": 4}],
            },
            {
                "id": "side", "title": "Side", "question": "Which?", "kind": "nominal",
                "labels": [{"text": "Yes"}, {"text": "No"}],
            },
        ],
    }
)  # fmt: skip
ITEMS = {"a": "yes", "b": "no", "c": "yes"}  # the last lies in the group of the first
GROUPS = {"a": "g1", "b": "g2", "c": "g1"}
TEXTS = {
    "gold": {item: f"Gold reasons on {item}." for item in ITEMS},
    "m1": {item: f"Since {item}." for item in ITEMS},
    "noise": {item: f"Something else beside {item} entirely." for item in ITEMS},
}
TRAINED = {
    "task": "t", "encoder": "e", "train": 8, "development": 4, "epochs": 2, "best_epoch": 1,
    "development_score": 0.5, "seconds": 1.0, "cut": 0,
}  # fmt: skip


def question(item: str) -> str:
    return f"Is {item} so?"


def ranking(generators: Sequence[str] = ("m1",), kinds: Sequence[str] = (), **changes: Any) -> Any:
    """What ranking.json holds, and beside it the arguments of its one task; `changes` are those of
    the task."""
    task = {
        "name": "t", "title": "Task", "labels": ["yes", "no"],
        "left_out": ["open"], "notes": ["Made by hand."], "files": {}, "learnt_from": ["m1"],
        "instances": [
            {
                "item_id": item, "group": GROUPS[item], "text": question(item), "argument": "",
                "context": "A document." if item == "c" else "", "label": label, "split": "test",
            }
            for item, label in ITEMS.items()
        ],
        "arguments": {
            system: {item: {"text": text} for item, text in by_item.items()}
            for system, by_item in TEXTS.items()
        },
    }  # fmt: skip
    backends = {"m1": "llamacpp:m"}
    proxy = {
        "tasks": ["t"], "families": {"fam": ["m1", "kin"]},
        "generators": [{"name": n, "backend": backends.get(n, "llamacpp:n")} for n in generators],
        "evaluators": {"kinds": kinds or ["baseline", "llm-trained"], "draws": 2},
    }  # fmt: skip
    return {"judgebench": "0", "name": "r", "seed": 0, "proxy": proxy, "tasks": [task | changes]}


def write_ranking(path: Path, content: Any, given: Iterable[Argument]) -> None:
    """The files of a ranking, its arguments in one."""
    write_arguments(path / GIVEN_ARGUMENTS, given)
    plain = KeptRanking.model_validate(content).model_dump_json()
    (path / RANKING).write_text(plain)


def make(path: Path, content: Any = None, judges: Sequence[Any] = ()) -> RunFolder:
    """The folder with everything but verdicts; `judges` are the entries of bench.yaml."""
    content = content or ranking()
    tasks = [{k: v for k, v in task.items() if k != "arguments"} for task in content["tasks"]]
    given = [
        Argument(task["name"], item, system, **argument)
        for task in content["tasks"]
        for system, by_item in task["arguments"].items()
        for item, argument in by_item.items()
    ]
    write_ranking(path, {**content, "tasks": tasks}, given)
    run = RunFolder(path)
    run.write_data(RUBRIC, answers(content), [])
    names = [judge["name"] for judge in judges if isinstance(judge, dict)]
    entries = {
        name: {"kind": "judge", "signature": f"sig-{name}", "about": {}}
        for name in [*names, *(["filed"] if len(names) < len(judges) else [])]
    }
    entries["constant"] = {"kind": "control", "signature": "sig-constant", "about": {}}
    settings = {"name": "r", "rubric": "quality", "judges": list(judges)}
    run.write_manifest({"name": "r", "judges": entries, "settings": settings})
    return run


def answers(content: Mapping[str, Any]) -> Iterator[Answer]:
    """What judges are asked about."""
    for task in content["tasks"]:
        asked = {
            i["item_id"]: i["text"] + (i["context"] and f"\n\nDocument:\n{i['context']}")
            for i in task["instances"]
        }
        for system, by_item in task["arguments"].items():
            for item, argument in by_item.items():
                if item not in asked:
                    continue
                key = argument_id(task["name"], item, system)
                yield Answer(key, argument["text"], asked[item], system=system)


def ranked(run: RunFolder) -> Rankings | None:
    """What is found in the folder."""
    study = open_folder(run)
    if not (run.path / RANKING).is_file():
        return None
    beside = {"ranking": read_ranked_run(run, study)}
    return measure_rankings(replace(study, beside=beside))


def train(run: RunFolder, name: str, kind: str, draw: int = 0) -> None:
    """The manifest of a trained evaluator."""
    folder = evaluator_folder(run.path, name)
    folder.mkdir(parents=True, exist_ok=True)
    about = TRAINED | {"evaluator": name, "kind": kind, "draw": draw, "signature": f"sig-{name}"}
    (folder / "manifest.json").write_text(to_line(about))


def decided(
    name: str, item: str, system: str, yes: float, *, text: str | None = None, **more: Any
) -> Verdict:
    """An evaluator's verdict that the probability of yes is `yes`."""
    said = TEXTS[system][item] if text is None else text
    told: dict[str, Any] = {
        "item_id": argument_id("t", item, system),
        "content_hash": content_hash([question(item), said, None]),
        "judge": name,
        "signature": f"sig-{name}",
        "status": Status.OK,
        "labels": {"t": "yes" if yes > 0.5 else "no"},
        "probabilities": {"t": {"yes": yes, "no": 1 - yes}},
    }
    return Verdict(**(told | more))


def judged(
    name: str, item: str, system: str, labels: Mapping[str, str], *, text: str | None = None,
    **more: Any,
) -> Verdict:  # fmt: skip
    """A judge's verdict on an argument."""
    said = TEXTS[system][item] if text is None else text
    asked = question(item) + ("\n\nDocument:\nA document." if item == "c" else "")
    told: dict[str, Any] = {
        "item_id": argument_id("t", item, system),
        "content_hash": content_hash([asked, said, None]),
        "judge": name,
        "signature": f"sig-{name}",
        "status": Status.OK,
        "labels": labels,
    }
    return Verdict(**(told | more))


def write(run: RunFolder, verdicts: Sequence[Verdict]) -> None:
    """Append verdicts to the files of their judges."""
    for verdict in verdicts:
        with run.verdict_path(verdict.judge).open("ab") as file:
            file.write(verdict_line(verdict))
