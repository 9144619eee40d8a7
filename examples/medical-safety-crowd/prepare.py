"""Write plain tables of medical queries and of the responses to them: prepare.py FOLDER.

FOLDER holds medicheck-crowd.csv.gz and medicheck-expert.csv.gz of Abercrombie & Rieser,
"Risk-graded Safety for Handling Medical Queries in Conversational AI" (AACL 2022),
github.com/GavinAbercrombie/medical-safety, GPL-3. queries.csv and responses.csv get the labels of
one expert and, as slots and not persons, of 3 to 12 crowd workers, for 861 queries;
expert-queries.csv and expert-responses.csv those of the expert alone, for 1,417 queries.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd

from judgebench.records import content_hash

# Texts and labels of Alexa and DialoGPT stand in each other's columns in the crowd's file.
CROWD = {"query": "query", "dialogpt": "alexa-response", "alexa": "dialogpt-response",
         "reddit": "reddit-response"}  # fmt: skip
EXPERT = {"query": "query", "dialogpt": "response-dialogpt", "alexa": "response-alexa",
          "reddit": "response-reddit"}  # fmt: skip
RISKS = {"0": "Not medical", "1": "Non-serious", "2": "Serious", "3": "Critical"}
RESPONSES = {"0": "No answer", "1": "General information", "2": "Recommendations",
             "3": "Treatment or diagnosis", "X": "Irrelevant or nonsensical"}  # fmt: skip


def read(file: Path) -> list[dict[str, str]]:
    """The rows of a table, by its columns without the space behind their names."""
    table = pd.read_csv(file, dtype=str, keep_default_na=False)
    return table.rename(columns=str.strip).to_dict("records")


def items(
    row: Mapping[str, str], columns: Mapping[str, str]
) -> Iterator[tuple[str, dict[str, str]]]:
    """What a row is about, with the column of its text: the query, and the responses to it."""
    # One query stands in two rows, which differ in Alexa's response.
    row_id = content_hash([row["query"], row[columns["alexa"]]])
    for name, column in columns.items():
        about = {"item_id": f"{name}-{row_id}", "group": row["query"], "text": row[column]}
        if name == "query":  # it is itself what is judged
            yield column, about
        elif row[column]:  # "No answer" is no judgement of a text
            yield column, {**about, "question": row["query"], "system": name}


def crowd(folder: Path) -> pd.DataFrame:
    """The labels of the expert and the crowd, on queries and responses alike."""
    rows = [
        {**about, "annotator": annotator, "label": label}
        for row in read(folder / "medicheck-crowd.csv.gz")
        for column, about in items(row, CROWD)
        for annotator, label in [
            ("expert", row[f"{column}-expert"]),
            *((f"crowd#{n}", x) for n, x in enumerate(ast.literal_eval(row[f"{column}-cws"]), 1)),
        ]
    ]
    return pd.DataFrame(rows)


def expert(folder: Path) -> pd.DataFrame:
    """The labels of the expert alone, whose file holds codes."""
    rows = [
        {**about, "annotator": "expert", "label": decoded(column, row[f"{column}-label-expert"])}
        for row in read(folder / "medicheck-expert.csv.gz")
        for column, about in items(row, EXPERT)
    ]
    return pd.DataFrame(rows)


def decoded(column: str, code: str) -> str:
    """The label of a code; blank where there is none."""
    codes = RISKS if column == "query" else RESPONSES
    return codes.get(code, "")


def main(folder: Path, to: Path = Path()) -> None:
    """Write the four tables."""
    for prefix, table in (("", crowd(folder)), ("expert-", expert(folder))):
        is_query = table.system.isna()
        for name, metric, part in (
            ("queries", "query_risk", table[is_query]),
            ("responses", "response_type", table[~is_query]),
        ):
            columns = part.dropna(axis=1, how="all").rename(columns={"label": metric})
            columns.to_csv(to / f"{prefix}{name}.csv", index=False)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
