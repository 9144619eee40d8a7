"""Annotators that are named like models: found, without false alarms on people."""

import pytest

from judgebench.studies.verdicts import is_like_a_model, suspects, suspicions

MODELS = """
    gpt-4 GPT-4o gpt4 chatgpt gpt-3.5-turbo MedGPT llama llama-3-8b Llama3.1 codellama
    meta-llama/Llama-2-7b gemini gemini-1.5-pro qwen Qwen2.5-7B-Instruct mistral mistral-7b
    mixtral-8x7b deepseek-r1 claude-3-opus claude-2 claude_3.5_sonnet Claude-Haiku gemma-2-9b-it
    gemma-7b gemma2 phi-3-mini kimi-k2 yi-34b bert-base roberta-large tone-judge my_judge
    gpt-4-judge llm llm-1 LLM_judge model model-a model_1 prometheus-2 smollm2-135m grok-1
"""
PEOPLE = """
    Claude claude Gemma gemma annotator-1 annotator_12 expert_12 expert Bert Roberta Phil Yi Kimi
    Hillman Ullmann Allman Llamas Llamazares ann bob dr-roy dr-lee Mary-Judge human-judge
    expert_judge judge-1 Judge judge Modell Claude-Martin claude.martin Jean-Claude gemma.smith
    Claude_B crowd#3 rater1 A1 Opus Olmos Claudel Phi-Anh nurse-claude Falconer yi-ling kimi-anna
    claude-12 labels politeness-labels user_3b R1
"""


@pytest.mark.parametrize("name", MODELS.split())
def test_models_and_judges_are_recognised(name: str) -> None:
    assert is_like_a_model(name)


@pytest.mark.parametrize("name", PEOPLE.split())
def test_people_are_not_taken_for_models(name: str) -> None:
    assert not is_like_a_model(name)


def test_the_warning_names_the_lines_that_fix_it() -> None:
    (found,) = suspicions(["ann", "bob", "crowd#1", "crowd#2", "gpt-4"])
    assert "`truth: {annotators: [ann, bob, crowd#*]}`" in str(found)
    assert "`judges: [{name: gpt-4, verdicts: FILE}]`" in str(found)
    (alone,) = suspicions(["llm#1", "llm#2"])
    assert "truth:" not in str(alone)


def test_the_name_of_a_judge_is_a_reason_whatever_it_is() -> None:
    assert suspects(["ann", "Tone"], ["tone", "other"]) == {"Tone": "has the name of a judge"}
    assert suspects(["ann", "claude"], []) == {}
