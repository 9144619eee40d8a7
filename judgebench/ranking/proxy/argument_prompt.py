"""Prompts that ask a model for an argument: sandboxed Jinja with a `system` and a `user` block.

The front matter says what is written: `writes: argument`, in free words, or `writes: evidence`,
copied from the document, which is checked. The system block holds the one example of a one-shot
prompt; whatever comes of an instance is data and stands fenced in the user block.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from jinja2 import StrictUndefined, Template, TemplateSyntaxError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from judgebench.errors import Problem, SetupError
from judgebench.prompt import BLOCKS, fence, fence_tag, split_front_matter
from judgebench.records import content_hash
from judgebench.shipped import find_file
from judgebench.yaml_file import Strict, read_text

Writes = Literal["argument", "evidence"]
VARIABLES = ("question", "context", "fence")
KIND = "prompts/arguments"  # the folder of the shipped ones


class _FrontMatter(Strict):
    writes: Writes = "argument"
    description: str = ""


@dataclass(frozen=True)
class ArgumentPrompt:
    """A checked prompt file. `text` is the whole file; its hash is part of what an argument says of
    its origin."""

    name: str
    text: str
    writes: Writes
    description: str
    template: Template

    @property
    def content_hash(self) -> str:
        """Changes with any letter of the file."""
        return content_hash(self.text)

    def render(self, question: str, context: str = "") -> tuple[str, str]:
        """The system and the user text. Raises SetupError where the template fails."""
        tag = fence_tag(question, context)
        values: dict[str, Any] = {
            "question": fence(question, "question", tag),
            "context": fence(context, "document", tag) if context else "",
            "fence": tag,
        }
        try:
            made = self.template.new_context(values)
            system, user = ("".join(self.template.blocks[b](made)).strip() for b in BLOCKS)
        except Exception as error:  # a template is a program: what fails in it is its author's
            raise SetupError(
                Problem(f"cannot be rendered: {error}", f"prompt {self.name}")
            ) from None
        return system, user


def load_argument_prompt(name: str, relative_to: Path | None = None) -> ArgumentPrompt:
    """The prompt of that path or shipped name. Raises SetupError with every problem in it."""
    path = find_file(KIND, name, ".jinja", relative_to)
    text = read_text(path)
    front, body, offset = split_front_matter(text, path, _FrontMatter)
    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
    )
    try:
        used = meta.find_undeclared_variables(environment.parse(body))
        template = environment.from_string(body)
    except TemplateSyntaxError as error:
        line = error.lineno + offset
        raise SetupError(Problem(f"is not Jinja: {error.message}", str(path), line)) from None
    problems = [
        Problem(
            "is no variable of a prompt for arguments", str(path), None, v, "", ", ".join(VARIABLES)
        )
        for v in sorted(used - set(VARIABLES))
    ]
    problems += [
        Problem(f"lacks the block {b!r}", str(path)) for b in BLOCKS if b not in template.blocks
    ]
    needed = ("question", "context") if front.writes == "evidence" else ("question",)
    problems += [
        Problem("is never used, so the model would not see it", str(path), None, v)
        for v in needed
        if v not in used
    ]
    if problems:
        raise SetupError(problems)
    return ArgumentPrompt(path.stem, text, front.writes, front.description, template)
