"""Forecasts of calls, tokens and cost before a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from judgebench.judges.llm import LLMJudge
from judgebench.records import Answer, Usage
from judgebench.runs.bench import Bench
from judgebench.runs.folder import RunFolder
from judgebench.runs.judging import Bundles, Ledger
from judgebench.runs.stop import Budget
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
        _forecast(judge, Bundles(judge, indexed(answers), shared, bench.parents), folder)
        for judge, answers in _asked(bench, shared)
    ]


def _asked(
    bench: Bench, shared: Sequence[Answer] = ()
) -> Iterator[tuple[LLMJudge, Sequence[Answer]]]:
    """The language models, each with the answers that it judges; `shared` are the data's."""
    for judge in bench.judges:
        yield judge, shared
    yield from ((variant.judge, variant.answers) for variant in bench.variants)


def _forecast(judge: LLMJudge, bundles: Bundles, folder: RunFolder) -> Forecast:
    ledger = Ledger(bundles.answers, judge.signature, judge.parse_retries)
    ledger.note_files(folder.verdict_files(judge.name))
    rows = bundles.rows
    left = len(rows) - ledger.done(rows)
    open_rows = [*ledger.never_ended(rows).tolist(), *(row for row, _ in ledger.to_ask_again(rows))]
    asked = bundles.firsts(np.array(open_rows, dtype=np.int64))
    sample = [bundles.task(row) for row in asked[:: max(1, len(asked) // _SAMPLE)].tolist()]
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
    others = (*bench.others, *bench.learnt)
    names = [*(judge.name for judge, _ in _asked(bench)), *(judge.name for judge in others)]
    costs = [verdict.cost or 0.0 for name in names for verdict in folder.verdicts(name)]
    beside = sum(judge.spent for judge in bench.learnt)
    expected = [(f.cost or 0.0) / f.left for f in forecast(bench, folder) if f.left]
    return Budget(limit, spent=sum(costs) + beside, highest=max([0.0, *costs, *expected]))
