"""The project's English: old phrases that read as if translated stay out of docs and code."""

import re
from collections.abc import Collection
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
# Each pattern with what to write instead; matched without regard to case unless it says so.
INSTEAD = {
    r"\bdear(er|est)?\b(?! (sir|madam|doctor|dr))": "expensive, costly",
    r"\breasks?\b": "parse retry",
    r"\bpurses?\b": "budget",
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\bnobody (is|was|were) asked\b|\basks? nobody\b": "no model is called",
    r"\bwithout asking (anybody|nobody)\b": "without calling a model",
    r"\bstands? twice\b": "duplicate",
    r"\bstands? the (stress )?test\b": "passes the stress test",
    r"\b(is|are|was|were|be) told\b(?! apart)": "is reported, is printed, is logged",
    r"\btells? (every|all) problems?\b|\btold at once\b": "errors are reported together",
    r"\bor worse, and the same command\b": "safe to interrupt; rerun to resume",
    r"\bsame command goes on\b": "rerun to resume",
    r"\bREPLACE asks\b": "REPLACE requires",
    r"\bas far as (he|they) deserves?\b": "in proportion to their reliability",
    r"\bwhat becomes of\b": "failure handling; how … ends",
    r"\bas good as it helps\b": "only as good as the decisions it improves",
    r"\b(judges?|that) (that )?reads? nothing\b": "content-blind baselines, never reads an answer",
    r"\bwrong REPLACE\b": "false REPLACE, false-REPLACE rate",
    r"\bstudies of a world\b": "studies of a scenario",
    r"\bDON'T\b(?! (use|know))": "DO NOT USE",
    r"\bone (row|column|line|call|request|object|worker|pass|entry|sheet|file) an? ": "one … per …",
    r"\b(row|column|line|call|entry|request|judge|once|default: one) an? "
    r"(annotator|metric|item|judge|GPU|answer|worker|call|row|token|group|instance)\b": "… per …",
    r"\bshare a letter do not differ\b": "are not shown to differ: no test shows equality",
    r"\bvery labels, which favours\b": "chosen on these labels, so slightly optimistic",
    r"\bthat 20 times the answers settle\b": "where 20 times the data would settle the decision",
    r"\btreat (them|these) as they treat\b": "like …",
    r"\b(he|him|his|himself)\b": "they, them, their",
}
CASED = {r"\bDON'T\b(?! (use|know))", r"\bREPLACE asks\b", r"\bwrong REPLACE\b"}
PATTERNS = [(re.compile(p, 0 if p in CASED else re.I), words) for p, words in INSTEAD.items()]
READ = {
    "documentation": (
        "*.md", "docs/*.md", "examples/*/README.md", "requirements/*.md", "benchmarks/*.md",
        "adversarial/README.md", "Makefile", "mkdocs.yml", ".ci/*",
    ),
    "code": ("judgebench/**/*.py", "benchmarks/*.py", "tasks/*.py"),
    "pages": ("judgebench/**/*.jinja", "judgebench/**/*.html", "judgebench/**/*.js"),
    "shipped files": (
        "prompts/**/*.jinja", "rubrics/*.yaml", "tasks/*.yaml", "adversarial/*.yaml",
        "examples/**/*.yaml", "examples/*.ipynb",
    ),
}  # fmt: skip
# Words that are data: lists of pronouns, texts that a judge is asked.
KEPT = {
    "judgebench/stress_tests/recipes.py": {"he", "his"},
    "judgebench/stress_tests/wording.py": {"he"},
    "rubrics/argument-quality.yaml": {"be told"},
    "adversarial/greeting.yaml": {"Dear"},
}


def found_in(text: str, kept: Collection[str] = ()) -> list[str]:
    """Every old phrase with its line and what to write instead."""
    return [
        f"line {text.count(chr(10), 0, match.start()) + 1}: {match.group(0)!r}: write {words!r}"
        for pattern, words in PATTERNS
        for match in pattern.finditer(text)
        if match.group(0) not in kept
    ]


@pytest.mark.parametrize("kind", READ)
def test_old_phrases_stay_out(kind: str) -> None:
    found = []
    for path in sorted(path for pattern in READ[kind] for path in REPO.glob(pattern)):
        name = path.relative_to(REPO).as_posix()
        text = path.read_text(encoding="utf-8")
        found += [f"{name}, {phrase}" for phrase in found_in(text, KEPT.get(name, ()))]
    assert not found, "\n".join(found)


def test_the_list_finds_what_it_should() -> None:
    old = "The key 'x' stands twice. Labels are slow and dear.\nREPLACE asks that he is told."
    assert len(found_in(old)) == 5
    assert not found_in("They are told apart. Default: one per GPU. REPLACE requires a verdict.")


# What the documentation calls by the field's word; keys of files and printed output keep theirs.
TERMS = {
    r"\btruths?\b": "reference label",
    r"\bcontrol judges?\b|\bbest control\b": "baseline",
    r"\bcamps?\b": "annotator subgroups",
    r"\b(early|planned|the|each|any|a) looks?\b(?! (like|at\b))": "interim analysis",
    r"\bsettl(e|es|ed|ing) (a |the )?(disagreements?|labels?|one)\b": "adjudicate",
    r"\bground floor\b|\bwings?\b": "base, feature",
}


def prose(page: str) -> str:
    """The page without blocks, code in sentences and links."""
    without = re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`]*`|\]\([^)]*\)", "", without)


def test_the_documentation_uses_the_terms_of_the_field() -> None:
    found = []
    for path in [REPO / "README.md", *sorted((REPO / "docs").glob("*.md"))]:
        text = prose(path.read_text(encoding="utf-8"))
        found += [
            f"{path.name}: {text[match.start() - 40 : match.end() + 30]!r}: write {words!r}"
            for pattern, words in TERMS.items()
            for match in re.finditer(pattern, text, re.I)
        ]
    assert not found, "\n".join(found)
