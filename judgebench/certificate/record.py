"""The certificate of a judge: what was decided, of which judge and on what answers, and until when
it holds. One JSON file, hashed in canonical form, and signed where a key is given."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from judgebench.errors import MissingExtra, Problem, SetupError
from judgebench.files import write_atomically
from judgebench.records import canonical_json
from judgebench.rubric import Rubric
from judgebench.yaml_file import Strict, load_json

CERTIFIED = ("REPLACE", "ASSIST")


class Judged(Strict):
    """The judge: its name, the signature of all that its verdicts depend on, the models that said
    to reply, and its description (prompt, model, decoding) as far as it is known."""

    name: str
    signature: str
    models: tuple[str, ...] = ()
    about: dict[str, Any] = Field(default_factory=dict)


class Tested(Strict):
    """A condition of the decision with its interval."""

    outcome: str
    key: str
    title: str
    state: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    bound: float
    at_least: bool


class Watched(Strict):
    """A share that is watched: it must stay above `bound` where `at_least`, else below it. Once it
    is shown to lie on the wrong side of `near`, which is None where there is too little room, a
    warning is due. `value` is the share at the time of the decision; where it was measured on so
    few answers that it may lie beyond the bound of the decision, `bound` is moved to there."""

    key: str
    title: str
    value: float
    bound: float
    near: float | None
    at_least: bool = True


class Noise(Strict):
    """How often the judge's label changes when it judges an answer again: `changed` of `pairs`, on
    anchors at most `most` at the level that a certificate keeps for it. With no pairs `most` is
    assumed."""

    pairs: int
    changed: int
    most: float


class CertifiedMetric(Strict):
    """The decision on one metric. `severe_from` is the least severe label that counts as severe,
    `threshold` that of the `signal` from which on a filter sends an answer to humans."""

    title: str
    outcome: str
    reason: str
    conditions: tuple[Tested, ...]
    watched: tuple[Watched, ...] = ()
    noise: Noise | None = None
    severe_from: str = ""
    signal: str = ""
    threshold: float | None = None


class Population(Strict):
    """The answers that were judged, as counts: of `shares`, by feature (a metric's labels by
    `label:METRIC`, `system`, `length`, `alike`) and category, of one answer to each question.

    `cuts` are the lengths in characters at which a new category of `length` begins. Where an
    `encoder` is named, `centre` is the mean of the texts' vectors, and `alike` how near to it a
    text is: a new category begins at each of the cosines `near`."""

    answers: int
    questions: int
    shares: dict[str, dict[str, int]]
    cuts: tuple[int, ...] = ()
    encoder: str = ""
    centre: tuple[float, ...] = ()
    near: tuple[float, ...] = ()


class Labelled(Strict):
    """Who made the reference labels, how they follow from theirs, and whether they were made
    without sight of any model's label."""

    annotators: int
    labels: int
    rule: str
    blind: str


class Anchor(Strict):
    """An answer that is judged again: its content hash, the judge's labels (empty: none) and those
    of annotators by metric and number. Texts stand here only where that was asked for."""

    id: str
    hash: str
    group: str = ""
    verdicts: dict[str, str]
    labels: dict[str, dict[str, str]] = Field(default_factory=dict)
    system: str = ""
    question: str | None = None
    text: str | None = None
    reference: str | None = None


class Validity(Strict):
    """Until when a certificate holds: a time, a number of judged answers, a number of changes of
    the model that says to reply; None: without limit."""

    until: datetime | None
    answers: int | None
    model_changes: int | None


class Signature(Strict):
    """An Ed25519 signature of the hash, and the public key, both in base64."""

    algorithm: Literal["ed25519"] = "ed25519"
    key: str
    value: str


class Certificate(Strict):
    """The certificate of one judge. `hash` is the SHA-256 of all else but the signature, as JSON
    with sorted keys and without white space."""

    format: Literal["judgebench certificate 1"] = "judgebench certificate 1"
    study: str
    issued: datetime
    judgebench: str
    judge: Judged
    rubric: dict[str, Any]
    rule: dict[str, Any]
    labels: Labelled
    metrics: dict[str, CertifiedMetric]
    population: Population
    anchors: tuple[Anchor, ...]
    valid: Validity
    hash: str = ""
    signature: Signature | None = None

    def digest(self) -> str:
        """The hash that this content has."""
        content = self.model_dump(mode="json", exclude={"hash", "signature"})
        return hashlib.sha256(canonical_json(content).encode()).hexdigest()

    def write(self, path: str | Path) -> Path:
        """Write the file, whole or not at all. Raises SetupError where it is there already."""
        return write(self, Path(path))

    def __str__(self) -> str:
        may = ", ".join(f"{one.outcome} on {one.title}" for one in self.metrics.values())
        until = f", until {self.valid.until:%Y-%m-%d}" if self.valid.until else ""
        return f"certificate of {self.judge.name}: {may}{until}"

    @property
    def of_rubric(self) -> Rubric:
        """The rubric with its labels."""
        return Rubric.model_validate(self.rubric)

    @property
    def certified(self) -> dict[str, CertifiedMetric]:
        """The metrics on which the judge may replace or assist."""
        return {m: one for m, one in self.metrics.items() if one.outcome in CERTIFIED}

    @property
    def by_id(self) -> Mapping[str, Anchor]:
        """The anchors by the ids of their answers."""
        return {anchor.id: anchor for anchor in self.anchors}


