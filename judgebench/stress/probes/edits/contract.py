"""What a rule does to an answer: an edited text, or the reason why there is nothing to edit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from judgebench.records import Answer


@dataclass(frozen=True, slots=True)
class Edited:
    """A new text. A rule that makes an answer worse also says which claim is now false, as it
    stands in the new text, and which true claim it breaks."""

    text: str
    false_claim: str = ""
    true_claim: str = ""


@dataclass(frozen=True, slots=True)
class Nothing:
    """The rule found nothing to change; `reason` says what it looked for."""

    reason: str


# All chance comes from the generator, which depends on seed, recipe and answer alone: the same
# seed gives the same set, whatever is edited before.
Edit = Callable[[Answer, Random], Edited | Nothing]
