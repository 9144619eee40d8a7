"""Scorers by models say what they need where it is not there."""

import sys
from pathlib import Path
from typing import Any

import pytest

from judgebench.errors import MissingExtra, SetupError
from judgebench.records import Answer
from judgebench.scorers.config import scorer_config
from judgebench.scorers.judges import open_scorer

ANSWERS = [Answer("1", "No pain.", reference="No pain")]


def opened(how: Any) -> object:
    return open_scorer(scorer_config(how), ANSWERS, Path())


@pytest.mark.parametrize("how", ["bertscore", "moverscore", {"scorer": "learned", "model": "m"}])
def test_the_extra_that_is_missing_is_named(monkeypatch, how: Any) -> None:
    for name in ("torch", "transformers", "ot"):
        monkeypatch.setitem(sys.modules, name, None)
    named = "torch and transformers and POT"
    with pytest.raises(MissingExtra, match=rf"needs the package {named}, .*\[semantic\]"):
        opened(how)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"scorer": "bertscore", "measure": "f2"}, "measure: .*found 'f2'"),
        ({"scorer": "moverscore", "layer": 1}, "moverscore has no setting layer"),
        ({"scorer": "learned", "model": "m", "reads": ["context"]}, "reads.*found 'context'"),
    ],
)
def test_errors_name_the_setting(how: Any, message: str) -> None:
    with pytest.raises(SetupError, match=message):
        scorer_config(how)


def test_a_run_that_may_contact_nobody_hears_of_the_weights() -> None:
    config = scorer_config({"scorer": "learned", "model": "owner/model"})
    assert config.weights == {"model": "owner/model"}
    assert scorer_config("bertscore").weights == {"model": "minilm"}
