"""Layouts as YAML."""

from __future__ import annotations

import os
from pathlib import Path

import yaml

from judgebench.data.layout import SOURCE_KEYS, Layout, LayoutModel, Sheet, SheetModel
from judgebench.errors import Problem, SetupError


def as_yaml(layout: Layout, folder: Path, rubric: str = "") -> str:
    """The layout as a layout.yaml in that folder. Raises SetupError for a DataFrame, which has no
    file."""
    model = LayoutModel(
        rubric=rubric,
        tables=tuple(_sheet_model(sheet, folder) for sheet in layout.sheets),
        spell={metric: dict(pairs) for metric, pairs in layout.spellings.items()},
        failed=tuple(sorted(layout.failed)),
        repeats=layout.repeats,
        only_common=layout.only_common,
        several=layout.several,
        ids=layout.ids,
        truth=dict(layout.truth),
    )
    dumped = yaml.safe_dump(
        model.model_dump(mode="json", exclude_defaults=True),
        sort_keys=False, allow_unicode=True, width=100, default_flow_style=False,
    )  # fmt: skip
    return f"# What every column is; docs/data_reference.md explains the roles.\n{dumped}"


def _sheet_model(sheet: Sheet, folder: Path) -> SheetModel:
    source = sheet.source
    if source.frame is not None:
        message = "is a DataFrame, which a layout.yaml cannot name: write it to a file"
        raise SetupError(Problem(message, source.name))
    return SheetModel(
        file=path_from(folder, source.path),
        turns=sheet.turns,
        columns={name: str(column) for name, column in sheet.columns.items()},
        **{key: getattr(source, key) for key in SOURCE_KEYS},
    )


def path_from(folder: Path, path: Path) -> str:
    """The path as a file in the folder writes it."""
    inside = Path(os.path.relpath(path.absolute(), folder.absolute())).as_posix()
    return path.absolute().as_posix() if inside.startswith("../..") else inside
