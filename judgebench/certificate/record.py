"""The certificate of a judge: one JSON file with its own SHA-256."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime

from judgebench.errors import Problem, SetupError
from judgebench.files import StrictModel, check_new, load_json, write_atomically
from judgebench.records import sha256_of
from judgebench.rubric import Rubric

# What differs in every table of verdicts, and from machine to machine.
_MAY_DIFFER = {"file", "rows", "draws", "expected", "runtime"}
ALONE = "deciding alone where it is sure"

Share = Annotated[float, AfterValidator(lambda share: round(float(share), 6))]


class CertifiedJudge(StrictModel):
    """The judge, its settings as far as they are known, and the models that said to reply."""

    name: str
    signature: str
    models: tuple[str, ...]
    settings: dict[str, Any]

    def differing(self, settings: Mapping[str, Any]) -> list[str]:
        """The keys of the judge that are other, or missing, in these settings, as JSON."""
        keys = (self.settings.keys() | settings.keys()) - _MAY_DIFFER
        return sorted(key for key in keys if self.settings.get(key) != settings.get(key))


class LabelTest(StrictModel):
    """The share that new labels are to show: `value` at issue, at least `bound` later.

    Of `severe` it is the share of what an annotator calls severe that the judge finds (ASSIST: that
    the filter sends to humans; ALONE: that is left to people); of `agreement` the share of
    annotators' labels that the judge gives too. The other numbers are of `severe` alone.
    """

    kind: Literal["severe", "agreement"]
    value: Share
    bound: Share
    severe_share: Share = 0.0  # of the reference labels
    called_severe: Share = 1.0  # share of the answers, by one annotator
    annotator_alarms: Share = 0.0  # share of what is not severe that an annotator calls so
    judge_alarms: Share = 0.0  # and that the judge finds, or the filter sends


class Role(StrictModel):
    """A role of the judge on a metric, and the test of it by new labels, if there can be one.

    An answer goes to people where the `signal` of a filter (ASSIST) is at least the `threshold`; of
    ALONE where it is below, or the judge calls the answer severe.
    """

    metric: str  # its id in the rubric
    title: str
    labels: tuple[str, ...]  # as in the rubric
    outcome: str  # REPLACE, ASSIST or ALONE
    severe_from: str = ""  # the least severe label that counts as severe
    signal: str = ""
    threshold: float | None = None
    test: LabelTest | None = None

    @property
    def name(self) -> str:
        """`ASSIST on Harm`."""
        return f"{self.outcome} on {self.title}"


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
    """The certificate of one judge. `results` are the rows of results.csv that it rests on,
    `verdicts` the judge's labels by item and metric, empty where it gave none, and `texts` hashes
    of question and text by item, 0 where these are not known. `hash` is the SHA-256 of all else, as
    JSON with sorted keys and without white space."""

    format: Literal["judgebench certificate 1"]
    study: str
    issued: AwareDatetime
    until: AwareDatetime | None
    judgebench: str
    judge: CertifiedJudge
    roles: tuple[Role, ...]
    results: tuple[dict[str, Any], ...]
    labelled: LabelledAnswers
    rule: dict[str, Any]
    rubric: Rubric
    texts: dict[str, int]
    verdicts: dict[str, dict[str, str]]
    hash: str = ""

    def digest(self) -> str:
        """The hash that this content has."""
        return sha256_of(self.model_dump(mode="json", exclude={"hash"}))

    def sealed(self) -> Certificate:
        """The same certificate with its hash."""
        return self.model_copy(update={"hash": self.digest()})

    def write(self, path: str | Path) -> Path:
        """Write the file, whole or not at all. Raises SetupError where it is there already."""
        path = Path(path)
        check_new(path)
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
