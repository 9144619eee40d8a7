"""May a judge replace annotators, assist them, or neither?"""

from judgebench.decisions.decide import measure_decisions
from judgebench.decisions.sentences import rule_in_words
from judgebench.runs.features import FeatureParts

PARTS = FeatureParts(measure=measure_decisions, checks={"decision rule": rule_in_words})
