"""Whatever recipes, word lists and sets hold, reading them gives what they are for or an error."""

import json
from contextlib import suppress
from pathlib import Path

import yaml
from fuzz_budget import SET, TEXT, bytes_like, fuzzed, read, texts
from hypothesis import given
from hypothesis import strategies as st

from judgebench.errors import JudgebenchError
from judgebench.files import shipped_folder
from judgebench.records import Answer
from judgebench.rubric import load_rubric
from judgebench.runs.load import load_bench
from judgebench.stress_tests.claims import Quantities, SentenceRules
from judgebench.stress_tests.item_sets import SetFile, read_set
from judgebench.stress_tests.make import StressExtension
from judgebench.stress_tests.recipes import AlteredAnswer, WordList, load_list, load_recipe
from judgebench.stress_tests.wording import Synonyms

RUBRIC = load_rubric("support-tone")
BENCH = """name: b
rubric: support-tone
data: answers.csv
judges: [{name: m, backend: "scripted:replies.jsonl"}]
stress: {attacks: [bullets, {attack: greeting}], sample: 3}
"""


def short_word_lists() -> list[str]:
    """The shipped ones with their first entries alone."""
    found = []
    for path in sorted((shipped_folder("adversarial") / "words").iterdir()):
        value = yaml.safe_load(path.read_text("utf-8"))
        short = {k: v[:3] if isinstance(v, list) else v for k, v in value.items()}
        found.append(yaml.safe_dump(short, sort_keys=False, allow_unicode=True))
    return found


WORDS = short_word_lists()


@given(bytes_like(texts("adversarial", ".yaml"), is_yaml=True))
@fuzzed()
def test_recipes(tmp_path: Path, content: bytes) -> None:
    read(tmp_path / "x.yaml", content, load_recipe)


@given(bytes_like(WORDS, is_yaml=True))
@fuzzed(0.3)
def test_word_lists(tmp_path: Path, content: bytes) -> None:
    for model in (WordList, Synonyms, SentenceRules, Quantities):
        read(tmp_path / "x.yaml", content, lambda path, model=model: load_list(path, model))


@given(bytes_like([SET]))
@fuzzed()
def test_sets(tmp_path: Path, content: bytes) -> None:
    read(tmp_path / "x.jsonl", content, lambda path: read_set(path, RUBRIC))


@given(bytes_like([BENCH], is_yaml=True))
@fuzzed(0.2)
def test_benches_of_stress_tests(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "answers.csv").write_text("item_id,text\n1,Because.\n")
    (tmp_path / "replies.jsonl").write_text('{"text": "{}"}\n')
    read(tmp_path / "x.yaml", content, lambda p: load_bench(p, extend=StressExtension()).close())


@given(TEXT | st.sampled_from(["~nobody/x", "x" * 5000, "\0", ".", "/", "", "*", "\ud800"]))
@fuzzed()
def test_names_of_recipes(tmp_path: Path, name: str) -> None:
    with suppress(JudgebenchError):
        load_recipe(name, tmp_path)


def altered(number: int, sound: bool = True) -> AlteredAnswer:
    parent = Answer("p", "One is enough.")
    return AlteredAnswer(
        item_id=f"i{number}", parent=parent, text=f"Two é {number}.", recipe="r",
        recipe_version="1", recipe_hash="h", checks={} if sound else {"length": "too long"},
    )  # fmt: skip


@given(st.data())
@fuzzed(0.3)
def test_a_set_that_was_cut_off_anywhere_goes_on(tmp_path: Path, data: st.DataObject) -> None:
    """As after a killed `judgebench stress attacks make`: what stood in whole lines is kept."""
    path = tmp_path / "set.jsonl"
    path.unlink(missing_ok=True)
    made_before = SetFile(path)
    for number in range(3):
        made_before.add(altered(number, sound=data.draw(st.booleans())))
    content = path.read_bytes()
    kept = content[: data.draw(st.integers(0, len(content)))]
    path.write_bytes(kept)
    again = SetFile(path)
    now, lines = path.read_bytes(), kept[: kept.rfind(b"\n") + 1]
    assert now in (lines, kept + b"\n")  # a line cut at its end is whole
    assert all(json.loads(line) for line in now.splitlines())
    again.add(altered(9))
    assert SetFile(path).accepted[-1].item_id == "i9"
