"""Does a judge see what was made worse, and stay where nothing was?"""

from functools import partial

from judgebench.runs.features import FeatureParts
from judgebench.stress_tests.analysis import measure_stress
from judgebench.stress_tests.attacks import StressSettings, listed, recipe_in_words, set_in_words
from judgebench.stress_tests.item_sets import read_set
from judgebench.stress_tests.make import StressExtension, read_stress, stress_in_words
from judgebench.stress_tests.recipes import WordList, list_in_words
from judgebench.stress_tests.wording import Synonyms

PARTS = FeatureParts(
    settings=StressSettings,
    check=stress_in_words,
    extension=StressExtension,
    read=read_stress,
    measure=measure_stress,
    altered=read_set,
    checks={
        "recipe": recipe_in_words,
        "word list": partial(list_in_words, WordList),
        "synonyms": partial(list_in_words, Synonyms),
        "set": set_in_words,
    },
    lists={"attacks": listed},
)
