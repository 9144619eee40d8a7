"""Human labels, collected blind and balanced by a small web app."""

from judgebench.annotation.export import (
    anchor_rows,
    collected_as,
    rubric_of,
    table_rows,
    texts_of,
)
from judgebench.annotation.init import study_in_words
from judgebench.runs.features import FeatureParts

PARTS = FeatureParts(
    checks={"annotation study": study_in_words},
    rows=table_rows,
    rubric=rubric_of,
    collected=collected_as,
    anchors=anchor_rows,
    answers=texts_of,
)
