"""Forecasts of calls, tokens and cost before a run."""

from __future__ import annotations

from dataclasses import dataclass

from judgebench.judges.llm import LLMJudge
from judgebench.records import Usage
from judgebench.runs.bench import Bench
from judgebench.runs.folder import RunFolder
from judgebench.runs.judging import Budget, RequestGroups
from judgebench.runs.verdict_log import FiledVerdicts
from judgebench.studies.answers import indexed

CHARACTERS_A_TOKEN = 4  # the usual rule of thumb for English; forecasts say "roughly"
_SAMPLE = 50  # answers rendered for a forecast


@dataclass(frozen=True)
class Forecast:
    """The calls of one judge in a run. Tokens are rough; cost in US dollars, None if unknown.

    Of a judge that looks things up, calls, tokens and cost are the most that they can come to.
    """

    judge: str
    answers: int
    done: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    at_most: bool = False

    @property
    def left(self) -> int:
        """Answers without an ending."""
        return self.answers - self.done


def forecast(bench: Bench, folder: RunFolder) -> list[Forecast]:
    """Forecast the rest of each language model's work without calling any, nor writing."""
    shared = indexed(bench.dataset.answers)
    return [
        _forecast(judge, RequestGroups(judge, indexed(answers), shared, bench.parents), folder)
        for judge, answers in bench.models
    ]


def _forecast(judge: LLMJudge, bundles: RequestGroups, folder: RunFolder) -> Forecast:
    rows, path = bundles.rows, folder.verdict_path(judge.name)
    verdicts = FiledVerdicts(path, judge.signature, bundles.answers)
    unread = verdicts.to_ask_again(rows, judge.parse_retries)
    open_rows = [*verdicts.never_ended(rows).tolist(), *(row for row, _ in unread)]
    left = len(open_rows)
    asked = [*{bundles.numbers[row]: row for row in open_rows}.values()]  # one of each bundle
    sample = [bundles.task(row) for row in asked[:: max(1, len(asked) // _SAMPLE)]]
    parts = judge.calls_an_answer
    characters = [
        sum(len(m.content) for m in judge.request(task, part).messages)
        for task in sample
        for part in range(parts)
    ]
    scale = len(asked) / len(sample) if sample else 0.0
    rounds, knowledge = judge.rounds, judge.config.knowledge
    prompt = round(scale * rounds * sum(characters) / CHARACTERS_A_TOKEN)
    if knowledge:  # each call shows again what was looked up before
        shown = rounds * (rounds - 1) // 2 * knowledge.passages * knowledge.characters
        prompt += len(asked) * parts * shown // CHARACTERS_A_TOKEN
    completion = left * judge.likely_reply_tokens
    price = judge.config.settings.price
    cost = price.cost(Usage(0, prompt, completion)) if price else None
    return Forecast(
        judge.name, len(rows), len(rows) - left, len(asked) * parts * rounds, prompt, completion,
        cost, rounds > 1,
    )  # fmt: skip


def budget_of(bench: Bench, folder: RunFolder, limit: float | None) -> Budget:
    """A budget that counts earlier costs of this run folder. Without a limit no file is read."""
    if limit is None:
        return Budget(None)
    costs = [v.cost or 0.0 for judge in bench.asked for v in folder.verdicts(judge.name)]
    beside = sum(judge.spent for judge in bench.learnt)
    expected = [(f.cost or 0.0) / f.left for f in forecast(bench, folder) if f.left]
    return Budget(limit, spent=sum(costs) + beside, highest=max([0.0, *costs, *expected]))
