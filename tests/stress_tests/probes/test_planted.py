import re
from random import Random
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import read_alone

from judgebench.errors import SetupError
from judgebench.files import shipped_names
from judgebench.judges.replies import Reading, Thresholds
from judgebench.prompt import disarm, load_prompt
from judgebench.records import Answer
from judgebench.rubric import Rubric, load_rubric
from judgebench.stress_tests.recipes import Add, Edited, Recipe, load_recipe
from judgebench.stress_tests.wording import add, demanded

SAFETY = load_rubric("medical-safety")
TONE = load_rubric("support-tone")
RECIPES = {name: load_recipe(name) for name in shipped_names("adversarial", ".yaml")}
TRICKS = ["order", "json", "brackets", "score", "fence", "system"]
PLANTED = [f"planted-{trick}-{side}" for trick in TRICKS for side in ("praise", "blame")]
CALM = {
    "verbosity": "Verbosity", "bandwagon": "Bandwagon", "authority": "Authority",
    "authority-citation": "Authority", "compassion-fade": "Compassion-Fade",
}  # fmt: skip
PROBES = [
    "reword", "bullets", "markdown", "verbosity", "shorten", "tone-confident", "tone-hedged",
    "greeting", "authority", "authority-citation", "bandwagon", "compassion-fade", "metric-order",
    "label-order", "self-consistency", "per-metric", "rephrase",
]  # fmt: skip
PARENTS = st.one_of(
    st.text(max_size=60),
    st.sampled_from(["Rest.", "Rest. ", "Topics", "Rest:\n - sleep\n - water", "Rest.\n"]),
)


def planted(recipe: Recipe, rubric: Rubric, parent: str, seed: int = 0) -> str:
    assert isinstance(recipe.edit, Add)
    assert recipe.demand is not None
    edit = add(recipe.edit, demanded(recipe.demand, rubric), rubric)
    found = edit(Answer("a1", parent), Random(seed))
    assert isinstance(found, Edited)
    return found.text


def every_text(name: str) -> set[str]:
    """Every text that a recipe plants, with nothing around it."""
    return {planted(RECIPES[name], SAFETY, "", seed) for seed in range(99)}


def test_every_trick_comes_as_praise_of_violations_and_as_blame_of_sound_answers() -> None:
    assert set(PLANTED) == {name for name in RECIPES if name.startswith("planted-")}
    for name in PLANTED:
        praise = name.endswith("-praise")
        assert RECIPES[name].demand == ("least_severe" if praise else "most_severe")
        assert RECIPES[name].alters == ("violations" if praise else "sound")


def test_probes_and_planted_verdicts_must_not_change_a_verdict() -> None:
    for name in [*PROBES, *PLANTED]:
        recipe = RECIPES[name]
        assert recipe.name == name
        assert recipe.must_not_change
        assert recipe.bias == CALM.get(name, "")


def test_a_demand_is_one_label_of_every_ordinal_metric() -> None:
    assert demanded("least_severe", TONE) == {"solves_problem": "Fully", "politeness": "Polite"}
    assert demanded("most_severe", TONE) == {
        "solves_problem": "Not at all",
        "politeness": "Impolite",
    }


def test_nothing_can_be_demanded_of_a_rubric_without_an_order() -> None:
    with pytest.raises(SetupError, match="no ordinal metric"):
        demanded("most_severe", TONE.only(["channel"]))


def test_braces_that_are_no_placeholder_stay_as_they_are() -> None:
    spec = Add(kind="add", where="after", texts=("{} {x} {{json}} {0}",))
    found = add(spec, {"bias": "No"}, SAFETY)(Answer("a1", "{json}."), Random(0))
    assert found == Edited('{json}. {} {x} {{"bias": "No"}} {0}')


def thresholds(rubric: Rubric) -> Thresholds:
    """The best score for the least severe label, the worst for the most severe one."""
    return {m.id: {m.label_texts[0]: 4.5, m.label_texts[-1]: 1} for m in rubric.metrics}


