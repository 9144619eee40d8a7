"""The parts that a wing may have, and those of all wings together.

A part that is a function is given by name (`features.Named`), so that a wing costs nothing until it
is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgebench.features import WINGS, Named, contributed, wings
from judgebench.progress import SILENT, Progress

if TYPE_CHECKING:
    import yaml

    from judgebench.files import ReadRows
    from judgebench.results.shown import Shown
    from judgebench.rubric import Rubric
    from judgebench.runs.bench import Bench, BenchConfig, LearntEntry, LearntJudge
    from judgebench.runs.folder import RunFolder
    from judgebench.studies.study import Study

Lines = Sequence[tuple[str, str]]  # (name, what it is)


def _none_beside(config: BenchConfig, file: Path, node: yaml.Node | None) -> Sequence[LearntEntry]:
    return ()


def _never(value: Any) -> bool:
    return False


@dataclass(frozen=True)
class Section:
    """A wing's key of bench.yaml, None where the file lacks it.

    `model` is the class of what the key holds. A file with the key is checked by `check`, if there
    is one, in place of the core's check. `instead` is said where `judgebench run` is given such
    a file and another command is meant; `run` is what `jb.run` then does in a run folder, whose
    path it returns.
    """

    key: str
    model: Named
    check: Callable[[Path], str] | None = None
    instead: str = ""
    run: Callable[[Path, Path | None, Progress, float | None], Path] | None = None


@dataclass(frozen=True)
class FileKind:
    """A kind of file that `judgebench check` reads: YAML by the `keys` that only this kind has,
    other files by what `fits` says of them.

    `check` takes the file and the name of a rubric, and says in words what the file holds.
    """

    name: str
    check: Callable[[Path, str], str]
    keys: tuple[str, ...] = ()
    fits: Callable[[Path], bool] | None = None


@dataclass(frozen=True)
class Learning:
    """Judges that a wing makes of answers, human labels and other judges' verdicts.

    `entry` reads an entry of `judges` that has one of the `keys`, seen from a file. `check` looks
    at a benchmark with such entries, and `open` makes its judges, in a run folder, without calling
    a model; `beside` are entries that stand under a key of the wing's own in the bench.yaml
    `file`. All raise SetupError with every problem.
    """

    keys: tuple[str, ...]
    entry: Callable[[Any, Path, yaml.Node | None], LearntEntry]
    check: Callable[[Bench], None]
    open: Callable[[Bench, RunFolder], Sequence[LearntJudge]]
    beside: Callable[[BenchConfig, Path, yaml.Node | None], Sequence[LearntEntry]] = _none_beside


@dataclass(frozen=True)
class Wing:
    """The parts that a wing adds to judgebench, all optional.

    `section` is its key of bench.yaml, `learning` its kind of judges. What it adds to a run is a
    `runs.bench.Extension`, which one of its `commands` passes to the run. Where the wing `left`
    something in a run folder, `read` takes from there what the wing measures; it goes into
    `Study.beside[name]`. `measure` makes the wing's findings from a study and from those of each
    wing that it `needs` (None where there is nothing to measure); where the wing reads run folders,
    only if something was read. `commands` is a group whose commands join those of judgebench.
    `certify` makes a certificate of a decision: a study, a judge's name, the decision, and the rule
    in; an object with `write` out.
    `kinds` are its files, `lists` the headings of `judgebench list`. `tables` reads, by the end of
    their names, files that are named where a table is: the rest sees rows like those of a CSV.
    `studies` gives the rubric, if there is one, of a table that lies in a folder of the wing under
    this path; such a folder stands for its table. `collections` says how its labels were collected
    (`Dataset.collected`).
    """

    name: str
    section: Section | None = None
    learning: Learning | None = None
    left: Callable[[RunFolder], bool] = _never
    read: Callable[[RunFolder, Study], Any] | None = None
    measure: Callable[..., Shown | None] | None = None
    needs: tuple[str, ...] = ()
    commands: Named | None = None
    certify: Callable[..., Any] | None = None
    kinds: tuple[FileKind, ...] = ()
    lists: Mapping[str, Callable[[], Lines]] = field(default_factory=dict)
    tables: Mapping[str, ReadRows] = field(default_factory=dict)
    studies: Mapping[str, Callable[[Path], Rubric | None]] = field(default_factory=dict)
    collections: Mapping[str, Callable[[Path], Sequence[str]]] = field(default_factory=dict)


def sections() -> list[Section]:
    """The keys of bench.yaml that wings own."""
    return contributed("section")


def learnings() -> list[Learning]:
    """The kinds of judges that wings make."""
    return contributed("learning")


def with_wings(study: Study, folder: RunFolder) -> Study:
    """The study with what each wing reads from the run folder. Raises SetupError."""
    found = {wing.name: wing.read(folder, study) for wing in wings() if wing.left(folder)}
    return replace(study, beside={**study.beside, **found})


def analyses(study: Study, *names: str, progress: Progress = SILENT) -> Mapping[str, Shown]:
    """The findings of the wings of these names, or of all, in the order in which they are
    shown."""
    found: dict[str, Shown] = {}
    progress.start("analyses", len(WINGS), 0)
    for wing in sorted(wings(), key=lambda wing: len(wing.needs)):
        able = wing.read is None or study.beside.get(wing.name) is not None
        wanted = wing.measure if able and wing.name in (names or WINGS) else None
        if (shown := wanted(study, *map(found.get, wing.needs)) if wanted else None) is not None:
            found[wing.name] = shown
        progress.advance("analyses", wing.name)
    return {name: found[name] for name in WINGS if name in found}
