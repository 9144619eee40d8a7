"""Does a judge see what was made worse, and stay where nothing was?"""

from judgebench.runs.features import FeatureParts
from judgebench.stress_tests.analysis import measure_stress
from judgebench.stress_tests.attacks import StressSettings, listed, set_in_words
from judgebench.stress_tests.make import StressExtension, read_stress, stress_in_words
from judgebench.stress_tests.recipes import recipe_in_words, words_in_words
from judgebench.stress_tests.wording import synonyms_in_words

PARTS = FeatureParts(
    settings=StressSettings,
    check=stress_in_words,
    extension=StressExtension,
    read=read_stress,
    measure=measure_stress,
    checks={
        "recipe": recipe_in_words,
        "word list": words_in_words,
        "synonyms": synonyms_in_words,
        "set": set_in_words,
    },
    lists={"attacks": listed},
)
