"""`judgebench attack make --local-only` refuses models on other machines."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def test_every_model_that_contacts_another_machine_is_named(call: Any, tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("item_id,text\ni1,one\n")
    by, second = tmp_path / "by.yaml", tmp_path / "second.yaml"
    by.write_text("name: w\nbackend: litellm:openai/gpt-4o\n")
    second.write_text("name: s\nbackend: openai-compatible:m@https://api.example.org/v1\n")
    made = ("attack", "make", "consensus-violation", "--data", tmp_path / "answers.csv")
    code, _, err = call(*made, "--by", by, "--second", second, "--local-only")
    assert code == 2
    message = "contacts another machine, which local-only forbids"
    assert f"{by}: by.backend: {message}; found the provider of litellm:openai/gpt-4o" in err
    assert f"{second}: by.backend: {message}; found api.example.org" in err
