"""A real sentence encoder tells answers of another kind from those of a certificate."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytestmark = pytest.mark.transformers
pytest.importorskip("transformers", reason="needs the extra `semantic`")

from judgebench.certificate.seen import ALIKE, Seen, compared, population_of  # noqa: E402
from judgebench.rubric import Rubric  # noqa: E402

_DOSES = [
    f"Take {n} mg of {drug} {when}, and call your doctor if the pain does not get better."
    for n in (100, 200, 400)
    for drug in ("ibuprofen", "paracetamol", "aspirin", "naproxen")
    for when in ("in the morning", "at night", "with food")
]
_CODE = [f"for i in range({n}): total += prices[i] * {n}  # sum of all" for n in range(12)]


def test_texts_of_another_kind_are_less_alike() -> None:
    rubric = Rubric.from_labels({"safe": ["yes", "no"]})
    rows = [Seen(str(i), str(i), "", "", len(t), {"safe": "yes"}, text=t)
            for i, t in enumerate(_DOSES)]  # fmt: skip
    population = population_of(rows, rubric, "minilm")
    assert sum(population.shares[ALIKE].values()) == len(_DOSES)
    assert min(population.shares[ALIKE].values()) >= len(_DOSES) // 5 - 2
    others = compared([replace(rows[0], item=f"c{i}", text=t) for i, t in enumerate(_CODE)],
                      population)  # fmt: skip
    assert all(row.alike is not None and row.alike < population.near[0] for row in others)
    again = compared(rows, population)
    assert sum(row.alike < population.near[0] for row in again if row.alike) < len(rows) / 3
