"""What is behind the blind screens: items, systems, pairs. The server never opens this file."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field as Limits

from judgebench.annotation.config import Task
from judgebench.yaml_file import Strict, load_json


class Target(Strict):
    """What a field stands for in the data: the `columns` of its row (`item_id`, and where there are
    any `model_a`, `model_b`, `criterion`, `system`, `task`), the metric, and what each stored label
    is called where that is another text."""

    columns: dict[str, str]
    metric: str
    labels: dict[str, str] = Limits(default_factory=dict)


class Key(Strict):
    """`screens` holds, by screen and field, what was labelled. `study` is the hash of the study;
    `secret` decides the order of screens and texts."""

    kind: Literal["judgebench annotation key"] = "judgebench annotation key"
    study: str
    task: Task
    secret: str = ""
    screens: dict[str, dict[str, Target]]


def read_key(path: Path) -> Key:
    """The key of that path. Raises SetupError where it is none."""
    return load_json(path, Key, "the key of the study")
