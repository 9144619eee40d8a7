"""The way of a run folder into a study is short: a verdict passes few files."""

import sys
from pathlib import Path
from types import FrameType

import judgebench as jb

PACKAGE = str(Path(jb.__file__).parent)
MAX_FILES = 21


def test_opening_a_run_enters_few_files(here: Path) -> None:
    jb.open_run("runs/small")  # so that what is imported first does not count
    files = set[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            files.add(frame.f_code.co_filename.removeprefix(PACKAGE))

    sys.setprofile(note)
    try:
        jb.open_run("runs/small")
    finally:
        sys.setprofile(None)

    assert "/runs/open.py" in files
    assert len(files) <= MAX_FILES, sorted(files)
