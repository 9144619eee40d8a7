"""The ranking wing: whose arguments help most to decide?"""

from __future__ import annotations

from judgebench.features import Named
from judgebench.runs.wing import FileKind, Section, Wing

RANKING = "proxy/ranking.json"  # in a run folder
WING = Wing(
    name="ranking",
    section=Section(
        "proxy",
        Named("judgebench.ranking.proxy.task:ProxyConfig"),
        Named("judgebench.ranking.rank_bench:ranking_in_words"),
        "ranks arguments: call `judgebench rank run`",
        Named("judgebench.ranking.rank_bench:rank_file"),
    ),
    left=lambda folder: (folder.path / RANKING).is_file(),
    read=Named("judgebench.ranking.rank:read_ranked_run"),
    measure=Named("judgebench.ranking.rank:measure_rankings"),
    commands=Named("judgebench.cli.rank:commands"),
    kinds=(
        FileKind("task", Named("judgebench.ranking.proxy.task_file:in_words"), keys=("prompt",)),
    ),
    lists={"tasks": Named("judgebench.ranking.proxy.task_file:listed")},
)
