"""What reading a large file holds in memory, beside what its texts take."""

import json
import tracemalloc
from pathlib import Path

from judgebench.data.load import load_data
from judgebench.rubric import load_rubric

ROWS = 4000


def written(path: Path) -> Path:
    with path.open("w") as file:
        for row in range(ROWS):
            answer = {
                "item_id": f"item-{row}",
                "question": f"What may I do about number {row // 4}?",
                "system": f"system-{row % 4}",
                "text": f"{row} " + "Drink enough, and rest. " * 15,
                "group": f"q{row // 4}",
            }
            file.write(json.dumps(answer) + "\n")
    return path


def test_a_file_is_never_in_memory_twice_and_its_rows_go_with_the_reading(tmp_path: Path) -> None:
    path, rubric = written(tmp_path / "answers.jsonl"), load_rubric("medical-safety")
    load_data(path, rubric)  # what is imported and cached first does not count
    tracemalloc.start()
    try:
        data = load_data(path, rubric)
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(data.answers) == ROWS
    size = path.stat().st_size
    assert peak < 2.4 * size
    assert held < 1.55 * size
