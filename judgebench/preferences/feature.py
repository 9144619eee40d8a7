"""Do judges order the responses to one question as people do?"""

from judgebench.preferences.analysis import measure_preferences
from judgebench.runs.features import FeatureParts

PARTS = FeatureParts(measure=measure_preferences)
