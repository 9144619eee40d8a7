"""What features add to judgebench, and the findings of all of them together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgebench.features import FEATURES, Feature
from judgebench.progress import SILENT, Progress

if TYPE_CHECKING:
    import yaml

    from judgebench.files import ReadRows
    from judgebench.results.shown import Shown
    from judgebench.rubric import Rubric
    from judgebench.runs.bench import Bench, BenchConfig, Extend, LearntEntry, LearntJudge
    from judgebench.runs.folder import RunFolder
    from judgebench.studies.study import Study

Lines = Sequence[tuple[str, str]]  # (name, what it is)


@dataclass(frozen=True)
class Learning:
    """Judges that a feature makes of answers, human labels and other judges' verdicts.

    `entry` reads an entry of `judges` that is the feature's, seen from a file. `check` looks at a
    benchmark with such entries, and `open` makes its judges, in a run folder, without calling a
    model; `listed` reads the entries under the feature's own key in the bench.yaml `file`. All
    raise SetupError with every problem.
    """

    entry: Callable[[Any, Path, yaml.Node | None], LearntEntry]
    check: Callable[[Bench], None]
    open: Callable[[Bench, RunFolder], Sequence[LearntJudge]]
    listed: Callable[[BenchConfig, Path, yaml.Node | None], Sequence[LearntEntry]] | None = None


@dataclass(frozen=True)
class FeatureParts:
    """What a feature does with what it declares in `judgebench.features`, all optional."""

    settings: Any = None  # the class of what its key of bench.yaml holds
    # Says in words what a bench.yaml with the key holds, in place of the core's check.
    check: Callable[[Path], str] | None = None
    # Does what `jb.run` does with such a file in a run folder, whose path it returns.
    run: Callable[[Path, Path | None, Progress, float | None], Path] | None = None
    # Checks a benchmark with its key, and says what the run keeps under it. Raises SetupError.
    admit: Callable[[Bench], Any] | None = None
    learning: Learning | None = None
    extension: Callable[[], Extend] | None = None  # what it adds to the run of a benchmark
    # Takes from a run folder what the feature measures, as `Study.beside[name]`.
    read: Callable[[RunFolder, Study], Any] | None = None
    # Makes findings of a study and of those of each feature that it needs; None for nothing.
    measure: Callable[..., Shown | None] | None = None
    # Makes a certificate of a study, a judge's name, its decision and the rule.
    certify: Callable[..., Any] | None = None
    # By the kind of a file: says in words what it holds, by the name of a rubric.
    checks: Mapping[str, Callable[[Path, str], str]] = field(default_factory=dict)
    lists: Mapping[str, Callable[[], Lines]] = field(default_factory=dict)
    # The altered answers of a set that count.
    altered: Callable[[Path], Sequence[Any]] | None = None
    rows: ReadRows | None = None  # of its table, like those of a CSV
    rubric: Callable[[Path], Rubric | None] | None = None  # of the labels in its table
    collected: Callable[[Path], Sequence[str]] | None = None  # see `Dataset`
    # The labels of answers whose right label is known, beside those in its table.
    anchors: Callable[[Path], Sequence[Mapping[str, str]]] | None = None
    # The texts of the answers that were labelled, by item id and the fields of `Answer`.
    answers: Callable[[Path], Mapping[str, Mapping[str, str]]] | None = None


def learnings() -> list[Learning]:
    """The kinds of judges that features make."""
    return [feature.parts.learning for feature in FEATURES.values() if feature.judge_keys]


def with_features(study: Study, folder: RunFolder) -> Study:
    """The study with what each feature left in the run folder. Raises SetupError."""
    left = [feature for feature in FEATURES.values() if _has_left(feature, folder)]
    read = {feature.name: feature.parts.read(folder, study) for feature in left}
    return replace(study, beside={**study.beside, **read})


def _has_left(feature: Feature, folder: RunFolder) -> bool:
    """True where a run folder holds what the feature measures."""
    manifest = folder.manifest()
    facts = {fact for judge in manifest["judges"].values() for fact in judge.get("about") or ()}
    return (
        any((folder.path / name).is_file() for name in feature.run_files)
        or any(manifest.get(key) for key in feature.run_keys)
        or bool(feature.keeps_section and (manifest.get("settings") or {}).get(feature.section))
        or not facts.isdisjoint(feature.judge_facts)
    )


def analyses(study: Study, *names: str, progress: Progress = SILENT) -> Mapping[str, Shown]:
    """The findings of the features of these names, or of all, in the order in which they are
    shown."""
    found: dict[str, Shown] = {}
    progress.start("analyses", len(FEATURES), 0)
    for feature in sorted(FEATURES.values(), key=lambda feature: len(feature.needs)):
        is_able = feature.measures_every_study or study.beside.get(feature.name) is not None
        is_asked = is_able and feature.name in (names or FEATURES)
        if is_asked and (measure := feature.parts.measure):
            shown = measure(study, *map(found.get, feature.needs))
            found |= {feature.name: shown} if shown is not None else {}
        progress.advance("analyses", feature.name)
    return {name: found[name] for name in FEATURES if name in found}
