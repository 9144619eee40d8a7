"""One small benchmark that a real model judges through any number of lanes."""

from pathlib import Path
from typing import Any

import yaml
from aligned import align_run

from judgebench.records import Status, Verdict
from judgebench.runs.folder import RunFolder
from judgebench.runs.load import load_bench
from judgebench.runs.run_bench import run

TEXTS = [
    "Restart the router, then call us on the number on your bill if the light stays red.",
    "We don't care. Read the manual.",
    "Thank you for writing. Your parcel will reach you on Friday; the link shows where it is.",
]
LABELS = "i0,ann,Polite\ni1,ann,Impolite\ni2,ann,Polite\n"

Labels = dict[str, dict[str, str]]  # by item_id and metric


def remote(base_url: str, key: str) -> dict[str, Any]:
    """The settings of a judge behind a server; `key` names an environment variable."""
    return {"base_url": base_url, "api_key_env": key, "concurrency": 1, "timeout_s": 300}


def judged(folder: Path, judges: dict[str, tuple[str, dict[str, Any]]], **how: Any) -> RunFolder:
    """Run the benchmark with judges given as name: (backend, settings), and a jury of them all.
    `how` goes to `runs.run`."""
    lines = "".join(f'i{i},Where is it?,"{text}"\n' for i, text in enumerate(TEXTS))
    (folder / "answers.csv").write_text("item_id,question,text\n" + lines)
    (folder / "labels.csv").write_text("item_id,annotator,politeness\n" + LABELS)
    written: list[dict[str, Any]] = [
        {"name": name, "backend": backend, "settings": settings}
        for name, (backend, settings) in judges.items()
    ]
    bench = {
        "name": "lanes",
        "rubric": "support-tone",
        "data": ["answers.csv", "labels.csv"],
        "judges": [*written, {"name": "jury", "jury": list(judges)}],
    }
    path = folder / "bench.yaml"
    path.write_text(yaml.safe_dump(bench))
    run_folder = RunFolder(folder / "run")
    loaded = load_bench(path)
    try:
        run(loaded, run_folder, **how)
    finally:
        loaded.close()
    return run_folder


def labels_of(folder: RunFolder, *names: str) -> dict[str, Labels]:
    """What each judge said, after checking that it read every answer on every metric."""
    found: dict[str, dict[str, Verdict]] = {
        name: {v.item_id: v for v in folder.verdicts(name)} for name in (*names, "jury")
    }
    for name, verdicts in found.items():
        assert sorted(verdicts) == ["i0", "i1", "i2"]
        assert {v.status for v in verdicts.values()} == {Status.OK}, name
        assert {len(v.labels) for v in verdicts.values()} == {3}
        assert name == "jury" or all(v.usage.prompt_tokens for v in verdicts.values())
    alignment = align_run(folder)
    assert {j.name for j in alignment.judges if j.kind == "judge"} == set(names)
    rows = alignment.results.select("score")
    scored = {row.judge for row in rows if row.estimate.value is not None}
    assert scored >= {*names, "jury"}
    return {
        name: {item: dict(v.labels) for item, v in verdicts.items()}
        for name, verdicts in found.items()
    }
