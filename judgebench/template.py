"""Jinja for prompts: sandboxed, strict, and bounded in size, nesting and work.

Whatever makes a value or goes round a loop is wrapped when a template is compiled, and pays for the
characters, entries and rounds that it makes. A template that a stranger wrote can so neither run
for hours nor fill the memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from functools import wraps
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateSyntaxError, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

MOST_CHARACTERS = 100_000
_WORK, _FOR_EACH_CHARACTER, _ROUND, _CALL = 10_000_000, 100, 10, 500
_LARGEST_NUMBER, _LONGEST_VALUE = 100_000, 100_000_000
_LEFT, _PAID, _GONE_ROUND = " left", " paid", " rounds"  # names that no template can write
_MAKING = (nodes.Call, nodes.Filter, nodes.BinExpr, nodes.Concat, nodes.List, nodes.Dict)
_GROWING = ("replace", "join", "indent", "center", "ljust", "rjust", "zfill", "expandtabs")


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"*", "**", "%"})

    def __init__(self) -> None:
        # What is computed before a template runs would be paid by nobody.
        super().__init__(
            undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, optimized=False
        )
        del self.globals["lipsum"]
        names = [name for name in (*_GROWING, "format") if name in self.filters]
        self.filters |= {name: _bounded(name, self.filters[name]) for name in names}
        self.filters |= {_PAID: _paid, _GONE_ROUND: _gone_round}

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "**":
            raise SecurityError("a prompt may not use **")
        _check_growth("format" if operator == "%" else "*", left, right)
        return super().call_binop(context, operator, left, right)

    def call(self, context: Context, obj: Any, *args: Any, **kwargs: Any) -> Any:
        name, own = getattr(obj, "__name__", ""), getattr(obj, "__self__", None)
        _pay(context, _CALL)
        if name in _GROWING:
            _check_growth(name, own, *args, *kwargs.values())
        return super().call(context, obj, *args, **kwargs)

    def wrap_str_format(self, value: Any) -> Any:
        if getattr(value, "__name__", "") in ("format", "format_map"):
            _check_growth("format", getattr(value, "__self__", None))
        return super().wrap_str_format(value)


class _Metered(NodeTransformer):
    """Wraps whatever makes a value, whatever is shown, and what loops go round."""

    def generic_visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> nodes.Node:
        node = super().generic_visit(node, *args, **kwargs)
        if isinstance(node, nodes.For):
            node.iter = _wrapped(node.iter, _GONE_ROUND)
        elif isinstance(node, nodes.Output):
            node.nodes = [_wrapped(child, _PAID) for child in node.nodes]
        elif isinstance(node, nodes.AssignBlock):
            node.filter = _wrapped(node.filter, _PAID)
        elif isinstance(node, nodes.Const) and isinstance(node.value, int):
            if abs(node.value) > _LARGEST_NUMBER:
                raise TemplateSyntaxError(f"a number above {_LARGEST_NUMBER:,}", node.lineno)
        elif isinstance(node, _MAKING):
            return _wrapped(node, _PAID)
        return node

    def visit_CallBlock(  # noqa: N802
        self, node: nodes.CallBlock
    ) -> nodes.Node:
        node.body = [self.visit(child) for child in node.body]
        node.defaults = [self.visit(child) for child in node.defaults]
        super().generic_visit(node.call)  # it must stay a call: what it returns is shown, and paid
        return node


def parsed(text: str) -> nodes.Template:
    """The tree of a template. Raises TemplateSyntaxError, and RecursionError for a deep one."""
    return _ENVIRONMENT.parse(text)


def compiled(text: str) -> Template:
    """The template that `text` holds. Raises TemplateSyntaxError, and RecursionError, SyntaxError
    or MemoryError where it is nested too deeply."""
    tree = _Metered().visit(_ENVIRONMENT.parse(text))
    return _ENVIRONMENT.from_string(tree.set_environment(_ENVIRONMENT))


def context_of(template: Template, values: Mapping[str, Any]) -> Context:
    """A context with what a rendering may cost, by the texts that it is about."""
    given = sum(len(value) for value in values.values() if isinstance(value, str))
    return template.new_context({**values, _LEFT: [_WORK + _FOR_EACH_CHARACTER * given]})


def _wrapped(node: Any, name: str) -> nodes.Filter:
    line = 0 if node is None else node.lineno
    return nodes.Filter(node, name, [], [], None, None, lineno=line)


@pass_context
def _paid(context: Context, value: Any) -> Any:
    _pay(context, _size(value))
    return value


@pass_context
def _gone_round(context: Context, value: Any) -> Any:
    if isinstance(value, Sized):
        _pay(context, _ROUND * len(value))
        return value
    return _rounds(context, value)


def _rounds(context: Context, values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        _pay(context, _ROUND)
        yield value


def _pay(context: Context, cost: int) -> None:
    left = context.parent[_LEFT]
    left[0] -= cost + 1
    if left[0] < 0:
        raise SecurityError("the template goes round too often, or makes too much text")


def _size(value: Any) -> int:
    """Characters or entries; of a number, itself."""
    if isinstance(value, int):
        return abs(value)
    return len(value) if isinstance(value, str | list | tuple | dict | range) else 1


def _bounded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def bounded(*args: Any, **kwargs: Any) -> Any:
        _check_growth(name, *args, *kwargs.values())
        return function(*args, **kwargs)

    return bounded


def _check_growth(name: str, *values: Any) -> None:
    """Raises SecurityError where one step could make a huge value."""
    # A width such as in `%99999d` is no number of its own.
    wide = name == "format" and any(isinstance(v, str) and _WIDE.search(v) for v in values[:1])
    if wide or math.prod(max(1, _size(value)) for value in values) > _LONGEST_VALUE:
        raise SecurityError(f"{name} would make too long a text")


_WIDE = re.compile(r"\d{6}")
_ENVIRONMENT = _Environment()
