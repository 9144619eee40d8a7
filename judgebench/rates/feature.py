"""How often does each label occur, by system?"""

from judgebench.rates.run import measure_rates
from judgebench.runs.features import FeatureParts

PARTS = FeatureParts(measure=measure_rates)
