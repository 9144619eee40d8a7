"""Read one reply on one text."""

from judgebench.judges.replies import ALONE, Reading, RecordedReply, Thresholds, read_reply
from judgebench.records import Answer
from judgebench.rubric import Rubric


def read_alone(
    kind: RecordedReply, text: str, rubric: Rubric, thresholds: Thresholds | None = None,
    judged: Answer | None = None,
) -> Reading:  # fmt: skip
    (reading,) = read_reply(kind, text, rubric, ALONE, [judged] if judged else [], thresholds)
    return reading
