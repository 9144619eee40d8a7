"""What stands for a pair of responses that a judge was shown in both orders."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from judgebench.judges.config import JudgeConfig
from judgebench.judges.replies import Reading
from judgebench.models.contract import Reply
from judgebench.records import Showing, Verdict, content_hash
from judgebench.rubric import Metric

Order = tuple[int, ...]  # the places of the responses, from 0
AS_IT_STANDS: Order = (0, 1)
ORDERS = (AS_IT_STANDS, (1, 0))


def orders_of(config: JudgeConfig, item_id: str) -> Sequence[Order]:
    """In which orders a judge is shown the pair: both, or one that its seed draws."""
    if config.orders != "one":
        return ORDERS
    return [ORDERS[int(content_hash([config.seed or 0, item_id]), 16) % 2]]


def settled(
    shown: Sequence[Showing], metrics: Sequence[Metric], config: JudgeConfig
) -> tuple[dict[str, str], list[str]]:
    """The labels of the first response against the second, and why they are not those of both
    orders. A metric that was not read in every order has none."""
    labels, reasons = {}, []
    for metric in metrics:
        said = [metric.of_row(showing) for showing in shown]
        if "" in said:
            continue
        label: str | None = said[0]
        if len({*said}) > 1:
            label = None if config.inconsistent == "none" else _instead(metric, said)
            reasons.append(
                f"{metric.id}: {label or 'no label'} (inconsistent): {said[0]} with the first "
                f"response shown first, {said[1]} with the second shown first"
            )
        if label:
            labels[metric.id] = label
    return labels, reasons


def replies_read(previous: Verdict | None, parts: Sequence[Collection[str]]) -> dict[int, Reply]:
    """The replies of an unparsed verdict on a pair that were read, by their number: of each order,
    one for each part of the metrics. They need not be asked for again."""
    found: dict[int, Reply] = {}
    if previous is None:
        return found
    begin, calls = 0, 0
    for showing in previous.shown:
        for part, length in zip(parts, showing.lengths, strict=False):
            if showing.labels.keys() >= set(part):
                text = previous.raw[begin : begin + length]
                found[calls] = Reply(str(calls), text, model=previous.model)
            begin, calls = begin + length + 1, calls + 1
    known = begin == len(previous.raw) + 1  # not of a version that kept no lengths
    return found if known and len(found) < calls else {}


def _instead(metric: Metric, said: Sequence[str]) -> str | None:
    """A tie, or the lower one of two grades."""
    if metric.preference:
        return metric.label_texts[2]
    grades = [label for label in metric.label_texts if label in said]
    return grades[0] if metric.kind == "ordinal" and len(grades) == len(said) else None


def rationale_of(orders: Sequence[Order], readings: Sequence[Sequence[Reading]]) -> str:
    """The reasons that were given in each order. `Response 1` is the one that stood first."""
    told = []
    for order, parts in zip(orders, readings, strict=True):
        if why := "\n".join(one.rationale for one in parts if one.rationale):
            told.append("With the second response shown first:\n" * (order != AS_IT_STANDS) + why)
    return "\n\n".join(told)
