"""The certificate of a judge: one JSON file with its own SHA-256."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import AwareDatetime, Field

from judgebench.errors import Problem, SetupError
from judgebench.files import StrictModel, load_json, write_atomically
from judgebench.records import canonical_json
from judgebench.rubric import Rubric

FORMAT: Final = "judgebench certificate 1"
CERTIFIED = ("REPLACE", "ASSIST")
ALONE = "deciding alone where it is sure"


class CertifiedJudge(StrictModel):
    """The judge, its settings as far as they are known, and the models that said to reply."""

    name: str
    signature: str
    models: tuple[str, ...]
    settings: dict[str, Any]


class LabelTest(StrictModel):
    """The share that new labels are to show: `value` at issue, at least `bound` later.

    Of `severe` it is the share of what an annotator calls severe that the judge finds (ASSIST: that
    the filter sends to humans; alone: that is left to people); of `agreement` the share of
    annotators' labels that the judge gives too. The other numbers are of `severe` alone.
    """

    kind: Literal["severe", "agreement"]
    value: float
    bound: float
    severe_share: float = 0.0  # of the reference labels
    called_severe: float = 1.0  # share of the answers, by one annotator
    annotator_alarms: float = 0.0  # share of what is not severe that an annotator calls so
    judge_alarms: float = 0.0  # and that the judge finds, or the filter sends


class CertifiedMetric(StrictModel):
    """The decision on one metric. `conditions` are the rows of its conditions in results.csv,
    `severe_from` is the least severe label that counts as severe, and `threshold` the value of the
    `signal` from which on a filter sends an answer to humans. From `alone_from` on, a value of the
    `alone_signal`, the judge decides alone what it does not call severe; `alone_tests` are by name.
    Without a `test` new labels say nothing of the outcome."""

    title: str
    outcome: str
    reason: str
    conditions: tuple[dict[str, Any], ...]
    severe_from: str = ""
    signal: str = ""
    threshold: float | None = None
    alone_signal: str = ""
    alone_from: float | None = None
    test: LabelTest | None = None
    alone_tests: dict[str, LabelTest | None] = Field(default_factory=dict)

    @property
    def roles(self) -> str:
        """`ASSIST and deciding alone where it is sure`; empty where the judge has no role."""
        alone = "" if self.alone_from is None else ALONE
        outcome = self.outcome if self.outcome in CERTIFIED else ""
        return " and ".join(filter(None, (outcome, alone)))


class LabelledAnswers(StrictModel):
    """The answers that people labelled and the judge judged, all that a certificate speaks of: how
    many, who labelled, how their labels became reference labels, and whether they saw a model's."""

    items: int
    questions: int
    systems: dict[str, int]  # items by system, where systems are named
    annotators: int
    labels: int
    rule: str
    blind: str


class Certificate(StrictModel):
    """The certificate of one judge. `verdicts` are the judge's labels by item and metric, empty
    where it gave none, `alone` the items that it decides alone by metric, and `texts` hashes of
    question and text by item, where these are known. `hash` is the SHA-256 of all else, as JSON
    with sorted keys and without white space."""

    format: Literal["judgebench certificate 1"]
    study: str
    issued: AwareDatetime
    until: AwareDatetime | None
    judgebench: str
    judge: CertifiedJudge
    metrics: dict[str, CertifiedMetric]
    labelled: LabelledAnswers
    rule: dict[str, Any]
    rubric: Rubric
    texts: dict[str, str]
    verdicts: dict[str, dict[str, str]]
    alone: dict[str, tuple[str, ...]]
    hash: str = ""

    @property
    def certified(self) -> dict[str, CertifiedMetric]:
        """The metrics on which the judge may replace or assist, by id; and those on which it may in
        part decide alone, once for each test, by id and the test's name."""
        certified = {}
        for key, metric in self.metrics.items():
            if metric.outcome in CERTIFIED:
                certified[key] = metric
            for name, test in metric.alone_tests.items():
                role = {"outcome": ALONE, "test": test}
                certified[f"{key}, {name}"] = metric.model_copy(update=role)
        return certified

    def digest(self) -> str:
        """The hash that this content has."""
        content = self.model_dump(mode="json", exclude={"hash"})
        return hashlib.sha256(canonical_json(content).encode()).hexdigest()

    def sealed(self) -> Certificate:
        """The same certificate with its hash."""
        return self.model_copy(update={"hash": self.digest()})

    def write(self, path: str | Path) -> Path:
        """Write the file, whole or not at all. Raises SetupError where it is there already."""
        path = Path(path)
        if path.exists():
            raise SetupError(Problem("exists: a certificate is never overwritten", str(path)))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, self.model_dump_json(indent=1).encode())
        return path


def read(path: Path) -> Certificate:
    """Return the certificate of that file. Raises SetupError for another file, and for one that was
    edited."""
    certificate = load_json(path, Certificate, "a certificate")
    if certificate.digest() != certificate.hash:
        message = "was edited after it was issued, so that its hash does not fit: use the original"
        raise SetupError(Problem(message, str(path)))
    return certificate
