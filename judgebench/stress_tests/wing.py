"""The stress wing: does a judge see what was made worse, and stay where nothing was?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgebench.errors import Problem, SetupError
from judgebench.runs.wing import FileKind, Lines, Section, Wing

if TYPE_CHECKING:
    import typer
    from pydantic import BaseModel

    from judgebench.results.shown import Shown
    from judgebench.runs.folder import RunFolder
    from judgebench.stress_tests.result import StressRun
    from judgebench.studies.study import Study


def _settings() -> type[BaseModel]:
    from judgebench.stress_tests.probes.attacks import StressSettings

    return StressSettings


def _read(folder: RunFolder, study: Study) -> StressRun | None:
    from judgebench.stress_tests.attacking import read_stress

    return read_stress(folder, study)


def _measure(study: Study, found: Mapping[str, Shown]) -> Shown | None:
    from judgebench.stress_tests.measure import measure_stress

    return measure_stress(study)


def _commands(app: typer.Typer) -> None:
    from judgebench.stress_tests import commands

    app.command(epilog="Example: judgebench stress bench.yaml --sample 20")(commands.stress)
    app.add_typer(commands.app, name="attack")


# --- judgebench check and judgebench list --------------------------------------------------------


def _attacked(value: Mapping[str, Any]) -> bool:
    """Return whether a bench.yaml is of a stress test: without data there is nothing else to do."""
    return "stress" in value or "data" not in value


def _check_bench(path: Path) -> str:
    from judgebench.runs.load import load_bench
    from judgebench.stress_tests.attacking import StressExtension

    bench = load_bench(path, extend=StressExtension())
    bench.close()
    return bench.in_words


def _is_set(path: Path) -> bool:
    """Return whether the first line is of a set of altered answers and not of an answers file."""
    if path.suffix != ".jsonl":
        return False
    from judgebench.files import open_bytes

    try:
        with open_bytes(path) as file:
            first = json.loads(file.readline(1 << 27).decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(first, dict) and {"parent", "text"} <= first.keys()


def _check_set(path: Path, rubric: str) -> str:
    from judgebench.rubric import load_rubric
    from judgebench.stress_tests.probes.attacks import checked
    from judgebench.stress_tests.probes.sets import read_set

    kept, rejected = checked(read_set(path, load_rubric(rubric)))
    problems = [
        Problem(reason, str(path), None, item.item_id, check)
        for item in rejected
        for check, reason in item.failed_checks.items()
    ]
    if problems:
        raise SetupError(problems)
    return f"a set of {len(kept)} altered answers that pass every check"


def _check_recipe(path: Path, rubric: str) -> str:
    from judgebench.stress_tests.probes.altered import load_recipe

    recipe = load_recipe(path)
    kind = recipe.edit.kind
    return f"the recipe {recipe.name}, version {recipe.version}, an edit of the kind {kind}"


def _check_words(path: Path, rubric: str) -> str:
    from judgebench.stress_tests.probes.text import load_words

    words = load_words(path)
    return f"the word list {words.name}, version {words.version}, {len(words.facts)} facts"


def _check_synonyms(path: Path, rubric: str) -> str:
    from judgebench.stress_tests.probes.edits.wording import load_synonyms

    synonyms = load_synonyms(path)
    return f"the word list {synonyms.name}, version {synonyms.version}, {len(synonyms.pairs)} pairs"


def _attacks() -> Lines:
    from judgebench.shipped import shipped_names
    from judgebench.stress_tests.probes.altered import load_recipe
    from judgebench.stress_tests.probes.attacks import SHIPPED_SETS

    recipes = [load_recipe(name) for name in shipped_names("adversarial", ".yaml")]
    sets = [(name, "a set of sound answers, each beside a false one") for name in SHIPPED_SETS]
    return [*sets, *((r.name, r.about) for r in recipes)]


WING = Wing(
    name="stress",
    section=Section("stress", _settings, _attacked, _check_bench),
    read=_read,
    measure=_measure,
    commands=_commands,
    kinds=(
        FileKind("recipe", _check_recipe, keys=("edit",)),
        FileKind("word list", _check_words, keys=("facts",)),
        FileKind("synonyms", _check_synonyms, keys=("pairs",)),
        FileKind("set", _check_set, fits=_is_set),
    ),
    lists={"attacks": _attacks},
)
