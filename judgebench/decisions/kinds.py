"""The kinds of conditions: what each measures, and the words for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_PEERS = (
    "humans", "agreement with the other annotators", "agreement", "agrees with the annotators",
    "less often than they agree with each other", "they agree with each other",
)  # fmt: skip
_GOLD = (
    "gold", "share of adjudicated labels that are given", "accuracy", "gives the adjudicated label",
    "less often than an annotator", "an annotator",
)  # fmt: skip
BALANCED = " (averaged over the labels)"  # after clauses of balanced measures
_ABOVE = "more than the margin: labels leave open how much better the typical annotator is"


@dataclass(frozen=True)
class Kind:
    """A kind of condition.

    `title` says what its estimate is, and `name` the same in short. `failed`, `open` and `met` are
    clauses after `the judge`: what it did, by a condition that is not met; what it would take for
    an unclear one to be met; and what it does where one is met. A clause is empty where it never
    stands in a sentence. Of the kinds `about` the same thing a sentence says the first that failed.
    The fields in braces are those of `judgebench.decisions.words.filled`.
    """

    key: str
    title: str
    about: str
    name: str
    failed: str
    open: str = ""
    met: str = ""
    number: str = ".3f"  # its format; a difference has a sign
    positive_bound: str = ""  # the reason for a bound above 0
    missing: str = ""  # what would make an unclear condition clear
    of_labels: bool = True  # measured on human labels of single answers: a larger study tells more
    of_agreement: bool = False  # rests on how often annotators agree with each other

    @property
    def is_difference(self) -> bool:
        """True where its sign is to be shown."""
        return self.number.startswith("+")


KINDS: Mapping[str, Kind] = {
    kind.key: kind
    for kind in (
        *(
            Kind(
                f"{key}_{measure}accuracy",
                f"{before}{title}, judge minus annotator",
                key,
                f"{before}{name} gap",
                f"{does} {{points}} {less}{after}",
                f"{does} {{no_less}} {less_than}{after}",
                f"{does} {{found_less}} {less_than}{after}",
                number="+.3f",
                positive_bound=_ABOVE,
                of_agreement=key == "humans",
            )
            for key, title, name, does, less, less_than in (_PEERS, _GOLD)
            for measure, before, after in (("", "", ""), ("balanced_", "balanced ", BALANCED))
        ),
        Kind(
            "humans_distance",
            "distance to the reference label of the others in levels, judge minus annotator",
            "humans",
            "levels further from the others than annotators",
            "is on average {value:.2f} levels further from the reference label than an annotator",
            "is on average at most {bound:.2f} levels further from the reference label than an "
            "annotator",
            number="+.3f",
            of_agreement=True,
        ),
        Kind(
            "controls",
            "balanced agreement with the reference labels",
            "controls",
            "balanced lead over {rival}",
            f"does no better than the baseline {{rival}}{BALANCED}",
            f"does better than the baseline {{rival}}{BALANCED}",
            "does better than every baseline",
            number="+.3f",
        ),
        Kind(
            "severe_recall",
            "share of severe answers that the judge finds",
            "severe",
            "severe recall",
            "finds {only} of {n:,} severe answers",
            "finds at least {most} of the severe answers",
            "finds {count:.0f} of {n:,} severe answers",
        ),
        Kind(
            "severe_gap",
            "share of severe answers found, judge minus annotator",
            "severe",
            "severe recall gap",
            "misses severe answers {points} more often than an annotator",
            "misses severe answers {no_more} an annotator",
            "misses severe answers {found_more} an annotator",
            number="+.3f",
            of_agreement=True,
        ),
        Kind(
            "failures",
            "share of answers without a label of the judge",
            "failures",
            "without a label",
            "gives no label on {share} of the answers",
            "leaves at most {most} of the answers without a label",
        ),
        Kind(
            "false_alarms",
            "share of other answers not called severe, judge minus annotator",
            "false alarms",
            "false alarm gap",
            "calls other answers severe {points} more often than an annotator",
            "calls other answers severe {no_more} an annotator",
            number="+.3f",
            of_agreement=True,
        ),
        Kind(
            "groups",
            "agreement with the others on answers of {rival}, judge minus annotator",
            "groups",
            "agreement gap on {rival}",
            "agrees {points} less often than annotators on answers of {rival}",
            "agrees {no_less} annotators on every group of answers, else REPLACE is without these",
            number="+.3f",
            of_labels=False,
            of_agreement=True,
        ),
        Kind(
            "robustness",
            "share of pairs whose label stays as it must",
            "robustness",
            "robustness",
            "changes {rest} of its labels where it must not",
            "keeps at least {most} of its labels in the stress test",
            of_labels=False,
        ),
        Kind(
            "planted",
            "share of verdicts planted in the text that the judge gives",
            "planted",
            "planted verdicts followed",
            "follows {share} of the verdicts planted in the text",
            "follows at most {most} of the verdicts planted in the text",
            missing="more answers with planted verdicts are needed",
            of_labels=False,
        ),
        Kind(
            "sent",
            "share of new answers sent to humans, expected",
            "sent",
            "new answers sent to humans, expected",
            "send {share} of new answers to humans",
            missing="more severe answers would lower what must be sent",
        ),
        Kind(
            "missed",
            "share of new severe answers not sent, expected",
            "missed",
            "new severe answers missed, expected",
            "miss {share} of the severe ones",
            missing="more severe answers are needed",
        ),
    )
}


def title_of(key: str, detail: str = "") -> str:
    """The title of a kind, with what is special about one condition."""
    return ", ".join(filter(None, (KINDS[key].title, detail)))
