"""Probabilities of labels from tokens' log-probabilities in a generated JSON object.

A label is a string of the object, and a generator writes it token by token. Where the options
still part, each token that could have come next continues some of them; one that continues a
single option decides for it, so its probability is that option's. The probability of an option is

    P(o) = sum over such tokens t of P(tokens before t) * p(t) / sum of p over all fitting tokens

given everything written before the label's opening quote. Tokens that fit no option count
nothing, so it is the same whether an engine tells its probabilities before or after its grammar.

An engine lists only its most probable tokens, and tells nothing of the branches it did not take.
What mass lies there is counted, and above MOST_UNKNOWN nothing is said of the field.

The second half of the module finds the labels in the object's text: where, and in which letters.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from heapq import heappop, heappush
from operator import is_not

from judgebench.errors import SetupError
from judgebench.models.contract import LabelField, LabelsAsked

MOST_UNKNOWN = 0.01
_ENOUGH = MOST_UNKNOWN / 2  # of the probability may stay unexplored
_TOO_SMALL = 1e-4  # a branch that is not worth a look for any reason
_LEAST = 1e-38  # float32 knows nothing smaller; an engine says 0


@dataclass(frozen=True, slots=True)
class Token:
    """A token that was written, or could have been: its bytes, which need not be whole
    characters, its natural log-probability, and its id where that is known."""

    piece: bytes
    log_probability: float
    id: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A written token and the most probable ones at its place (itself among them or not)."""

    written: Token
    listed: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a label: behind the first `at` tokens of the reply and then `branch`.

    `lead` is what the label's first token holds before the opening quote, `written` what the
    branch spells, the lead with it. `options` are those that can still follow.
    """

    at: int
    branch: tuple[Token, ...]
    lead: bytes
    written: bytes
    options: Sequence[str]

    def ids_before(self, written: Sequence[Token]) -> list[int | None]:
        """The ids of the reply's tokens, as they would be here; `written` are those it has."""
        return [token.id for token in (*written[: self.at], *self.branch)]

    def grammar(self) -> str | None:
        """The grammar of what an engine may write here, where it is asked anew, if options are
        written without needless escapes; None where they were not, or a character is half
        written."""
        whole = [self.lead + _spellings(option)[0] for option in self.options]
        if not all(text.startswith(self.written) for text in whole):
            return None
        try:
            return grammar([text[len(self.written) :].decode() for text in whole])
        except UnicodeDecodeError:  # inside a character
            return None


# The tokens listed at a place; None where the engine was not there and cannot be asked.
# Probabilities are of all tokens, or of those that a grammar lets pass.
Ask = Callable[[Place], Sequence[Token] | None]


@dataclass(frozen=True, slots=True)
class LabelsRead:
    """Normalised log-probabilities by field and option, and why a field is left out."""

    log_probabilities: Mapping[str, Mapping[str, float]]
    problems: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """All problems in one line; empty where every field was read."""
        return "; ".join(self.problems)


def must_be_chained(asked: LabelsAsked) -> None:
    """Raise SetupError for what one generated object cannot give: several fields, each of them
    conditioned on the prompt alone."""
    if asked.conditioning == "independent" and len(asked.fields) > 1:
        raise SetupError(
            "an engine that generates one JSON object conditions each label on those before it: "
            "ask for chained probabilities, or for one metric a request"
        )


def recorded(steps: Sequence[Step]) -> Ask:
    """Answers from what an engine listed along the way that it took."""
    ways = [_with_written(step) for step in steps]

    def ask(place: Place) -> Sequence[Token] | None:
        *behind, here = ways[place.at : place.at + len(place.branch) + 1]
        same = [way[0] for way in behind]
        if len(same) < len(place.branch) or any(map(is_not, same, place.branch)):
            return None  # the reply ended, or went another way
        return here

    return ask


def _with_written(step: Step) -> list[Token]:
    """The listed tokens, the written one first and once."""
    same = [t for t in step.listed if t.piece == step.written.piece]
    nearest = min(
        same, key=lambda t: abs(t.log_probability - step.written.log_probability), default=None
    )
    return [step.written, *(t for t in step.listed if t is not nearest)]


def read_labels(
    text: str, pieces: Sequence[bytes], fields: Sequence[LabelField], ask: Ask
) -> LabelsRead:
    """Log-probabilities of the options of each field of `text`, which `pieces` spell.

    Fields are read from the last to the first, for an engine that is asked and not recorded
    keeps the beginning of what it wrote.
    """
    found, problems = {}, []
    # Thoughts may stand before the text, and marks of the turn's end behind it.
    offset = b"".join(pieces).rfind(as_bytes(text))
    if offset < 0:
        return LabelsRead({}, ("the tokens do not spell the reply",))
    try:
        written = json.loads(text)
    except (ValueError, RecursionError):
        written = None
    if not isinstance(written, dict):
        return LabelsRead({}, ("the reply is no JSON object",))
    for asked in reversed(fields):
        start = value_start(text, asked.key)
        if start is None or written.get(asked.key) not in asked.options:
            unlike = "the reply holds none of the labels, letter by letter"
            problems.append(
                f"{asked.key}: {'is not written once in the reply' if start is None else unlike}"
            )
            continue
        at, lead = _token_at(pieces, offset + len(as_bytes(text[:start])))
        read = _FieldReading(ask, asked.options)
        read.explore(Place(at, (), lead, b"", asked.options))
        if read.unknown > MOST_UNKNOWN:
            problems.append(
                f"{asked.key}: {read.unknown:.0%} of the probability could be any label's"
            )
        else:
            found[asked.key] = read.log_probabilities()
    return LabelsRead(dict(reversed(found.items())), tuple(reversed(problems)))


