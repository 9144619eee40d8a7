"""judgebench: can this LLM judge replace, or assist, your human annotators?

>>> import pandas as pd, judgebench as jb
>>> given = ["bad", "good"] * 30
>>> labels = pd.DataFrame({"id": range(60), "Ann": given, "Ben": given})
>>> verdicts = pd.DataFrame({"id": range(60), "gpt-4": given})
>>> for decision in jb.decide(labels, verdicts, columns={"order": "good < bad"}):
...     print(decision)  # doctest: +ELLIPSIS
gpt-4 on label: CAN'T TELL. ...

Paths of files do as well as DataFrames: jb.decide("labels.xlsx", "gpt4.csv"). The same from a
terminal: judgebench decide labels.xlsx gpt4.csv.

What stands in `__all__` is public; every other module is internal and may change.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from judgebench.version import VERSION

if TYPE_CHECKING:
    from judgebench.alignment.analysis import align as align
    from judgebench.annotation.draw import count_drawn as count_drawn
    from judgebench.annotation.draw import draw as draw
    from judgebench.annotation.init import annotate as annotate
    from judgebench.annotation.lead import collected as collected
    from judgebench.certificate.watch import watch as watch
    from judgebench.comparison.analysis import compare as compare
    from judgebench.data.layout import Layout as Layout
    from judgebench.data.settings import Unsettled as Unsettled
    from judgebench.decisions.decide import decide as decide
    from judgebench.decisions.decision import Outcome as Outcome
    from judgebench.decisions.rule import DecisionRule as DecisionRule
    from judgebench.errors import BudgetSpent as BudgetSpent
    from judgebench.errors import DamagedRun as DamagedRun
    from judgebench.errors import DiskFailed as DiskFailed
    from judgebench.errors import EndpointDown as EndpointDown
    from judgebench.errors import JudgebenchError as JudgebenchError
    from judgebench.errors import JudgesStopped as JudgesStopped
    from judgebench.errors import MissingExtra as MissingExtra
    from judgebench.errors import NotReached as NotReached
    from judgebench.errors import Problem as Problem
    from judgebench.errors import RunError as RunError
    from judgebench.errors import RunLocked as RunLocked
    from judgebench.errors import SetupError as SetupError
    from judgebench.exporting import export as export
    from judgebench.judges.judge import Judge as Judge
    from judgebench.judges.judge import Task as Task
    from judgebench.models.contract import Backend as Backend
    from judgebench.models.contract import Message as Message
    from judgebench.models.contract import Reply as Reply
    from judgebench.models.contract import Request as Request
    from judgebench.planning.plan import plan as plan
    from judgebench.preferences.analysis import prefer as prefer
    from judgebench.ranking.rank_bench import rank as rank
    from judgebench.rates.analysis import estimate as estimate
    from judgebench.records import Answer as Answer
    from judgebench.records import Estimate as Estimate
    from judgebench.records import HumanLabel as HumanLabel
    from judgebench.records import Lookup as Lookup
    from judgebench.records import Part as Part
    from judgebench.records import Results as Results
    from judgebench.records import Showing as Showing
    from judgebench.records import Status as Status
    from judgebench.records import Usage as Usage
    from judgebench.records import Verdict as Verdict
    from judgebench.reporting import analyse as analyse
    from judgebench.reporting import report as report
    from judgebench.rubric import Label as Label
    from judgebench.rubric import Metric as Metric
    from judgebench.rubric import Rubric as Rubric
    from judgebench.runs.bench import Bench as Bench
    from judgebench.runs.benchmark import load_bench as load_bench
    from judgebench.runs.benchmark import run as run
    from judgebench.runs.from_tables import layout as layout
    from judgebench.runs.from_tables import study as study
    from judgebench.runs.open import open_run as open_run
    from judgebench.scorers.consistency import consistency as consistency
    from judgebench.scorers.correlate import correlate as correlate
    from judgebench.scorers.table import score as score
    from judgebench.setup_files import Started as Started
    from judgebench.setup_files import check as check
    from judgebench.setup_files import import_file as import_file
    from judgebench.setup_files import init as init
    from judgebench.stress_tests.analysis import stress as stress
    from judgebench.studies.reference_labels import TruthConfig as TruthConfig
    from judgebench.studies.study import Study as Study
    from judgebench.tuning.export import export_judge as export_judge
    from judgebench.tuning.judges import tune as tune

__version__ = VERSION

_HOMES = {
    "alignment.analysis": ("align",),
    "annotation.draw": ("count_drawn", "draw"),
    "annotation.init": ("annotate",),
    "annotation.lead": ("collected",),
    "certificate.watch": ("watch",),
    "setup_files": ("check", "import_file", "Started", "init"),
    "comparison.analysis": ("compare",),
    "decisions.decide": ("decide",),
    "planning.plan": ("plan",),
    "preferences.analysis": ("prefer",),
    "ranking.rank_bench": ("rank",),
    "rates.analysis": ("estimate",),
    "reporting": ("analyse", "report"),
    "runs.benchmark": ("load_bench", "run"),
    "runs.from_tables": ("layout", "study"),
    "runs.open": ("open_run",),
    "scorers.correlate": ("correlate",),
    "scorers.consistency": ("consistency",),
    "scorers.table": ("score",),
    "stress_tests.analysis": ("stress",),
    "tuning.export": ("export_judge",),
    "tuning.judges": ("tune",),
    "data.layout": ("Layout",),
    "data.settings": ("Unsettled",),
    "models.contract": ("Backend", "Message", "Reply", "Request"),
    "decisions.decision": ("Outcome",),
    "decisions.rule": ("DecisionRule",),
    "exporting": ("export",),
    "errors": (
        "BudgetSpent", "DamagedRun", "DiskFailed", "EndpointDown", "JudgebenchError",
        "JudgesStopped", "MissingExtra", "NotReached", "Problem", "RunError", "RunLocked",
        "SetupError",
    ),
    "judges.judge": ("Judge", "Task"),
    "records": (
        "Answer", "Estimate", "HumanLabel", "Lookup", "Part", "Showing", "Status", "Usage",
        "Verdict", "Results",
    ),
    "rubric": ("Label", "Metric", "Rubric"),
    "runs.bench": ("Bench",),
    "studies.study": ("Study",),
    "studies.reference_labels": ("TruthConfig",),
}  # fmt: skip
_HOME = {name: f"judgebench.{home}" for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'judgebench' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOME[name]), name)
    return found


def __dir__() -> list[str]:
    return __all__
