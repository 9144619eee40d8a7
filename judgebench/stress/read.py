"""A stress test as its run folder holds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judgebench.records import Answer
from judgebench.runner.bench import settings_of
from judgebench.store.folder import BESIDE, RunFolder
from judgebench.store.open import verdicts_of
from judgebench.stress.pairs import StressRun, VariantVerdicts
from judgebench.stress.probes.altered import AlteredAnswer
from judgebench.stress.probes.attacks import StressSettings
from judgebench.stress.probes.sets import read_set
from judgebench.stress.result import RecipeSummary
from judgebench.study.study import JUDGE_KINDS, Study


def read_stress(folder: RunFolder, study: Study) -> StressRun | None:
    """What the stress test of a run folder has beside its study; None where there is none.

    Raises SetupError where the folder is damaged.
    """
    manifest = folder.manifest()
    if not manifest.get("stress"):
        return None
    altered = read_set(folder.path / BESIDE) if folder.has_beside else []
    answers = folder.indexed_answers()
    judges, asked = _by_kind(manifest["judges"])
    settings = settings_of(manifest).section("stress", StressSettings) or StressSettings()
    return StressRun(
        altered,
        [verdicts_of(folder, name, about, answers) for name, about in judges.items()],
        [_variant(folder, name, about, answers) for name, about in asked.items()],
        [RecipeSummary(**recipe) for recipe in manifest["stress"]["recipes"]],
        (*manifest["stress"]["notices"], *_unsound(manifest, altered)),
        settings.half_width,
    )


def _by_kind(
    entries: Mapping[str, Mapping[str, Any]],
) -> tuple[dict[str, Mapping[str, Any]], dict[str, Mapping[str, Any]]]:
    """Judges, and the same judges asked otherwise."""
    asked = {name: about for name, about in entries.items() if about["kind"] == "variant"}
    return {name: about for name, about in entries.items() if about["kind"] in JUDGE_KINDS}, asked


def _variant(
    folder: RunFolder, name: str, about: Mapping[str, Any], answers: Sequence[Answer]
) -> VariantVerdicts:
    found = verdicts_of(folder, name, about, answers)
    return VariantVerdicts(
        about["of"], about["recipe"], about["asked"], about["repeat"], found.verdicts
    )


def _unsound(manifest: Mapping[str, Any], altered: Sequence[AlteredAnswer]) -> Iterator[str]:
    """That nobody has said that the parents are sound, where nobody has."""
    if not manifest.get("labels") and any(item.must_worsen for item in altered):
        yield (
            "There are no human labels: every unaltered answer is taken as sound, and a verdict "
            "against one as a false alarm."
        )
