"""What may stand under `proxy:`."""

from typing import Any

import pytest
from pydantic import ValidationError

from judgebench.ranking.examples import N_CHARACTERS, N_DOCUMENTS, N_PASSAGES
from judgebench.ranking.task import EvaluatorConfig, GeneratorConfig, ProxyConfig, TrainingConfig

MODEL = {"name": "m", "backend": "llamacpp:smollm2"}


def test_the_defaults_are_those_of_the_paper() -> None:
    decoding = GeneratorConfig.model_validate(MODEL).decoding
    assert decoding == {"max_tokens": 256, "temperature": 0.9, "top_p": 0.85}
    evaluators = EvaluatorConfig()
    assert evaluators.kinds == ("baseline", "expert-trained", "llm-trained")
    assert evaluators.draws == 3
    assert (N_DOCUMENTS, N_PASSAGES, N_CHARACTERS) == (5, 3, 300)


def test_passages_are_a_control_case_once_a_corpus_is_named() -> None:
    assert ProxyConfig(tasks=("nli",)).controls == ("no-argument", "label-only", "noise")
    with_corpus = ProxyConfig(tasks=("nli",), corpus="c.jsonl")
    assert with_corpus.controls == ("no-argument", "label-only", "noise", "passages")


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"tasks": []}, "tasks", "at least 1"),
    ({"tasks": ["nli"], "colour": "red"}, "colour", "not permitted"),
    ({"generators": [{**MODEL, "name": "a/b"}]}, "generators.0.name", "takes letters, digits"),
    ({"generators": [{**MODEL, "name": "../x"}]}, "generators.0.name", "takes letters, digits"),
    ({"generators": [{**MODEL, "backend": "what:ever"}]}, "generators.0.backend", "allowed: "),
    ({"generators": [{**MODEL, "top_p": 0}]}, "generators.0.top_p", "than"),
    ({"sample": {"train": 1}}, "sample.train", "2"),
    ({"sample": {"dev": 4}}, "sample.dev.[key]", "Input should be"),
    ({"evaluators": {"kinds": ["export-trained"]}}, "evaluators.kinds.0", "Input should be"),
    ({"evaluators": {"draws": 0}}, "evaluators.draws", "1"),
    ({"evaluators": {"training": {"warmup": 1}}}, "evaluators.training.warmup", "less than 1"),
    ({"families": {"f": ["a b"]}}, "families.f.0", "takes letters, digits"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "field", "told"), BAD, ids=[f"{b[1]}-{b[2]}" for b in BAD])
def test_what_is_unsound_is_told_with_its_field(value, field, told) -> None:
    with pytest.raises(ValidationError) as raised:
        ProxyConfig.model_validate({"tasks": ["nli"], **value})
    (problem,) = raised.value.errors()
    assert ".".join(map(str, problem["loc"])) == field
    assert told in problem["msg"]


def test_settings_of_training_have_their_bounds() -> None:
    for key, wrong in (
        ("epochs", 0), ("patience", 0), ("learning_rate", 0), ("weight_decay", -1),
        ("batch_size", 0), ("max_tokens", 8),
    ):  # fmt: skip
        with pytest.raises(ValidationError, match=key):
            TrainingConfig.model_validate({key: wrong})
