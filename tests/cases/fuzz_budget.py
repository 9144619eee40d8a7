"""How long the fuzzing tests run, and the stuff that they are made of.

`make test` runs a few examples, the same every time; `make fuzz` sets FUZZ_EXAMPLES and draws anew,
unless FUZZ_SAME is set too: whoever checks a change is not to meet what others left to be found.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from judgebench.errors import JudgebenchError
from judgebench.files import shipped_folder

_LONG = "FUZZ_EXAMPLES" in os.environ
_EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "50"))


def fuzzed(share: float = 1.0) -> settings:
    """Settings for a test that is worth that share of the examples: 1 where it is quick."""
    return settings(
        max_examples=max(10, round(_EXAMPLES * share)),
        deadline=None,
        derandomize=not _LONG or "FUZZ_SAME" in os.environ,
        suppress_health_check=list(HealthCheck),
    )


# Any text at all, and pieces that files of ours give a meaning to.
TEXT = st.text(st.characters(exclude_categories=()), max_size=60)
PIECES = st.sampled_from(
    ["", " ", "\n", "\t", "\r", "\0", "\ufeff", "\u2028", "\ud800", "é", "e\u0301", "😀", "None",
     "null", "~", "~nobody/x", "yes", "1", "-1", "1e999", ".nan", ".inf", "9" * 5000, "0x1F",
     "2026-01-01", "1:30", "2026-13-45", "- ", ": ", "? ", "& ", "&a ", "*a", "<<: ", "!!python/x ",
     "!!binary x", "!!timestamp x", "!!set {a}", "!!omap [a: 1]", "|", ">", "%", "@", "`", "{", "}",
     "[", "]", "{{", "}}", "{%", "%}", "{{ 1/0 }}", "{{ ''.__class__ }}", '"', "'", ",", ";", "#",
     "x" * 300, "a/b", "../..", "/", "[" * 1500, "{a: " * 1500, '{"a":' * 1500]
)  # fmt: skip
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT | PIECES | st.dates()
    | st.datetimes() | st.binary(max_size=5)
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT | PIECES, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def torn_text(draw: st.DrawFn, sources: Sequence[str]) -> bytes:
    """One of the texts after some edits that know nothing of its form."""
    text = draw(st.sampled_from(sources)).encode()
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.sampled_from([0, 0, 1, 5, 40, 10_000])))
        new = draw(
            (TEXT | PIECES).map(lambda t: t.encode("utf-8", "surrogatepass"))
            | st.binary(max_size=6)
        )
        text = text[:start] + new + text[end:]
    return text


@st.composite
def changed_yaml(draw: st.DrawFn, sources: Sequence[str]) -> bytes:
    """One of the YAML files with some of its values or keys made something else."""
    value = yaml.safe_load(draw(st.sampled_from(sources)))
    for _ in range(draw(st.integers(1, 3))):
        value = _changed(value, draw)
    return yaml.dump(value, allow_unicode=draw(st.booleans()), sort_keys=False).encode(
        "utf-8", "surrogatepass"
    )


def _changed(value: Any, draw: Callable[[Any], Any]) -> Any:
    """`value` with one place in it, however deep, made anything."""
    if isinstance(value, dict) and value and draw(st.integers(0, 5)):
        key = draw(st.sampled_from(list(value)))
        match draw(st.integers(0, 7)):
            case 0:
                return {k: v for k, v in value.items() if k != key}
            case 1:
                return {**value, draw(TEXT | PIECES): draw(VALUES)}
            case _:
                return {**value, key: _changed(value[key], draw)}
    if isinstance(value, list) and value and draw(st.integers(0, 5)):
        place = draw(st.integers(0, len(value) - 1))
        match draw(st.integers(0, 7)):
            case 0:
                return value[:place] + value[place + 1 :]
            case 1:
                return [*value, value[place]]
            case _:
                return [*value[:place], _changed(value[place], draw), *value[place + 1 :]]
    return draw(VALUES)


@st.composite
def yaml_bomb(draw: st.DrawFn, sources: Sequence[str]) -> bytes:
    """One of the YAML files with aliases of aliases behind it, for up to 9 ** 40 values."""
    depth, width = draw(st.integers(1, 40)), draw(st.integers(1, 9))
    before = draw(st.sampled_from(sources))
    merged = draw(st.booleans())  # each level merges the one before it, or lists it
    lines = [before, "z0: &z0 {a: 1}" if merged else "z0: &z0 [a]"]
    for level in range(1, depth + 1):
        alias = ", ".join([f"*z{level - 1}"] * width)
        value = f"{{<<: [{alias}], k{level}: [{alias}]}}" if merged else f"[{alias}]"
        lines.append(f"z{level}: &z{level} {value}")
    key = draw(st.sampled_from(["name", "rubric", "metrics", "judges", "files", "? *z1\n: x\n#"]))
    return "\n".join([*lines, f"{key}: *z{depth}"]).encode()


@st.composite
def nested_template(draw: st.DrawFn, sources: Sequence[str]) -> bytes:
    """One of the templates with something nested, or repeated, put into a line of it."""
    n = draw(st.sampled_from([2, 50, 600, 5000]))
    new = draw(st.sampled_from([
        "{% for i in range(9999) %}" * n + "x" + "{% endfor %}" * n,
        "{% if item %}" * n + "x" + "{% endif %}" * n, "{{ " + "(" * n + "1" + ")" * n + " }}",
        "{{ " + "[" * n + "]" * n + " }}", "{{ 'x' * 10 ** " + str(n) + " }}",
        "{% set a = 1 %}" * n,
        "{{ " + "not " * n + "1 }}", "{{ 1" + " + 1" * n + " }}", "{{ 'x'" + "|upper" * n + " }}",
        "{{ 9 ** 9 ** 9 }}", "{{ range(10 ** 9)|list }}", "{{ '%*d' % (10 ** 9, 1) }}",
    ]))  # fmt: skip
    lines = draw(st.sampled_from(sources)).splitlines()
    lines.insert(draw(st.integers(0, len(lines))), new)
    return "\n".join(lines).encode()


def bytes_like(sources: Sequence[str], is_yaml: bool = False) -> st.SearchStrategy[bytes]:
    """Files that are valid, nearly valid, or noise."""
    of_yaml = changed_yaml(sources) | yaml_bomb(sources) if is_yaml else st.nothing()
    return torn_text(sources) | of_yaml | st.binary(max_size=300)


def texts(kind: str, suffix: str) -> list[str]:
    return [p.read_text("utf-8") for p in sorted(shipped_folder(kind).glob(f"*{suffix}"))]


def read(path: Path, content: bytes, reader: Callable[[Path], object]) -> None:
    """Only an error of ours may come out, and it can be told."""
    path.write_bytes(content)
    try:
        reader(path)
    except JudgebenchError as error:
        str(error).encode("utf-8", "surrogatepass")


SET = (
    '{"item_id": "1", "parent": "Because.", "text": "So.", "must_not_change": true}\n'
    '{"item_id": "2", "parent": "One.", "text": "Two.", "must_worsen": {"politeness": "Impolite"}, '
    '"changes": [{"start": 0, "end": 4, "old": "One.", "new": "Two."}], "seed": 1}\n'
)
