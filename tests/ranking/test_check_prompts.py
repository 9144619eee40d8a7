"""`judgebench check` reads the shipped prompts of proxy tasks."""

from __future__ import annotations

from judgebench.checks import check_all
from judgebench.shipped import shipped_folder


def test_every_shipped_prompt_for_arguments_passes() -> None:
    files = sorted(shipped_folder("prompts/arguments").glob("*.jinja"))
    found = check_all(files, "support-tone")
    assert found.errors == []
    assert len(found.facts) == len(files) >= 3
