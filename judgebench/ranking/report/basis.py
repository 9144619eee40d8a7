"""What the rankings rest on: agreement of rankers, biases, systems, training."""

from __future__ import annotations

from judgebench.ranking.report.lookup import NO_TASK, metric_words, ranker_titles
from judgebench.ranking.result import RankAgreement, RankedTask, Rankings, System, Trained
from judgebench.results.tables import DASH, Cell, Table

Row = tuple[Cell, ...]


def basis_tables(rankings: Rankings) -> list[Table]:
    """In order; empty tables are left out."""
    tables = [
        *agreement_tables(rankings),
        controls_below_table(rankings),
        length_table(rankings),
        self_preference_table(rankings),
        trained_table(rankings),
        systems_table(rankings),
        tasks_table(rankings),
    ]
    return [table for table in tables if table.rows]


def agreement_tables(rankings: Rankings) -> list[Table]:
    """One table a task: every pair of rankers, those with the humans first."""
    titles = ranker_titles(rankings)
    humans = {r.ranker for r in rankings.rankings if r.kind == "humans"}
    tables = []
    for number, task in enumerate(rankings.tasks, start=1):
        found = [a for a in rankings.agreements if a.task == task.name]
        found.sort(key=lambda a: not humans & {a.ranker, a.other})
        tables.append(
            Table(
                f"ranking_agreement-{number}",
                f"How far rankers agree, {task.title}",
                ("Ranker", "Other ranker", "Kendall's tau-b", "Spearman's rho",
                 "tau-b of the average ranks", "Same best system"),
                tuple(_agreement(a, titles) for a in found),
                (
                    "tau-b and rho of the ranks within an instance, means over the instances and "
                    "systems that both rank. Same best system: share of the instances.",
                ),
                stubs=2,
            )
        )  # fmt: skip
    return [table for table in tables if table.rows]


def _agreement(a: RankAgreement, titles: dict[str, str]) -> Row:
    return (
        Cell(titles.get(a.ranker, a.ranker)),
        Cell(titles.get(a.other, a.other), remark=f"over {', '.join(a.systems)}"),
        Cell(estimate=a.tau_b, signed=True),
        Cell(estimate=a.spearman, signed=True),
        Cell(estimate=a.tau_b_of_averages, signed=True),
        Cell(estimate=a.top_1),
    )


def controls_below_table(rankings: Rankings) -> Table:
    """The share of control cases that rank below all real arguments; rankers down, tasks across."""
    found = {(r.ranker, r.task): r.controls_below for r in rankings.rankings}
    return Table(
        "ranking_controls_below",
        "Control cases below all real arguments of their instance",
        ("Ranker", *(task.title for task in rankings.tasks)),
        tuple(
            (
                Cell(title),
                *(
                    Cell(estimate=found.get((ranker, task.name), NO_TASK))
                    for task in rankings.tasks
                ),
            )
            for ranker, title in ranker_titles(rankings).items()
        ),
        ("Share of the instances' control cases; 1 is best.",),
    )


def length_table(rankings: Rankings) -> Table:
    """Do longer arguments stand higher?"""
    titles, tasks = ranker_titles(rankings), _task_titles(rankings)
    return Table(
        "ranking_length",
        "Length bias: do longer arguments stand higher?",
        ("Task", "Ranker", "Words and rank, rho", "Longest is the best"),
        tuple(
            (
                Cell(tasks.get(b.task, b.task)),
                Cell(titles.get(b.ranker, b.ranker)),
                Cell(estimate=b.rho, signed=True),
                Cell(estimate=b.longest_first),
            )
            for b in rankings.length_biases
        ),
        (
            "Spearman's rho within instances, over real arguments: above 0, longer arguments stand "
            "higher.",
        ),
        stubs=2,
    )


