"""No regular expression of the package needs more than linear time, whatever text it is given.

Every pattern is run, as the code runs it, on repeats of what it is itself made of, with an end
that it cannot match.
"""

import ast
import importlib
import os
import pkgutil
import re
import re._constants as sre  # type: ignore[import-not-found]
import re._parser as sre_parser  # type: ignore[import-not-found]
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from time import thread_time
from typing import Any

import pytest

import judgebench

LENGTH = 16000
MOST = 0.030  # seconds; most linear patterns need one thousandth, quadratic ones hundreds
GROWTH = 8  # from a quarter of a text to all of it: a linear pattern 4, a quadratic one 16
CATEGORIES = {
    sre.CATEGORY_DIGIT: "1", sre.CATEGORY_NOT_DIGIT: "a ", sre.CATEGORY_SPACE: " \n",
    sre.CATEGORY_NOT_SPACE: "a-", sre.CATEGORY_WORD: "aA1", sre.CATEGORY_NOT_WORD: " -",
}  # fmt: skip
# How many characters, longer pieces and beginnings are tried of each pattern, and the ends.
SINGLES, LONG, BEGINS, ENDS = 3, 4, 2, ("\n~",)
if "FUZZ_EXAMPLES" in os.environ:  # make fuzz
    SINGLES, LONG, BEGINS, ENDS = 8, 20, 6, ("\x01", "\n~", "a")
METHODS = {"search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split"}


def modules() -> Iterator[Any]:
    """Every module of the package that can be imported here."""
    for module in pkgutil.walk_packages(judgebench.__path__, "judgebench."):
        if not module.name.endswith("__main__"):
            yield importlib.import_module(module.name)


def within(value: Any, name: str) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """The patterns of a global, which may be a collection of them."""
    if isinstance(value, re.Pattern):
        yield name, value
    elif isinstance(value, dict):
        yield from (found for key, one in value.items() for found in within(one, f"{name}[{key}]"))
    elif isinstance(value, list | tuple | set | frozenset):
        yield from (found for i, one in enumerate(value) for found in within(one, f"{name}[{i}]"))


def literals(tree: ast.AST, module: Any) -> Iterator[tuple[str, str, re.Pattern[Any]]]:
    """Line, method and pattern of each call such as `re.sub("a+", ...)` of no local name."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Attribute(ast.Name("re"), method), [pattern, *others], keywords):
                names = [ast.unparse(a)[3:] for a in (*others, *(k.value for k in keywords))]
                flags = [getattr(re, name) for name in names if name in re.RegexFlag.__members__]
                with suppress(NameError):
                    found = eval(ast.unparse(pattern), vars(module).copy())
                    if method in METHODS and isinstance(found, str | bytes):
                        yield f"line {node.lineno}", method, re.compile(found, *flags)


def patterns() -> dict[tuple[str, re.Pattern[Any]], set[str]]:
    """Every pattern that a module holds or names, with how it is used."""
    held: dict[tuple[str, re.Pattern[Any]], set[str]] = {}
    used: dict[str, set[str]] = {}
    for module in modules():
        tree = ast.parse(Path(module.__file__).read_text("utf-8"))
        for line, method, pattern in literals(tree, module):
            held[f"{module.__name__}, {line}", pattern] = {method}
        for name, value in vars(module).items():
            for full, pattern in within(value, name):
                held[f"{module.__name__}.{full}", pattern] = set()
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(ast.Name(name), method) if method in METHODS:
                    used.setdefault(name, set()).add(method)
    for (name, _), methods in held.items():
        methods |= methods or used.get(name.rpartition(".")[2], set()) or {"finditer"}
    return held


def pieces(parsed: Any) -> Iterator[str]:
    """Texts that a part of the pattern matches, the whole of it last."""
    whole = ""
    for op, value in parsed:
        match op:
            case sre.LITERAL:
                found = [chr(value)]
            case sre.NOT_LITERAL | sre.ANY:
                found = ["z"]
            case sre.IN:
                found = list(members(value))
            case sre.MAX_REPEAT | sre.MIN_REPEAT | sre.POSSESSIVE_REPEAT:
                found = list(pieces(value[2]))
            case sre.SUBPATTERN:
                found = list(pieces(value[3]))
            case sre.ATOMIC_GROUP:
                found = list(pieces(value))
            case sre.BRANCH:
                found = [piece for branch in value[1][::-1] for piece in pieces(branch)]
            case _:
                found = [""]
        yield from found
        whole += found[-1] if found else ""
        yield whole


def members(of_class: Iterable[Any]) -> Iterator[str]:
    """Some characters of a class."""
    first, *others = of_class
    if first[0] is sre.NEGATE:
        listed = set(members(others))
        yield from (c for c in "a1 -~" if c not in listed)
        return
    for op, value in (first, *others):
        yield from {sre.LITERAL: lambda v: chr(v), sre.RANGE: lambda v: chr(v[0])}.get(
            op, lambda v: CATEGORIES[v]
        )(value)


def hostile(pattern: re.Pattern[Any]) -> Iterator[Any]:
    """Repeats of each piece of a pattern, and of pairs, behind what it matches, with a bad end."""
    binary = isinstance(pattern.pattern, bytes)
    parsed = sre_parser.parse(pattern.pattern, pattern.flags & (0 if binary else ~re.DEBUG))
    found = list(dict.fromkeys(piece for piece in pieces(parsed) if piece))
    short = [piece for piece in found if len(piece) == 1]
    short = sorted(short, key=lambda c: (c.isalnum(), short.index(c)))[:SINGLES]
    pairs = [a + b for a in short for b in short]
    begins = ["", *dict.fromkeys(piece for piece in found[::-1] if len(piece) > 1)][:BEGINS]
    for piece in dict.fromkeys([*short, *pairs, *found[-LONG:]]):
        for begin, end in ((begin, end) for begin in begins for end in ENDS):
            text = begin + piece * (LENGTH // len(piece)) + end
            yield text.encode("latin-1", "replace") if binary else text


def seconds_of(pattern: re.Pattern[Any], method: str, text: Any) -> float:
    begun = thread_time()
    match method:
        case "sub" | "subn":
            getattr(pattern, method)(lambda match: match[0], text)
        case "finditer":
            sum(1 for _ in pattern.finditer(text))
        case _:
            getattr(pattern, method)(text)
    return thread_time() - begun


def slow_texts(pattern: re.Pattern[Any], method: str) -> Iterator[str]:
    """What a pattern needs long for, and more than linearly longer, thrice in a row."""
    for text in hostile(pattern):
        part = text[: len(text) // 4] + text[-2:]
        if all(
            (whole := seconds_of(pattern, method, text)) > MOST
            and whole > GROWTH * seconds_of(pattern, method, part)
            for _ in range(3)
        ):
            yield f"{method} on {text[:40]!r}…"


@pytest.mark.long
def test_no_pattern_is_slow() -> None:
    held = patterns()
    assert len(held) > 50  # also without a feature
    slow = [
        f"{name}: {text}"
        for (name, pattern), methods in held.items()
        for method in sorted(methods)
        for text in islice(slow_texts(pattern, method), 1)
    ]
    assert not slow, "\n".join(slow)


SLOW = [r"\[[^\]]*\]", r"[ _]*\Z", r"^\s*#", r"\w*x\w*y"]


@pytest.mark.parametrize(
    "form", [r"\S+@\S+", *(pytest.param(form, marks=pytest.mark.long) for form in SLOW)]
)
def test_a_slow_pattern_is_found(form: str) -> None:
    assert next(slow_texts(re.compile(form, re.MULTILINE), "search"))
