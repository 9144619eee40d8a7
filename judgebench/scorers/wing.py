"""The scorers wing: numbers for answers, what they say of the humans' labels, and judges that
follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from judgebench.features import Named
from judgebench.runs.wing import Learning, Section, Wing

if TYPE_CHECKING:
    from judgebench.runs.folder import RunFolder


def _scored(folder: RunFolder) -> bool:
    """True where a scorer scored the answers, or a judge follows from a score."""
    judges = folder.manifest()["judges"].values()
    return any(one["kind"] == "scorer" or "cuts" in (one.get("about") or {}) for one in judges)


def _listed(config: Any, *where: Any) -> Sequence[Any]:
    """The entries of the key `scorers`, where a bench.yaml has it."""
    return _ENTRIES(config, *where) if config.scorers else ()


_ENTRIES = Named("judgebench.scorers.config:scorer_entries")
WING = Wing(
    name="scorers",
    section=Section("scorers", Named("judgebench.scorers.config:ScorersConfig")),
    learning=Learning(
        ("scorer",),
        Named("judgebench.scorers.config:fit_entry"),
        Named("judgebench.scorers.judges:check_scorers"),
        Named("judgebench.scorers.judges:open_scorers"),
        _listed,
    ),
    left=_scored,
    read=Named("judgebench.scorers.candidates:read_scorers"),
    measure=Named("judgebench.scorers.measure:measure_scorers"),
    commands=Named("judgebench.cli.scorers:commands"),
    lists={"scorers": Named("judgebench.scorers.config:listed")},
)
