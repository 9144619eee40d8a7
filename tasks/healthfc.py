"""HealthFC: health claims with a verdict and an expert's explanation of it.

Vladika, Schneider and Matthes (2024), "HealthFC: Verifying Health Claims with Evidence-Based
Medical Fact-Checking", LREC-COLING. The file is their `Datensatz.csv`, plain or gzipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from judgebench.data.formats import is_blank
from judgebench.data.tables import collect_table
from judgebench.errors import Problem, SetupError
from judgebench.ranking.task import SplitSizes, TaskInstance, seeded_split

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
    table = collect_table(files["data"], (_CLAIM, _EXPLANATION, _LABEL), problems)
    rows = list(table.records()) if table else []
    known = [str(code) for code in range(len(LABELS))]
    for line, row in rows:
        at = (str(files["data"]), line)
        if row[_LABEL] not in known:
            allowed = ", ".join(known)
            problems.append(Problem("is no label", *at, _LABEL, repr(row[_LABEL]), allowed))
        if is_blank(row[_CLAIM]):
            problems.append(Problem("is blank", *at, _CLAIM))
    if problems:
        raise SetupError(problems)
    explained = [(n, row) for n, (_, row) in enumerate(rows) if not is_blank(row[_EXPLANATION])]
    note = f"{len(rows) - len(explained)} of {len(rows)} rows have no explanation and are left out."
    instances = [
        TaskInstance(
            f"healthfc-{n}", row[_CLAIM], LABELS[int(row[_LABEL])], row[_EXPLANATION], "train"
        )
        for n, row in explained
    ]
    return seeded_split(instances, [i.text for i in instances], split, seed), (note,)
