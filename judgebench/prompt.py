"""Prompts: sandboxed, strict Jinja files with a `system` and a `user` block.

A prompt file begins with YAML front matter between two `---` lines that says what the prompt asks
for: how a judge is to reply (`reply`) and what it is shown (`shows`: one answer, several
`responses`, or the `criteria` to check an answer by), what a model is to write (`writes`:
`argument`, in free words, or `evidence`, copied from the document), or what it `asks` about an exam
question (to write an open `question`, to make a `choice`, to give a `verdict`). `description` may
say what it is for. Text of an answer is data: it is fenced, never evaluated, and cannot close its
fence or the model's chat turn.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from jinja2 import StrictUndefined, Template, TemplateSyntaxError, meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import StringConstraints

from judgebench.errors import Problem, SetupError, raise_any
from judgebench.files import StrictModel, find_file, parse_with_lines, read_text, validate
from judgebench.records import Answer, Part, content_hash
from judgebench.rubric import Metric, Rubric

JudgeReply = Literal["json", "rationale", "brackets", "result"]
ReplyKind = Literal[JudgeReply, "argument", "evidence", "question", "choice", "verdict"]
BLOCKS = ("system", "user")
Shows = Literal["answer", "responses", "criteria"]
VARIABLES = (
    "instructions", "metrics", "several", "question", "answer", "responses", "criteria",
    "reference", "fence",
)  # fmt: skip

# What ends a turn or begins one in chat templates, and what looks like a tag of ours, told by its
# shape: a name between signs that ordinary text does not put there, or a word of conversations
# between brackets. A space after the first character keeps it readable, stops a tokenizer from
# taking it for a control token, and can make no other of them: none holds a space.
_CONTROL = re.compile(
    r"""(?ix)
    <(?=/?[|｜][\w"▁]) | [<\[](?=[|｜]?/?[^\W\d]\w{1,40}[|｜][>\]]) | ◁(?=/?\w+▷)
    | <(?=/?(?:s|eo[a-z]|[bs]o[ist]|sop|pad|unk|sep|cls|mask|system|user|assistant|human|bot
        |ai|用户|think(?:ing)?|thought|reasoning|reflection|scratchpad|observation|tool_?calls?|tools
        |_(?:bot|end|system|user)|(?-i:role|functions?|escape|/parameter)|(?:function|parameter)=[^\s<>]+
        |(?=[^<>]{1,40}[_:])(?:[a-z]+[_:])*(?:begin(?:ning)?|start|end|turn|im|tools?|token|extra
          |unused|reserved|special|fim|mask|seed|minimax|function|arg|image)(?:[_:][a-z\d]+)*
        |unused\d+|fim-[a-z]+|[a-z]+-[0-9a-f]{8}|/?SYS)>)
    | \[(?-i:(?=/?(?:[BE]O[DST]|PAD|UNK|[gs]?MASK|PREFIX|MIDDLE|SUFFIX|INST|THINK|ARGS|AUDIO
        |TRANSCRIBE|(?:[A-Z]+_)*(?:TOOLS?|SYSTEM|TOKEN|BEGIN|CALL|IMG|MODEL)(?:_[A-Z\d]+)*
        |unused\d+|control_\d+|[a-z]+_header_id)\]))
    | \[(?=e~\[) | \](?=~!?b[\[\]])
    """
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


class _Front(StrictModel):
    """The front matter. A prompt is of the kind whose key it has."""

    reply: JudgeReply | None = None
    writes: Literal["argument", "evidence"] | None = None
    asks: Literal["question", "choice", "verdict"] | None = None
    shows: Shows = "answer"
    description: Annotated[str, StringConstraints(strip_whitespace=True)] = ""


@dataclass(frozen=True)
class PromptKind:
    """Prompts for one purpose: the key of their front matter, the folder of the shipped ones, what
    each may and must show, and a sentence on it around its reply."""

    key: Literal["reply", "writes", "asks"]
    folder: str
    variables: tuple[str, ...]
    needed: tuple[str, ...]
    in_words: str


JUDGES = PromptKind(
    "reply", "prompts", VARIABLES, ("metrics",), "a prompt with replies of the kind {}"
)
ARGUMENTS = PromptKind(
    "writes",
    "prompts/arguments",
    ("question", "context", "fence"),
    ("question",),
    "a prompt that asks for {}",
)
QUESTIONS = PromptKind(
    "asks",
    "prompts/questions",
    ("question", "options", "answer", "first", "second", "fence"),
    ("question", "answer"),
    "a prompt that asks for a {}",
)
_NEEDED: Mapping[Shows, tuple[str, ...]] = {
    "answer": ("answer",), "responses": ("responses",), "criteria": ("answer", "criteria"),
}  # fmt: skip
# What one text beside others is called in its tags, and the variable that holds them all.
_BESIDE: Mapping[Shows, tuple[str, str]] = {
    "responses": ("response", "responses"), "criteria": ("criterion", "criteria"),
}  # fmt: skip
_TAGS = {"context": "document"}  # what a text is called in its tags, if not as its variable


@dataclass(frozen=True)
class Prompt:
    """A checked prompt file. `text` is the whole file; its hash is part of the signature of what
    is made with it. `reply` is the form of reply that it requests."""

    name: str
    text: str
    reply: ReplyKind
    description: str
    template: Template
    asks_for_reference: bool = False
    shows: Shows = "answer"
    _made: dict[int, tuple[Rubric, list[Mapping[str, Any]]]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    @property
    def content_hash(self) -> str:
        return content_hash(self.text)

    def render(self, rubric: Rubric, answer: Answer, beside: Sequence[str] = ()) -> tuple[str, str]:
        """The system and the user text for one answer. `beside` are the texts of the responses or
        of the criteria, in the order in which they are shown, where the prompt shows such.

        Raises SetupError where the prompt needs a reference and the answer has none, or where
        the template fails.
        """
        if self.asks_for_reference and not answer.reference:
            raise self._problem("needs a reference answer, which this item lacks", answer.item_id)
        reference = answer.reference or ""
        question, text = answer.question, answer.text
        tag = fence_tag(question, text, reference, *beside)
        before, of_text = ((), answer.turns) if answer.is_conversation else (answer.turns, ())
        values = {
            "instructions": rubric.instructions,
            "metrics": self._metrics_of(rubric),
            "several": any(metric.several for metric in rubric.metrics),
            "question": fence(question, "question", tag, before) if question else "",
            "answer": fence(text, "answer", tag, of_text),
            "reference": fence(reference, "reference", tag),
            "fence": tag,
        }
        if self.shows != "answer":
            kind, variable = _BESIDE[self.shows]
            values[variable] = [fence(each, kind, tag) for each in beside]
        return self._filled(values, answer.item_id)

    def _metrics_of(self, rubric: Rubric) -> list[Mapping[str, Any]]:
        """The metrics as plain data, made once: by identity, as hashing a rubric costs more."""
        if id(rubric) not in self._made:
            self._made[id(rubric)] = rubric, [*map(_plain, rubric.metrics)]
        return self._made[id(rubric)][1]

    def render_texts(self, **texts: str) -> tuple[str, str]:
        """The system and the user text that show these texts by their names, each in its fence,
        and nothing for one that is empty. Raises SetupError where the template fails."""
        tag = fence_tag(*texts.values())
        shown = {
            name: fence(text, _TAGS.get(name, name), tag) if text else ""
            for name, text in texts.items()
        }
        return self._filled({**shown, "fence": tag})

    def _filled(self, values: dict[str, Any], item_id: str = "") -> tuple[str, str]:
        try:
            context = self.template.new_context(values)
            system, user = ("".join(self.template.blocks[name](context)) for name in BLOCKS)
        except Exception as error:  # a template is a program: whatever fails in it is its author's
            raise self._problem(f"cannot be rendered: {error}", item_id) from None
        return system.strip(), user.strip()

    def _problem(self, message: str, item_id: str) -> SetupError:
        return SetupError(Problem(message, f"prompt {self.name}", None, item_id))


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
    text = read_text(path)
    front, _ = _front(text, path)
    kind = next((kind for kind in (ARGUMENTS, QUESTIONS) if getattr(front, kind.key)), JUDGES)
    return kind.in_words.format(parse_prompt(text, path, kind).reply)


def load_prompt(name: str, relative_to: Path | None = None, kind: PromptKind = JUDGES) -> Prompt:
    """The prompt of that path or shipped name. Raises SetupError with every problem in it."""
    path = find_file(kind.folder, name, ".jinja", relative_to)
    return parse_prompt(read_text(path), path, kind)


def literal_lines(path: Path) -> list[str]:
    """The lines that stand in a prompt file as a model is shown them, without front matter and what
    Jinja fills in. Raises SetupError."""
    text = read_text(path)
    _, head = _front(text, path)
    tokens = _ENVIRONMENT.lex(text.removeprefix(head))
    return [line for _, kind, part in tokens if kind == "data" for line in part.split("\n")]


def parse_prompt(text: str, path: Path, kind: PromptKind = JUDGES) -> Prompt:
    """The prompt that `text` holds; `path` names it. Raises SetupError with every problem in
    it."""
    front, head = _front(text, path)
    reply = getattr(front, kind.key)
    if reply is None:
        raise SetupError(Problem("is missing", str(path), 2, kind.key))
    first_line, body = head.count("\n"), text.removeprefix(head)
    try:
        tree, template = _ENVIRONMENT.parse(body), _ENVIRONMENT.from_string(body)
    except TemplateSyntaxError as error:
        line = error.lineno + first_line
        raise SetupError(Problem(f"is not Jinja: {error.message}", str(path), line)) from None
    except (RecursionError, SyntaxError, MemoryError, ValueError) as error:  # too deep, too long
        raise SetupError(Problem(f"is not Jinja: {error}", str(path))) from None
    lines = (first_line + node.lineno for node in _take_outside(tree))
    message = "stands outside of the blocks, so the model would not see it"
    outside = [Problem(message, line=line) for line in sorted(lines)]
    used = meta.find_undeclared_variables(tree)
    problems = [*_variable_problems(front, kind, used), *outside]
    problems += [Problem(f"lacks the block {b!r}") for b in BLOCKS if b not in template.blocks]
    raise_any([replace(problem, file=str(path)) for problem in problems])
    return Prompt(
        path.stem, text, reply, front.description, template, "reference" in used, front.shows
    )


def _front(text: str, path: Path) -> tuple[_Front, str]:
    """The front matter, and the text that it is read from. Raises SetupError."""
    match = re.match(r"---[ \t]*\r?\n(.*?\n)---[ \t]*\r?\n", text, re.DOTALL)
    if match is None:
        message = "must begin with front matter between two '---' lines"
        raise SetupError(Problem(message, str(path), 1))
    value, node = parse_with_lines("\n" + match[1], str(path))  # from line 2 of the file
    return validate(value, _Front, str(path), node), match[0]


def _variable_problems(front: _Front, kind: PromptKind, used: set[str]) -> Iterator[Problem]:
    """Variables that such a prompt has not, and those that it must show and never uses."""
    needed, variables = kind.needed, kind.variables
    if front.writes == "evidence":
        needed = (*needed, "context")
    if kind is JUDGES:
        needed = (*_NEEDED[front.shows], *needed)
        others = {"answer", "responses", "criteria"}.difference(needed)
        variables = tuple(name for name in variables if name not in others)
    message = "is not a variable of such a prompt"
    for name in sorted(used.difference(variables)):
        yield Problem(message, field=name, allowed=", ".join(variables))
    for name in needed:
        if name not in used:
            yield Problem("is never used, so the model would not see it", field=name)


def _take_outside(tree: nodes.Template) -> list[nodes.Node]:
    """Take out of the tree, and return, what stands beside the blocks: only these are rendered."""
    blocks = [n for n in tree.body if isinstance(n, nodes.Block) and n.name in BLOCKS]
    others = [node for node in tree.body if node not in blocks and not _is_blank(node)]
    tree.body = [*blocks]
    return others


def _is_blank(node: nodes.Node) -> bool:
    """True of white space between blocks."""
    return isinstance(node, nodes.Output) and all(
        isinstance(part, nodes.TemplateData) and not part.data.strip() for part in node.nodes
    )


_ENVIRONMENT = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
