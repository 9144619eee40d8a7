"""HealthFC: health claims with a verdict and an expert's explanation of it.

Vladika, Schneider and Matthes (2024), "HealthFC: Verifying Health Claims with Evidence-Based
Medical Fact-Checking", LREC-COLING. The file is their `Datensatz.csv`, plain or gzipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from judgebench.data.cells import is_blank
from judgebench.data.columns import read_source
from judgebench.errors import Problem, SetupError
from judgebench.ranking.proxy.task import SplitSizes, TaskInstance, seeded_split

FILES, SEEDED_SPLIT = ("data",), True
LABELS = ("Supported", "Not enough information", "Refuted")  # 0, 1, 2 in the file
_CLAIM, _EXPLANATION, _LABEL = "en_claim", "en_explanation", "label"


def read(
    files: Mapping[str, Path], split: SplitSizes | None, seed: int
) -> tuple[list[TaskInstance], tuple[str, ...]]:
    """The claims that have an explanation, split by the seed, and sentences for the report.

    Raises SetupError with every problem in the file.
    """
    assert split is not None, "SEEDED_SPLIT"
    problems: list[Problem] = []
    rows = read_source(files["data"], (_CLAIM, _EXPLANATION, _LABEL), problems)
    known = [str(code) for code in range(len(LABELS))]
    for row in rows:
        if row.text(_LABEL) not in known:
            found = repr(row.text(_LABEL))
            problems.append(row.problem("is no label", _LABEL, found, ", ".join(known)))
        if is_blank(row.text(_CLAIM)):
            problems.append(row.problem("is blank", _CLAIM, ""))
    if problems:
        raise SetupError(problems)
    explained = [row for row in rows if not is_blank(row.text(_EXPLANATION))]
    note = f"{len(rows) - len(explained)} of {len(rows)} rows have no explanation and are left out."
    instances = [
        TaskInstance(
            f"healthfc-{row.row}", row.text(_CLAIM), LABELS[int(row.text(_LABEL))],
            row.text(_EXPLANATION), "train", row=row.row,
        )
        for row in explained
    ]  # fmt: skip
    return seeded_split(instances, [i.text for i in instances], split, seed), (note,)
