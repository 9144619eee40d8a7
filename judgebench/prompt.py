"""Prompts: sandboxed, strict Jinja files with a `system` and a `user` block.

A prompt file begins with YAML front matter between two `---` lines that says what the prompt asks
for: how a judge is to reply (`reply`) and what it is shown (`shows`: one answer, several
`responses`, or the `criteria` to check an answer by), what a model is to write (`writes`:
`argument`, in free words, or `evidence`, copied from the document), or what it `asks` about an exam
question (to write an open `question`, to make a `choice`, to give a `verdict`). `description` may
say what it is for. Text of an answer is data: it is fenced, never evaluated, and cannot close its
fence or the model's chat turn.

Whatever makes a value or goes round a loop is wrapped when a template is compiled, and pays for the
characters, entries and rounds that it makes. A template that a stranger wrote can so neither run
for hours nor fill the memory.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from jinja2 import StrictUndefined, Template, TemplateSyntaxError, meta, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer
from pydantic import Field, StringConstraints

from judgebench.errors import Problem, SetupError, raise_any
from judgebench.records import Answer, Part, content_hash
from judgebench.rubric import Metric, Rubric
from judgebench.shipped import find_file
from judgebench.yaml_file import Strict, parse_with_lines, read_text, validate

JudgeReply = Literal["json", "rationale", "brackets", "result"]
ReplyKind = Literal[JudgeReply, "argument", "evidence", "question", "choice", "verdict"]
BLOCKS = ("system", "user")
Shows = Literal["answer", "responses", "criteria"]
VARIABLES = (
    "instructions", "metrics", "several", "question", "answer", "responses", "criteria",
    "reference", "fence",
)  # fmt: skip
_OF_THE_ANSWER = frozenset(VARIABLES[3:])
# Words for metrics on which several labels may be right; without such they change no prompt.
_FOR_SEVERAL = re.compile(r"\{% if several %\}.{0,1000}?\{% endif %\}", re.DOTALL)

# What ends a turn or begins one in chat templates, told by its shape, and what looks like a tag of
# ours. A space after the first character keeps it readable, stops a tokenizer from taking it for a
# control token, and can make no other of them: none holds a space.
_CONTROL = re.compile(
    r"<(?=/?[|｜])|<(?=/?[^\W\d][^\s<>|｜]{1,40}[|｜]>)"  # <|im_end|>, <turn|>
    r"|\[(?=[|｜]/?\w{2,40}[|｜]\])"  # [|endofturn|]
    r"|<(?=/?[a-z]+(?:_[a-z\d]+)+>)|<(?=[a-z]{3,}\d+>)"  # <end_of_turn>, <reserved_107>, <unused9>
    r"|<(?=/?[a-z]+:[a-z_\d]+>)"  # <seed:eos>, <minimax:tool_call>
    r"|<(?=/?(?:s|[bes]o[a-z]|pad|unk|sep|cls|mask|think|system|assistant|user)>)|<(?=</?SYS>>)"
    r"|<(?-i:(?=role>\s{0,9}[A-Z]{2}))"  # <role>HUMAN</role>
    r"|\[(?-i:(?=(?:[BE]O[DST]|PAD|UNK|s?MASK|ARGS|CALL_ID|IMG(?:_[A-Z]+)?|/?MODEL_[A-Z]+)\]))"
    r"|\[(?=[a-z]+(?:_[a-z]+)+_\d+\])"  # [UNUSED_TOKEN_145]
    r"|\[(?=/?(?:INST|THINK|gMASK|(?:SYSTEM|AVAILABLE|TOOL)_[A-Z]+|(?:start|end)_header_id)\])"
    r"|\[(?=e~\[)|\](?=~!?b[\[\]])"  # [e~[, ]~b]
    r"|<(?=/?[a-z]+-[0-9a-f]{8}>)",
    re.IGNORECASE,
)


def disarm(text: str) -> str:
    """`text` without anything that ends or begins a chat turn or looks like the tags of a
    fence."""
    return _CONTROL.sub(lambda match: match.group() + " ", text)


def fence(text: str, kind: str, tag: str, turns: Sequence[Part] = ()) -> str:
    """`text`, disarmed, between tags that occur in no text; turn by turn, where it is made of
    them."""
    held = "\n".join(fence(turn.text, turn.role, tag) for turn in turns) or disarm(text)
    return f"<{kind}-{tag}>\n{held}\n</{kind}-{tag}>"


def fence_tag(*texts: str) -> str:
    """Eight hex digits that depend on every text and occur in none of them.

    A hash alone is not enough: it is easy to find a text that names thousands of tags, its own
    among them. So the hash is hashed again as long as a text contains its digits.
    """
    joined = "\0".join(texts).lower().encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(joined)
    while digest.hexdigest()[:8].encode() in joined:
        digest = hashlib.sha256(digest.digest())
    return digest.hexdigest()[:8]


_Description = Annotated[str, StringConstraints(strip_whitespace=True)]


class _JudgeFront(Strict):
    reply: JudgeReply
    shows: Shows = "answer"
    description: _Description = ""


class _ArgumentFront(Strict):
    reply: Literal["argument", "evidence"] = Field(default="argument", alias="writes")
    shows: ClassVar[Shows] = "answer"
    description: _Description = ""


class _QuestionFront(Strict):
    reply: Literal["question", "choice", "verdict"] = Field(alias="asks")
    shows: ClassVar[Shows] = "answer"
    description: _Description = ""


@dataclass(frozen=True)
class PromptKind:
    """Prompts for one purpose: the folder of the shipped ones, what each may and must show, the key
    of its front matter that tells it from others, and a sentence on it around its reply."""

    folder: str
    front: type[_JudgeFront | _ArgumentFront | _QuestionFront]
    variables: tuple[str, ...]
    needed: tuple[str, ...]
    told_by: str
    in_words: str


JUDGES = PromptKind(
    "prompts", _JudgeFront, VARIABLES, ("metrics",), "", "a prompt with replies of the kind {}"
)
_NEEDED: Mapping[Shows, tuple[str, ...]] = {
    "answer": ("answer",), "responses": ("responses",), "criteria": ("answer", "criteria"),
}  # fmt: skip
# What one text beside others is called in its tags, and the variable that holds them all.
_BESIDE: Mapping[Shows, tuple[str, str]] = {
    "responses": ("response", "responses"), "criteria": ("criterion", "criteria"),
}  # fmt: skip
ARGUMENTS = PromptKind(
    "prompts/arguments",
    _ArgumentFront,
    ("question", "context", "fence"),
    ("question",),
    "writes",
    "a prompt that asks for {}",
)
QUESTIONS = PromptKind(
    "prompts/questions",
    _QuestionFront,
    ("question", "options", "answer", "first", "second", "fence"),
    ("question", "answer"),
    "asks",
    "a prompt that asks for a {}",
)


@dataclass(frozen=True)
class _OfRubric:
    """The parts that a prompt makes of a rubric, once for all answers: the metrics as plain data,
    and the blocks that show nothing of the answer."""

    rubric: Rubric
    metrics: Sequence[Mapping[str, Any]]
    blocks: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Prompt:
    """A checked prompt file. `text` is the whole file; its hash is part of the signature of what
    is made with it. `reply` is the form of reply that it requests. The blocks in `fixed` show
    nothing of the answer. The values in `needed` must change the prompt.
    """

    name: str
    text: str
    reply: ReplyKind
    description: str
    template: Template
    asks_for_reference: bool = False
    fixed: frozenset[str] = frozenset()
    needed: tuple[str, ...] = ()
    shows: Shows = "answer"
    _shown: set[str] = field(default_factory=set, init=False, compare=False, repr=False)
    _made: dict[int, _OfRubric] = field(default_factory=dict, init=False, compare=False, repr=False)

    @property
    def content_hash(self) -> str:
        return content_hash(self.text)

    def hash_for(self, rubric: Rubric) -> str:
        """The hash of what the prompt may say about the metrics of a rubric."""
        lists = any(metric.several for metric in rubric.metrics)
        return content_hash(self.text if lists else _FOR_SEVERAL.sub("", self.text))

    def render(self, rubric: Rubric, answer: Answer, beside: Sequence[str] = ()) -> tuple[str, str]:
        """The system and the user text for one answer. `beside` are the texts of the responses or
        of the criteria, in the order in which they are shown, where the prompt shows such.

        Raises SetupError where the prompt needs a reference and the answer has none, or where
        the template fails.
        """
        if self.asks_for_reference and not answer.reference:
            raise SetupError(
                Problem(
                    "needs a reference answer, which this item lacks",
                    f"prompt {self.name}",
                    None,
                    answer.item_id,
                )
            )
        # By identity: to hash a whole rubric would cost more than what is saved.
        made = self._made.get(id(rubric))
        if made is None:
            made = _OfRubric(rubric, [_plain(metric) for metric in rubric.metrics])
            self._made[id(rubric)] = made
        reference = answer.reference or ""
        asked, text = answer.question, answer.text
        tag = fence_tag(asked, text, reference, *beside)
        turns = answer.turns
        before, of_text = ((), turns) if answer.is_conversation else (turns, ())
        one, others = ("", "") if self.shows == "answer" else _BESIDE[self.shows]
        values = {
            "instructions": rubric.instructions,
            "metrics": made.metrics,
            "several": any(metric.several for metric in rubric.metrics),
            "question": fence(asked, "question", tag, before) if asked else "",
            "answer": fence(text, "answer", tag, of_text),
            "reference": fence(reference, "reference", tag),
            **({others: [fence(each, one, tag) for each in beside]} if others else {}),
            "fence": tag,
        }
        return self._filled(values, made.blocks, answer.item_id)

    def render_argument(self, question: str, context: str = "") -> tuple[str, str]:
        """The system and the user text that ask for an argument on a question, or for evidence
        from its `context`. Raises SetupError where the template fails."""
        tag = fence_tag(question, context)
        values = {
            "question": fence(question, "question", tag),
            "context": fence(context, "document", tag) if context else "",
            "fence": tag,
        }
        return self._filled(values, {})

    def render_texts(self, **texts: str) -> tuple[str, str]:
        """The system and the user text that show these texts by their names, each in its fence,
        and nothing for one that is empty. Raises SetupError where the template fails."""
        tag = fence_tag(*texts.values())
        shown = {name: fence(text, name, tag) if text else "" for name, text in texts.items()}
        return self._filled({**shown, "fence": tag}, {})

    def _filled(
        self, values: Mapping[str, Any], blocks: dict[str, str], item_id: str = ""
    ) -> tuple[str, str]:
        try:
            context = _context_of(self.template, values)
            system, user = (self._block(name, context, blocks) for name in BLOCKS)
            hidden = [name for name in self.needed if not self._shows(name, values, system + user)]
        except Exception as error:  # a template is a program: whatever fails in it is its author's
            raise SetupError(
                Problem(f"cannot be rendered: {error}", f"prompt {self.name}", None, item_id)
            ) from None
        if hidden:
            message = "changes nothing in the prompt, so the model would not see it"
            raise SetupError([Problem(message, f"prompt {self.name}", None, n) for n in hidden])
        return system, user

    def _shows(self, name: str, values: Mapping[str, Any], made: str) -> bool:
        """True where another value in place of this one makes another prompt. It is tried
        once."""
        if name not in self._shown:
            other = {**values, name: "another text" if isinstance(values[name], str) else []}
            context = _context_of(self.template, other)
            try:
                if "".join(self._block(block, context, {}) for block in BLOCKS) == made:
                    return False
            except Exception:  # it is used, or its lack would not matter
                pass
            self._shown.add(name)
        return True

    def _block(self, name: str, context: Context, blocks: dict[str, str]) -> str:
        if name in blocks:
            return blocks[name]
        text = "".join(self.template.blocks[name](context)).strip()
        if name in self.fixed:
            blocks[name] = text
        return text


def _plain(metric: Metric) -> Mapping[str, Any]:
    """A metric as plain data: a template can reach nothing else through it."""
    return {
        "id": metric.id,
        "title": metric.title,
        "of": metric.of,
        "question": metric.question,
        "options": list(metric.options),
        "several": metric.several,
        "line": metric.prompt_line(),
        "line_with_examples": metric.prompt_line(examples=True),
    }


def prompt_in_words(path: Path, rubric: str) -> str:
    """Read a prompt of any kind and say what it asks for. Raises SetupError."""
    try:
        head = "".join(read_text(path).split("---", 2)[1:2])
    except SetupError:
        head = ""
    keys = {line.partition(":")[0] for line in head.splitlines() if ":" in line}
    kind = next((kind for kind in (ARGUMENTS, QUESTIONS) if kind.told_by in keys), JUDGES)
    return kind.in_words.format(load_prompt(str(path), kind=kind).reply)


def load_prompt(name: str, relative_to: Path | None = None, kind: PromptKind = JUDGES) -> Prompt:
    """The prompt of that path or shipped name. Raises SetupError with every problem in it."""
    path = find_file(kind.folder, name, ".jinja", relative_to)
    return parse_prompt(read_text(path), path, kind)


def parse_prompt(text: str, path: Path, kind: PromptKind = JUDGES) -> Prompt:
    """The prompt that `text` holds; `path` names it. Raises SetupError with every problem in
    it."""
    match = re.match(r"---[ \t]*\r?\n(.*?\n)---[ \t]*\r?\n", text, re.DOTALL)
    if match is None:
        raise SetupError(
            Problem("must begin with front matter between two '---' lines", str(path), 1)
        )
    value, node = parse_with_lines("\n" + match[1], str(path))  # from line 2 of the file
    front = validate(value, kind.front, str(path), node)
    body = text[match.end() :]
    if len(body) > _MOST_CHARACTERS:
        raise SetupError(
            Problem(
                f"is too large for a prompt: {len(body):,} characters",
                str(path),
                allowed=f"at most {_MOST_CHARACTERS:,}",
            )
        )
    try:
        tree, template = _parsed(body), _compiled(body)
    except TemplateSyntaxError as error:
        line = error.lineno + match[0].count("\n")
        raise SetupError(Problem(f"is not Jinja: {error.message}", str(path), line)) from None
    except (RecursionError, SyntaxError, MemoryError):
        raise SetupError(Problem("is nested too deeply", str(path))) from None
    except ValueError as error:  # a number of 5,000 digits
        raise SetupError(Problem(f"is not Jinja: {error}", str(path))) from None
    outside = _outside(tree)
    used = meta.find_undeclared_variables(tree)
    needed = (*kind.needed, "context") if front.reply == "evidence" else kind.needed
    variables = kind.variables
    if kind is JUDGES:
        needed = (*_NEEDED[front.shows], *needed)
        others = {"answer", "responses", "criteria"}.difference(needed)
        variables = tuple(name for name in variables if name not in others)
    allowed = ", ".join(variables)
    problems = [
        Problem("is not a variable of such a prompt", str(path), None, v, "", allowed)
        for v in sorted(used - set(variables))
    ]
    problems += [
        Problem(f"lacks the block {b!r}", str(path)) for b in BLOCKS if b not in template.blocks
    ]
    problems += [
        Problem("stands outside of the blocks, so the model would not see it", str(path), line)
        for line in sorted(match[0].count("\n") + node.lineno for node in outside)
    ]
    problems += [
        Problem("is never used, so the model would not see it", str(path), None, v)
        for v in needed
        if v not in used
    ]
    raise_any(problems)
    about = (path.stem, text, front.reply, front.description, template)
    return Prompt(*about, "reference" in used, _fixed(tree), tuple(needed), front.shows)


def _outside(tree: nodes.Template) -> list[nodes.Node]:
    """Take out of the tree, and return, what stands beside the blocks: only these are rendered."""
    blocks = [n for n in tree.body if isinstance(n, nodes.Block) and n.name in BLOCKS]
    others = [
        node
        for node in tree.body
        if node not in blocks
        and not (
            isinstance(node, nodes.Output)
            and all(isinstance(n, nodes.TemplateData) and not n.data.strip() for n in node.nodes)
        )
    ]
    tree.body = [*blocks]
    return others


def _fixed(tree: nodes.Template) -> frozenset[str]:
    """The blocks whose text depends on the rubric alone."""
    return frozenset(
        block.name
        for block in tree.find_all(nodes.Block)
        if not {n.name for n in block.find_all(nodes.Name)} & (_OF_THE_ANSWER | {"self"})
        and not any(f.name == "random" for f in block.find_all(nodes.Filter))
    )


# The sandbox ----------------------------------------------------------------------------------

_MOST_CHARACTERS = 100_000
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


def _parsed(text: str) -> nodes.Template:
    """The tree of a template. Raises TemplateSyntaxError, and RecursionError for a deep one."""
    return _ENVIRONMENT.parse(text)


def _compiled(text: str) -> Template:
    """The template that `text` holds. Raises TemplateSyntaxError, and RecursionError, SyntaxError
    or MemoryError where it is nested too deeply."""
    tree = _Metered().visit(_ENVIRONMENT.parse(text))
    return _ENVIRONMENT.from_string(tree.set_environment(_ENVIRONMENT))


def _context_of(template: Template, values: Mapping[str, Any]) -> Context:
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
