"""Numbers for answers, what they say of the humans' labels, and judges that follow from them."""

from judgebench.runs.features import FeatureParts, Learning
from judgebench.scorers.candidates import read_scorers
from judgebench.scorers.config import ScorersConfig, fit_entry, listed, scorer_entries
from judgebench.scorers.judges import check_scorers, open_scorers
from judgebench.scorers.measure import measure_scorers

PARTS = FeatureParts(
    settings=ScorersConfig,
    learning=Learning(fit_entry, check_scorers, open_scorers, listed=scorer_entries),
    read=read_scorers,
    measure=measure_scorers,
    lists={"scorers": listed},
)
