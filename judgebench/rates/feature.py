"""How often does each label occur, by system?"""

from judgebench.rates.analysis import measure_rates
from judgebench.runs.features import FeatureParts

PARTS = FeatureParts(measure=measure_rates)
