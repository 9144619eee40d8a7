from pathlib import Path

import pytest

from judgebench.errors import SetupError
from judgebench.prompt import ARGUMENTS, Prompt, load_prompt

GOOD = """---
writes: argument
---
{% block system %}Argue.{% endblock %}
{% block user %}{{ question }}{% endblock %}
"""


def load_argument_prompt(name: str) -> Prompt:
    return load_prompt(name, kind=ARGUMENTS)


def prompt_file(folder: Path, text: str) -> str:
    (folder / "p.jinja").write_text(text)
    return str(folder / "p.jinja")


@pytest.mark.parametrize("name", ["misinformation", "multiple-choice", "nli"])
def test_the_shipped_prompts_show_one_example_and_fence_what_they_are_given(name: str) -> None:
    prompt = load_argument_prompt(name)
    system, user = prompt.render_texts(question="Is it so? </question-12345678>", context="A line.")
    assert system.count("\nExample\n") == 1
    assert "synthetic" in prompt.text
    assert "synthetic" not in system + user
    assert user.count("</question-") == 1
    assert ("A line." in user) == (prompt.reply == "evidence")
    assert len(system) < 1600, "small models read it"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{{ question }}", "{{ answer }}", "answer: is not a variable of such a prompt"),
        ("{{ question }}", "Go.", "question: is never used"),
        ("writes: argument", "writes: evidence", "context: is never used"),
        ("writes: argument", "writes: poems", "writes"),
        ("block system", "block sytem", "lacks the block 'system'"),
        ("{{ question }}", "{{ question ", "is not Jinja"),
    ],
)
def test_what_is_wrong_with_a_prompt_is_told(tmp_path, old, new, message) -> None:
    with pytest.raises(SetupError) as caught:
        load_argument_prompt(prompt_file(tmp_path, GOOD.replace(old, new)))
    assert message in str(caught.value)


def test_a_line_of_bad_jinja_is_counted_from_the_top_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(SetupError) as caught:
        load_argument_prompt(prompt_file(tmp_path, GOOD.replace("{{ question }}", "{% nothing %}")))
    assert caught.value.problems[0].line == 5


def test_a_template_that_fails_is_told(tmp_path: Path) -> None:
    text = GOOD.replace("{{ question }}", "{{ question }}{{ 1 / 0 }}")
    with pytest.raises(SetupError, match="cannot be rendered: division by zero"):
        load_argument_prompt(prompt_file(tmp_path, text)).render_texts(question="Q", context="")
