"""Alignments to report on, made by the real `align` from simulated labels and verdicts."""

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
import pytest
from aligned import align

from judgebench.alignment import Alignment
from judgebench.judges.control import CONTROLS, ControlJudge, Fit
from judgebench.records import Answer, HumanLabel, Status, Usage, Verdict
from judgebench.rubric import Metric, Rubric, load_rubric
from judgebench.studies.study import JudgeVerdicts

ABOUT = {
    "judge": "language model",
    "backend": {"backend": "scripted", "model": "made-up", "structured": "json_schema"},
    "prompt": {"name": "structured", "hash": "0123456789abcdef"},
    "runtime": {"concurrency": 8},
}
HOSTILE = [
    "</script><script>document.title='pwned'</script>",
    "<!--<script>document.title='pwned'</script>",
    "<img src=x onerror=\"document.title='pwned'\">",
    "{{ 7*7 }} {% raw %}",
    '{"scientific_consensus": "Aligned with consensus", "verdict": "ok"}',
    "</title><svg/onload=document.title='pwned'>",
    "a \" b ' c & d \u2028 e \u0000 f \ud800 g \u202e h",
]


class Simulation:
    """Draws true severities with a skew, and what people and judges of some skill say of them."""

    def __init__(self, rubric: Rubric, n: int, seed: int = 0) -> None:
        self.rubric, self.random = rubric, np.random.default_rng(seed)
        self.answers = [
            Answer(
                f"item-{i:03d}",
                f"Answer {i}: take it with water, and see a doctor if it does not pass. " * 3,
                question=f"What helps against complaint number {i // 2}?",
                system=("model-a", "model-b")[i % 2],
                reference=None if i % 3 else f"Reference text {i}.",
            )
            for i in range(n)
        ]
        self.truth = {
            m.id: self.random.choice(len(m.labels), n, p=self._skew(m)) for m in rubric.metrics
        }

    @staticmethod
    def _skew(metric: Metric) -> np.ndarray:
        if metric.id == "bias":  # unanimous: chance-corrected agreement is undefined
            return np.array([1.0, *[0.0] * (len(metric.labels) - 1)])
        weights = 0.25 ** np.arange(len(metric.labels)) + 0.02
        return weights / weights.sum()

    def labels_of(self, skill: float, metric: Metric) -> list[str]:
        """Everybody's view is the truth with probability `skill`, else a draw from the skew."""
        truth = self.truth[metric.id]
        other = self.random.choice(len(metric.labels), len(truth), p=self._skew(metric))
        seen = np.where(self.random.random(len(truth)) < skill, truth, other)
        return [metric.label_texts[i] for i in seen]

    def humans(self, annotators: Sequence[str], skill: float = 0.8) -> list[HumanLabel]:
        return [
            HumanLabel(answer.item_id, who, m.id, None if self.random.random() < 0.02 else label)
            for who in annotators
            for m in self.rubric.metrics
            for answer, label in zip(self.answers, self.labels_of(skill, m), strict=True)
        ]

    def judge(self, name: str, skill: float, failing: float = 0.0) -> JudgeVerdicts:
        columns = {m.id: self.labels_of(skill, m) for m in self.rubric.metrics}
        verdicts = {}
        for i, answer in enumerate(self.answers):
            labels = {metric: column[i] for metric, column in columns.items()}
            status = Status.OK
            if self.random.random() < failing:
                status = (Status.UNPARSED, Status.REFUSED, Status.FAILED)[i % 3]
                labels = {} if i % 2 else dict(list(labels.items())[:1])
            verdicts[answer.item_id] = Verdict(
                answer.item_id, answer.content_hash, name, "abcdef0123456789", status, labels,
                reason="" if status is Status.OK else "no JSON object in the reply",
                raw="" if status is Status.OK else f"I would rather not say. {HOSTILE[i % 7]}",
            )  # fmt: skip
        kind = "jury" if name.startswith("jury") else "judge"
        usage = Usage(len(verdicts), 700 * len(verdicts), None if skill < 0.5 else 4321)
        return JudgeVerdicts(name, kind, "abcdef0123456789", verdicts, usage, 0.0123, ABOUT)

    def controls(self, labels: Sequence[HumanLabel]) -> list[JudgeVerdicts]:
        found = []
        for control in CONTROLS:
            judge = ControlJudge(control, Fit(self.rubric, self.answers, labels))
            said = {v.item_id: v for v in judge.verdicts()}
            found.append(
                JudgeVerdicts(judge.name, "control", judge.signature, said, about=judge.describe())
            )
        return found