def self_preference_table(rankings: Rankings) -> Table:
    """Does a ranker favour the generator that it is akin to?"""
    titles, tasks = ranker_titles(rankings), _task_titles(rankings)
    return Table(
        "ranking_self_preference",
        "Self-preference: is a generator set higher by the ranker that is akin to it?",
        ("Task", "Ranker", "Generator", "Akin", "Places higher"),
        tuple(
            (
                Cell(tasks.get(p.task, p.task)),
                Cell(titles.get(p.ranker, p.ranker)),
                Cell(p.generator),
                Cell(p.akin),
                Cell(
                    estimate=p.places,
                    signed=True,
                    remark=f"beside {', '.join(titles.get(o, o) for o in p.others) or 'nobody'}",
                ),
            )
            for p in rankings.self_preferences
        ),
        ("How many places higher than the other rankers of the task set it, on average.",),
        stubs=2,
    )


def trained_table(rankings: Rankings) -> Table:
    """What training each evaluator took."""
    tasks = _task_titles(rankings)
    return Table(
        "ranking_trained",
        "Training of the evaluators",
        ("Task", "Evaluator", "Encoder", "Training instances", "Development instances", "Epochs",
         "Best epoch", "Development score", "Seconds", "Inputs cut", "Arguments cut"),
        tuple(_trained(t, tasks, rankings) for t in rankings.trained),
        (
            "Inputs cut: of training, longer than the encoder takes. Arguments cut: those among "
            "them that lost some of the argument.",
        ),
        stubs=2,
    )  # fmt: skip


def _trained(t: Trained, tasks: dict[str, str], rankings: Rankings) -> Row:
    same = [x.draw for x in rankings.trained if (x.task, x.evaluator) == (t.task, t.evaluator)]
    draw = f", draw {t.draw}" if len(same) > 1 else ""
    return (
        Cell(tasks.get(t.task, t.task)),
        Cell(f"{t.evaluator}{draw}"),
        Cell(t.encoder),
        Cell(f"{t.train:,}"),
        Cell(f"{t.development:,}"),
        Cell(f"{t.epochs:,}"),
        Cell(f"{t.best_epoch:,}"),
        Cell(f"{t.development_score:.3f}"),
        Cell(f"{t.seconds:,.0f}"),
        Cell(f"{t.cut:,}"),
        Cell(f"{t.cut_arguments:,}"),
    )


def systems_table(rankings: Rankings) -> Table:
    """Who wrote arguments, how long, and how much of an extract is really in the document."""
    return Table(
        "ranking_systems",
        "The systems and what they wrote",
        ("Task", "System", "Kind", "Mean words", "Verbatim", "Test inputs cut"),
        tuple(_system(task, system) for task in rankings.tasks for system in task.systems),
        (
            "Verbatim: share of the words of extracts that stand in the document. Test inputs cut: "
            "longer than the encoder takes.",
        ),
        stubs=2,
    )


def _system(task: RankedTask, system: System) -> Row:
    kind = {"gold": "experts", "model": "model", "control": "control case"}[system.kind]
    verbatim, cut = task.verbatim.get(system.name), task.cut.get(system.name)
    return (
        Cell(task.title),
        Cell(system.name),
        Cell(kind),
        Cell(DASH if system.mean_words is None else f"{system.mean_words:,.1f}"),
        Cell(DASH if verbatim is None else f"{100 * verbatim:.1f} %"),
        Cell(DASH if cut is None else f"{cut:,}"),
    )


def tasks_table(rankings: Rankings) -> Table:
    """The tasks: metric, instances, and the classes that are not ranked."""
    return Table(
        "ranking_tasks",
        "The tasks",
        ("Task", "Name", "Metric", "Instances ranked", "Classes left out"),
        tuple(
            (
                Cell(task.title),
                Cell(task.name),
                Cell(metric_words(task)),
                Cell(f"{task.n:,}"),
                Cell(", ".join(task.left_out) or "none"),
            )
            for task in rankings.tasks
        ),
        ("Test instances of a class that is left out are not ranked.",),
    )


def _task_titles(rankings: Rankings) -> dict[str, str]:
    return {task.name: task.title for task in rankings.tasks}
