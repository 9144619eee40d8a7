"""Measure a stress test again from its run folder alone: no model, no original files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judgebench.records import Answer
from judgebench.stats.resample import DEFAULT_RESAMPLING, Resampling
from judgebench.store.folder import RunFolder
from judgebench.store.open import verdicts_of
from judgebench.stress.measure import measure
from judgebench.stress.pairs import VariantVerdicts
from judgebench.stress.probes.altered import AlteredAnswer, unaltered
from judgebench.stress.result import RecipeSummary, StressResult
from judgebench.study.answers import indexed
from judgebench.study.study import JUDGE_KINDS
from judgebench.study.truth import TruthConfig


def stress_run(
    folder: RunFolder,
    truth: TruthConfig = TruthConfig(),
    resampling: Resampling = DEFAULT_RESAMPLING,
    half_width: float = 0.10,
) -> StressResult | None:
    """What the stress test of a run folder shows; None where the folder holds none.

    `half_width` is how narrow a detection rate's interval should be. Raises SetupError where the
    folder is damaged.
    """
    manifest = folder.manifest()
    if not manifest.get("stress"):
        return None
    answers, altered = indexed(folder.answers()), folder.attacks()
    judges, asked = _by_kind(manifest["judges"])
    return measure(
        str(manifest["name"]),
        folder.rubric(),
        altered,
        [verdicts_of(folder, name, about, answers) for name, about in judges.items()],
        [_variant(folder, name, about, answers) for name, about in asked.items()],
        [RecipeSummary(**recipe) for recipe in manifest["stress"]["recipes"]],
        folder.labels(),
        unaltered(answers, altered),
        truth,
        resampling,
        (*manifest["stress"]["notices"], *_unsound(manifest, altered)),
        half_width,
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