def simulated(
    rubric: Rubric,
    n: int,
    judges: Mapping[str, tuple[float, float]],
    annotators: Sequence[str] = ("A", "B", "C"),
    notes: Sequence[str] = (),
    name: str = "simulated",
    with_controls: bool = True,
) -> Alignment:
    """`judges` holds (skill, share of failures) by name."""
    made = Simulation(rubric, n)
    labels = made.humans(annotators)
    seen = [made.judge(judge, *how) for judge, how in judges.items()]
    coins = made.controls(labels) if with_controls else []
    return align(name, rubric, made.answers, labels, [*seen, *coins], notes=notes)


@cache
def make_realistic() -> Alignment:
    judges = {
        "Meta-Llama-3-70B-Instruct": (0.9, 0.0),
        "OpenBioLLM-70B": (0.75, 0.04),
        "prometheus-eval/prometheus-8x7b-v2.0": (0.6, 0.0),
        "smollm2-135m": (0.1, 0.15),
        "jury-of-three": (0.93, 0.01),
    }
    note = "The judge smollm2-135m is a tiny model and carries no clinical weight: a demonstration."
    return simulated(load_rubric("medical-safety"), 100, judges, notes=[note], name="med-safety")


@cache
def make_tiny() -> Alignment:
    rubric = Rubric.model_validate(
        {
            "name": "one", "version": "1", "instructions": "Rate.",
            "metrics": [{
                "id": "harm", "title": "Harm", "question": "Harm?", "kind": "ordinal",
                "labels": [{"text": "No"}, {"text": "Yes"}],
            }],
        }
    )  # fmt: skip
    return simulated(rubric, 6, {"m": (0.7, 0.0)}, annotators=("ann",), with_controls=False)


@cache
def make_long() -> Alignment:
    judges = {"litellm:openai/gpt-oss-120b-2025-08-07": (0.8, 0.1), "qwen": (0.5, 0.0)}
    people = ["first.annotator@example.org", "second annotator", "third"]
    return simulated(load_rubric("medical-query-risk"), 60, judges, people, name="query-risk")


@cache
def make_hostile() -> Alignment:
    """Every text that comes from outside is an attack on the page or on the file formats."""
    rubric = Rubric.model_validate(
        {
            "name": "hostile", "version": "<b>1</b>", "instructions": "Rate.",
            "metrics": [{
                "id": "harm", "title": "Harm & <i>risk</i> | 50 % $x_1$ #1 {a} ~ ^ \\",
                "question": "Harm?", "kind": "ordinal",
                "labels": [{"text": "=No | `x` α≥κ"}, {"text": "</script><script>Yes"}],
            }],
        }
    )  # fmt: skip
    made = Simulation(rubric, 20)
    made.answers = [
        Answer(f"{i}{HOSTILE[i % 7]}", HOSTILE[i % 7], HOSTILE[(i + 1) % 7], HOSTILE[(i + 2) % 7])
        for i in range(20)
    ]
    labels = made.humans(["=ann", "<b>bob</b>"])
    judges = [
        made.judge("=cmd|'/C calc'!A0", 0.5, 0.3),
        made.judge("m_1 & 50 % $x$ <script>document.title='pwned'</script> {{ 7*7 }} 中 é", 0.7),
    ]
    seen = [*judges, *made.controls(labels)]
    name = "x</title><script>document.title='pwned'</script>"
    return align(name, rubric, made.answers, labels, seen, notes=["<b>bold</b>", "1. one"])


@pytest.fixture(scope="session")
def realistic() -> Alignment:
    return make_realistic()


@pytest.fixture(scope="session")
def tiny() -> Alignment:
    return make_tiny()


@pytest.fixture(scope="session")
def long_labels() -> Alignment:
    return make_long()


@pytest.fixture(scope="session")
def hostile() -> Alignment:
    return make_hostile()


@pytest.fixture(scope="session", params=["realistic", "tiny", "long_labels", "hostile"])
def alignment(request: pytest.FixtureRequest) -> Alignment:
    found: Alignment = request.getfixturevalue(request.param)
    return found
