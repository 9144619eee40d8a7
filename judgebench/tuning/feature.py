"""Judges that learn from human labels, and what that is worth."""

from judgebench.runs.features import FeatureParts, Learning
from judgebench.tuning.config import TuningConfig
from judgebench.tuning.judges import check_judges, open_judges
from judgebench.tuning.measure import measure_tuning, read_tuning
from judgebench.tuning.tuned import learning_entry

PARTS = FeatureParts(
    settings=TuningConfig,
    learning=Learning(learning_entry, check_judges, open_judges),
    read=read_tuning,
    measure=measure_tuning,
)
