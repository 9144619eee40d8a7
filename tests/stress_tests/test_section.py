from pathlib import Path

import pytest

from judgebench.errors import SetupError
from judgebench.runs.load import load_bench


def test_a_fault_of_the_section_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("item_id,text\ni0,Hello.\n")
    (tmp_path / "bad.jsonl").write_text("{bad\n")
    (tmp_path / "bench.yaml").write_text(
        "name: x\nrubric: support-tone\ndata: [answers.csv]\n"
        "judges:\n  - {name: a, backend: 'scripted:bad.jsonl'}\n"
        "stress: {attack: []}\n"
    )
    with pytest.raises(SetupError) as caught:
        load_bench(tmp_path / "bench.yaml")
    section, script = (str(p).replace(f"{tmp_path}/", "") for p in caught.value.problems)
    assert section.startswith("bench.yaml:6: stress.attack: ")
    assert script.startswith("bad.jsonl:1: is not JSON")
