"""A sound ranking on disk, for tests that need no encoder: its weights are empty files."""

from pathlib import Path
from typing import Any

import yaml

ENCODER = ("config.json", "model.safetensors", "tokenizer.json")


def write(folder: Path, proxy: dict[str, Any] | None = None, **more: Any) -> Path:
    """A sound ranking with the file of its task, its encoder and all; what is given replaces."""
    rows = [
        f"q{n},Claim {n},{'no' if n % 3 else 'yes'},{f'Reason {n}'},g{n // 2}" for n in range(40)
    ]
    (folder / "claims.csv").write_text("\n".join(["id,claim,verdict,why,source", *rows]) + "\n")
    columns = {
        "item_id": "id", "text": "claim", "label": "verdict", "argument": "why", "group": "source",
    }  # fmt: skip
    spec = {
        "name": "claims", "title": "Claims", "files": {"data": "claims.csv"},
        "labels": ["yes", "no"], "prompt": "misinformation", "columns": columns,
        "split": {"train": 0.5, "development": 0.25, "test": 0.25},
    }  # fmt: skip
    (folder / "task.yaml").write_text(yaml.safe_dump(spec))
    (folder / "replies.jsonl").write_text('{"text": "Because."}\n')
    (folder / "encoder").mkdir(exist_ok=True)
    for name in ENCODER:
        (folder / "encoder" / name).write_text("{}")
    sound = {
        "tasks": ["task.yaml"],
        "generators": [model("one")],
        "evaluators": {"encoder": "encoder"},
    }
    settings = {"name": "b", "rubric": "argument-quality", "proxy": sound | (proxy or {}), **more}
    path = folder / "bench.yaml"
    path.write_text(yaml.safe_dump(settings))
    return path


def model(name: str) -> dict[str, Any]:
    return {"name": name, "backend": "scripted:replies.jsonl"}
