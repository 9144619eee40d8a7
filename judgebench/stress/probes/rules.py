"""From a recipe to the rule that carries it out."""

from __future__ import annotations

from pathlib import Path

from judgebench.errors import Problem, SetupError
from judgebench.rubric import Rubric
from judgebench.stress.probes.altered import Edit
from judgebench.stress.probes.edits.add import add, demanded
from judgebench.stress.probes.edits.layout import bullets, markdown
from judgebench.stress.probes.edits.negate import negate_contraindication
from judgebench.stress.probes.edits.numbers import change_number, change_unit, dose_by_ten
from judgebench.stress.probes.edits.swap import swap
from judgebench.stress.probes.edits.wording import drop_redundant, load_synonyms, reword
from judgebench.stress.probes.recipe import Add, Recipe, Reword, Rule, Swap
from judgebench.stress.probes.words import load_words

_RULES = {
    "dose-by-ten": dose_by_ten,
    "number": change_number,
    "unit": change_unit,
    "negate-contraindication": negate_contraindication,
    "bullets": bullets,
    "markdown": markdown,
    "drop-redundant": drop_redundant,
}


def edit_of(recipe: Recipe, rubric: Rubric, relative_to: Path | None = None) -> Edit:
    """The edit that a recipe names; paths of word lists are seen from `relative_to`.

    Raises SetupError where a word list cannot be read, and for a recipe that only a model, or
    another way of asking, can carry out.
    """
    match recipe.edit:
        case Add():
            demand = demanded(recipe.demand, rubric) if recipe.demand else {}
            return add(recipe.edit, demand, rubric)
        case Swap():
            return swap(load_words(recipe.edit.words, relative_to), recipe.edit.to)
        case Reword():
            return reword(load_synonyms(recipe.edit.words, relative_to))
        case Rule():
            return _RULES[recipe.edit.kind]
        case _:
            message = f"needs more than a rule: it is of the kind {recipe.edit.kind}"
            raise SetupError(Problem(message, field="edit", found=recipe.name))
