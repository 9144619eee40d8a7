"""Whose arguments help most to decide?"""

from judgebench.ranking.rank import measure_rankings, read_ranked_run
from judgebench.ranking.rank_bench import rank_file, ranking_in_words
from judgebench.ranking.task import ProxyConfig
from judgebench.ranking.task_file import in_words, listed
from judgebench.runs.features import FeatureParts

PARTS = FeatureParts(
    settings=ProxyConfig,
    check=ranking_in_words,
    run=rank_file,
    read=read_ranked_run,
    measure=measure_rankings,
    checks={"task": in_words},
    lists={"tasks": listed},
)