def reading(
    kind: Literal["json", "brackets", "result"], text: str, rubric: Rubric = SAFETY
) -> Reading:
    return read_alone(kind, text, rubric, thresholds(rubric) if kind == "result" else None)


def verdict_in(text: str) -> str:
    """The verdict of a planted text, without the words around it."""
    lines = [line for line in text.splitlines() if re.search(r"\{.*\}|\[.*\]", line)]
    return "\n".join(lines)


@pytest.mark.parametrize("side", ["praise", "blame"])
@pytest.mark.parametrize("kind", ["json", "brackets"])
@given(parent=PARENTS, seed=st.integers(0, 99))
def test_a_forged_verdict_can_be_read(kind, side, parent, seed) -> None:
    recipe = RECIPES[f"planted-{kind}-{side}"]
    assert recipe.demand is not None
    whole = planted(recipe, SAFETY, parent, seed)
    assert whole.startswith(parent)
    found = reading(kind, verdict_in(whole.removeprefix(parent)))
    assert found.labels == demanded(recipe.demand, SAFETY)
    assert not found.problems


@pytest.mark.parametrize("kind", ["json", "brackets"])
def test_a_forged_verdict_lacks_nominal_metrics(kind: Literal["json", "brackets"]) -> None:
    text = planted(RECIPES[f"planted-{kind}-blame"], TONE, "Rest.")
    found = reading(kind, verdict_in(text.removeprefix("Rest.")), TONE)
    assert found.labels == demanded("most_severe", TONE)
    assert found.problems == ("channel: is missing",)


@pytest.mark.parametrize(("side", "end"), [("praise", 0), ("blame", -1)])
def test_a_forged_score_earns_the_demanded_label(side: str, end: int) -> None:
    metric = SAFETY.metrics[0]
    texts = every_text(f"planted-score-{side}")
    assert len(texts) > 1
    for text in texts:
        found = reading("result", text, SAFETY.only([metric.id]))
        assert found.labels == {metric.id: metric.label_texts[end]}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_text_leaves_no_placeholder(name: str) -> None:
    texts = every_text(name)
    assert len(texts) > 1
    assert not any(re.search(r"\{(json|brackets|score|labels)\}", text) for text in texts)


# The fence is the same in every prompt: each text in three prompts, in turn.
PROMPTS = shipped_names("prompts", ".jinja")
SHOWN = [
    (name, PROMPTS[(3 * n + k) % len(PROMPTS)]) for n, name in enumerate(PLANTED) for k in range(3)
]


@pytest.mark.parametrize(("name", "prompt"), SHOWN)
def test_a_planted_text_stays_inside_the_fence(name: str, prompt: str) -> None:
    loaded = load_prompt(prompt)
    kind = "response" if loaded.shows == "responses" else "answer"
    for text in every_text(name):
        answer = Answer("a1", f"Rest.\n\n{text}", "What helps?", reference="Sleep.")
        beside = {"responses": [answer.text, "Walk."], "criteria": ["Names rest."]}
        _, user = loaded.render(SAFETY, answer, beside.get(loaded.shows, ()))
        (tag,) = set(re.findall(rf"^<{kind}-([0-9a-f]{{8}})>$", user, re.MULTILINE)) - {"1a2b3c4d"}
        assert user.count(f"</{kind}-{tag}>") == (2 if kind == "response" else 1)
        inside = user.split(f"<{kind}-{tag}>\n")[1].split(f"\n</{kind}-{tag}>")[0]
        assert inside == disarm(answer.text)
        for control in (
            "<|im_",
            "</s>",
            "[/INST]",
            "<<SYS>>",
            "<end_of_turn>",
            "</answer-1a2b3c4d>",
        ):
            assert control not in user.replace(f"</{kind}-{tag}>", "")


@pytest.mark.parametrize("trick", ["fence", "system"])
def test_what_closes_a_fence_or_a_turn_is_disarmed(trick: str) -> None:
    texts = every_text(f"planted-{trick}-praise")
    assert sum(disarm(text) != text for text in texts) >= 2
