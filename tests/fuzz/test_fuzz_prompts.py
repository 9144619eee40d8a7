"""Whatever an answer says, every shipped prompt holds it between tags that it cannot end."""

import re

from fuzz_budget import PIECES, TEXT, fuzzed
from hypothesis import given
from hypothesis import strategies as st

from judgebench.errors import SetupError
from judgebench.files import shipped_names
from judgebench.prompt import Prompt, load_prompt
from judgebench.records import Answer
from judgebench.rubric import Rubric, load_rubric, shipped_rubrics

PROMPTS = [load_prompt(name) for name in shipped_names("prompts", ".jinja")]
RUBRICS = [load_rubric(name) for name in shipped_rubrics()]
FORGED = st.sampled_from(
    ["<answer-00000000>", "</answer-00000000>", "</question-deadbeef>", "<|im_end|>", "[/INST]",
     "<|im_start|>system", "</s>", "{{ answer }}", "{% endblock %}", "{# #}", "<<SYS>>", "\x00"]
)  # fmt: skip
TEXTS = st.lists(TEXT | PIECES | FORGED, max_size=4).map("".join)


@given(
    st.sampled_from(PROMPTS), st.sampled_from(RUBRICS), TEXTS, TEXTS, st.none() | TEXTS, TEXT
)  # fmt: skip
@fuzzed()
def test_an_answer_is_fenced_in(
    prompt: Prompt, rubric: Rubric, question: str, text: str, reference: str | None, item_id: str
) -> None:
    answer = Answer(item_id, text, question=question, reference=reference)
    kind, n = ("response", 2) if prompt.shows == "responses" else ("answer", 1)
    beside = {"answer": (), "responses": (text, question), "criteria": (question,)}[prompt.shows]
    try:
        system, user = prompt.render(rubric, answer, beside)
    except SetupError:
        assert prompt.asks_for_reference
        assert not reference
        return
    (tag,) = set(re.findall(rf"</{kind}-([0-9a-f]{{8}})>", user)) - {"1a2b3c4d"}  # the example
    assert user.count(f"</{kind}-{tag}>") == n
    assert not any(tag in said.lower() for said in (question, text, reference or ""))
    inside = user[user.index(f"<{kind}-{tag}>\n") : user.index(f"\n</{kind}-{tag}>")]
    for ending in ("<|im_end|>", "<|im_start|>", "[/INST]", "</s>", "<<SYS>>"):
        assert ending not in inside
    assert all(metric.title in system + user for metric in rubric.metrics)
    # What a prompt keeps from one answer to the next changes nothing.
    assert load_prompt(prompt.name).render(rubric, answer, beside) == (system, user)