def sealed(certificate: Certificate, key: Path | None = None) -> Certificate:
    """The certificate with its hash, and its signature by the private key in a PEM file. Raises
    SetupError where that file holds none."""
    digest = certificate.digest()
    signature = _signed(digest, key) if key else None
    return certificate.model_copy(update={"hash": digest, "signature": signature})


def write(certificate: Certificate, path: Path) -> Path:
    """Write the file, whole or not at all. Raises SetupError where it is there already."""
    if path.exists():
        message = "exists: a certificate is never overwritten"
        raise SetupError(Problem(message, str(path)))
    content = certificate.model_dump(mode="json")
    anchors = content.pop("anchors")
    whole = json.dumps(content, indent=1, ensure_ascii=False)
    lines = ",\n  ".join(json.dumps(one, ensure_ascii=False) for one in anchors)  # a line for each
    text = f'{whole[:-2]},\n "anchors": [\n  {lines}\n ]\n}}\n'
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.encode())
    return path


def read(path: Path) -> Certificate:
    """The certificate of that file. Raises SetupError where it is none, and where its content is
    not that of its hash or signature."""
    found = load_json(path, Certificate, "a certificate")
    if (digest := found.digest()) != found.hash:
        message = "was changed after it was issued: its content does not have its hash"
        raise SetupError(Problem(message, str(path), None, "hash", found.hash[:16], digest[:16]))
    if found.signature and not _fits(found.hash, found.signature):
        message = "the signature does not fit the content"
        raise SetupError(Problem(message, str(path), None, "signature", found.signature.key))
    return found


def signed_by(certificate: Certificate, public: Path | None = None) -> str:
    """Who signed it, in words. Raises SetupError where it is not signed with the key of that
    file."""
    signature = certificate.signature
    if public is not None:
        _library()
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        try:
            key: Any = load_pem_public_key(public.read_bytes())
            expected = base64.b64encode(key.public_bytes_raw()).decode()
        except (OSError, ValueError, AttributeError) as error:
            message = f"cannot be read as a public key: {error}"
            raise SetupError(Problem(message, str(public), allowed="PEM, Ed25519")) from None
        if signature is None or signature.key != expected:
            found = signature.key if signature else "not signed"
            message = "is not signed with this key"
            raise SetupError(Problem(message, str(public), None, "signature", found, expected))
    return f"signed with the key {signature.key}" if signature else "it is not signed"


def anchor_line(anchor: Anchor) -> str:
    """The anchor as a line of a JSONL file of answers, without any label."""
    known = {"item_id": anchor.id, "system": anchor.system, "group": anchor.group}
    read = {"question": anchor.question, "text": anchor.text, "reference": anchor.reference}
    return json.dumps({k: v for k, v in {**known, **read}.items() if v}, ensure_ascii=False)


def _library() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise MissingExtra("a signed certificate", "signatures", "cryptography") from None
    return ed25519


def _signed(digest: str, path: Path) -> Signature:
    library = _library()
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(path.read_bytes(), None)
    except (OSError, TypeError, ValueError) as error:
        message = f"cannot be read as a private key without a password: {error}"
        raise SetupError(Problem(message, str(path), allowed="PEM, Ed25519")) from None
    if not isinstance(key, library.Ed25519PrivateKey):
        raise SetupError(Problem("is no Ed25519 key", str(path), allowed="PEM, Ed25519"))
    public = base64.b64encode(key.public_key().public_bytes_raw()).decode()
    return Signature(key=public, value=base64.b64encode(key.sign(digest.encode())).decode())


def _fits(digest: str, signature: Signature) -> bool:
    library = _library()
    from cryptography.exceptions import InvalidSignature

    try:
        key = library.Ed25519PublicKey.from_public_bytes(base64.b64decode(signature.key))
        key.verify(base64.b64decode(signature.value), digest.encode())
    except (InvalidSignature, ValueError):
        return False
    return True