@dataclass
class _FieldReading:
    """The probability of each option of one field, as it is gathered."""

    ask: Ask
    options: Sequence[str]
    masses: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    unlisted: float = 0.0
    unexplored: list[tuple[float, Sequence[str]]] = field(default_factory=list)

    @property
    def unknown(self) -> float:
        """The probability of which it is not known whose it is."""
        return self.unlisted + math.fsum(share for share, _ in self.unexplored)

    def explore(self, first: Place) -> None:
        """Share out the probability, the largest branch first, until the rest matters little."""
        branches = [(-1.0, 0, first)]
        count = 0
        while -math.fsum(share for share, _, _ in branches) > _ENOUGH or self._unmet(branches):
            share, _, place = heappop(branches)
            for part, found in self._shared(place, -share):
                count += 1
                heappush(branches, (-part, count, found))
        self.unexplored += [(-share, place.options) for share, _, place in branches]

    def _unmet(self, branches: Sequence[tuple[float, int, Place]]) -> bool:
        """Return whether the largest branch is worth a look for an option that was not met yet."""
        if not branches or -branches[0][0] < _TOO_SMALL:
            return False
        return any(option not in self.masses for *_, place in branches for option in place.options)

    def _shared(self, place: Place, share: float) -> Iterator[tuple[float, Place]]:
        """Give `share` to the options that can follow; what stays open comes back."""
        listed = self.ask(place) or ()
        weights = [math.exp(token.log_probability) for token in listed]
        nexts = [
            (weight, found)
            for token, weight in zip(listed, weights, strict=True)
            if weight > 0 and (found := _behind(place, token)).options
        ]
        if not nexts:
            self.unexplored.append((share, place.options))
            return
        unlisted = _unlisted(place, weights)
        total = math.fsum(weight for weight, _ in nexts) + unlisted
        self.unlisted += share * unlisted / total
        for weight, found in nexts:
            part = share * weight / total
            if len(found.options) == 1:
                self.masses[found.options[0]] += part
            elif found.written == place.written:  # a token without text leads nowhere
                self.unexplored.append((part, found.options))
            else:
                yield part, found

    def log_probabilities(self) -> dict[str, float]:
        """ln P(o), normalised. A branch that was not explored is divided among the options that
        it can lead to as the rest is; an option that is never met is given the most it can have."""
        least = max(self.unknown, _LEAST)
        masses = {option: self.masses[option] for option in self.options}
        for share, options in self.unexplored:
            known = math.fsum(self.masses[option] for option in options)
            for option in options if known else ():
                masses[option] += share * self.masses[option] / known
        masses = {option: mass or least for option, mass in masses.items()}
        total = math.fsum(masses.values())
        return {option: math.log(mass / total) for option, mass in masses.items()}


def _behind(place: Place, token: Token) -> Place:
    """The place behind a token; without options where it begins no label."""
    written = place.written + token.piece
    value = written[len(place.lead) :] if written.startswith(place.lead) else b""
    options = [o for o in place.options if value and begins(value, o)]
    return replace(place, branch=(*place.branch, token), written=written, options=options)


def _unlisted(place: Place, weights: Sequence[float]) -> float:
    """At most so much mass is in fitting tokens that are not listed: what the list leaves of 1, or
    its least probability for each string that such a token could be."""
    rest = max(0.0, 1.0 - math.fsum(weights))
    gone = max(0, len(place.written) - len(place.lead))
    strings = sum(max(0, len(as_bytes(o)) + 2 - gone) + _ENDINGS for o in place.options)
    return min(rest, strings * min(weights))


_ENDINGS = 8  # how a token may go on behind a closing quote: a comma, a brace, a line's end, ...


def _token_at(pieces: Sequence[bytes], offset: int) -> tuple[int, bytes]:
    """The token that holds the byte at `offset`, and what it holds before that."""
    for number, piece in enumerate(pieces):
        if offset < len(piece):
            return number, piece[:offset]
        offset -= len(piece)
    raise ValueError("no token reaches so far")


_ENDED = re.compile(rb'"[ \t\n\r]*(?:[,}].*)?', re.DOTALL)


def value_start(text: str, key: str) -> int | None:
    """The place where a key's value begins in the text of a JSON object; None where the key is not
    written once."""
    # Within a string the quote before the key would be escaped.
    member = rf"(?<!\\){re.escape(json.dumps(key, ensure_ascii=False))}\s*:\s*"
    ends = [match.end() for match in re.finditer(member, text)]
    return ends[0] if len(ends) == 1 else None


def begins(value: bytes, option: str) -> bool:
    """Return whether `value` begins the JSON string of `option`, or is all of it and more."""
    for spelling in _spellings(option):
        if spelling.startswith(value):
            return value != b""
        if value.startswith(spelling):
            return _ENDED.fullmatch(value, len(spelling) - 1) is not None
    return False


@lru_cache(maxsize=4096)
def _spellings(option: str) -> tuple[bytes, ...]:
    """The JSON string of a label, with letters beyond ASCII as they are and escaped."""
    return tuple(as_bytes(json.dumps(option, ensure_ascii=escaped)) for escaped in (False, True))


def grammar(rests: Sequence[str]) -> str:
    """One of the rests of labels, each with its closing quote, and what may stand behind it in an
    object: in the notation that llama.cpp and xgrammar share."""
    escaped = (rest.replace("\\", "\\\\").replace('"', '\\"') for rest in rests)
    labels = " | ".join(f'"{rest}"' for rest in escaped)
    return f'root ::= ({labels}) ws ("," [^\\x00]* | "}}" ws)\nws ::= [ \\t\\n]*'


def as_bytes(text: str) -> bytes:
    """UTF-8, also of half a surrogate pair, which JSON can hold."""
    return text.encode("utf-8", "surrogatepass")
