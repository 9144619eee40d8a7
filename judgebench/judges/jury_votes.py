"""A jury: one verdict from the verdicts of several judges, with no new call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from judgebench.judges.config import JuryConfig
from judgebench.records import Answer, Status, Verdict
from judgebench.rubric import Rubric
from judgebench.study.answers import keys_of
from judgebench.study.truth import TruthConfig, settle

# One member's label of every answer, by metric: its place in the metric, -1 where it gave none.
Ballots = Mapping[str, NDArray[np.int64]]


def jury_about(config: JuryConfig, rubric: Rubric, members: Mapping[str, str]) -> dict[str, object]:
    """What a jury's verdicts depend on; `members` maps names to signatures."""
    return {
        "judge": "jury",
        "members": dict(members),
        "rule": config.rule,
        "ties": config.ties,
        "rubric": {"name": rubric.name, "hash": rubric.content_hash},
    }


def jury_verdicts(
    config: JuryConfig,
    rubric: Rubric,
    answers: Sequence[Answer],
    members: Sequence[Ballots],
    signature: str,
) -> Iterator[Verdict]:
    """One verdict per answer, by the members that gave a label.

    A metric that no member labelled, or that is tied under `ties: none`, has no label and the
    verdict is `unparsed`. Members' abstentions do not vote; `members` have one row per answer.
    """
    truth = TruthConfig(rule=config.rule, ties=config.ties)
    settled = {
        m.id: settle(np.stack([votes[m.id] for votes in members], axis=1), m, truth)
        for m in rubric.metrics
    }
    for row, (item_id, hashed) in enumerate(keys_of(answers)):
        chosen = {m.id: int(settled[m.id][row]) for m in rubric.metrics}
        missing = [metric for metric, index in chosen.items() if index < 0]
        yield Verdict(
            item_id=item_id,
            content_hash=hashed,
            judge=config.name,
            signature=signature,
            status=Status.UNPARSED if missing else Status.OK,
            labels={m.id: m.label_texts[chosen[m.id]] for m in rubric.metrics if chosen[m.id] >= 0},
            reason=f"no member's label, or a tie, for {', '.join(missing)}" if missing else "",
        )
