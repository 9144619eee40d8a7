"""A benchmark through the fault server, and the account of what became of every answer."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest.mock import patch

from fault_server import RUBRIC_NAME, Fault, FaultServer, expected, labels_of

from judgebench.models.litellm_backend import LiteLLM
from judgebench.models.openai_compatible import OpenAICompatible
from judgebench.models.transport import Backoff
from judgebench.records import Status, Verdict
from judgebench.runs.folder import RunFolder
from judgebench.runs.load import load_bench
from judgebench.runs.run_bench import run

JUDGE = "under-faults"
MAX_RETRIES = 20  # so that nobody's tries run out while the server is dead
PARSE_RETRIES = 1
QUICK = Backoff(first=0.005, longest=0.1)


def write_bench(folder: Path, server: FaultServer, answers: int, kind: str) -> Path:
    """A bench.yaml with that many answers for a judge of that kind of backend; its path."""
    rows = (f"case-{n},What of case-{n}?,Text {n}\n" for n in range(answers))
    (folder / "answers.csv").write_text("item_id,question,text\n" + "".join(rows))
    model = {"openai-compatible": "x", "litellm": "openai/x"}[kind]
    settings = {
        "base_url": server.base_url,
        "concurrency": 64,
        "timeout_s": 10,
        "max_retries": MAX_RETRIES,
    }
    told = ", ".join(f"{k}: {v!r}" for k, v in settings.items())
    path = folder / "bench.yaml"
    path.write_text(
        f"name: faults\nrubric: {RUBRIC_NAME}\ndata: answers.csv\ncontrols: false\n"
        f"judges:\n  - {{name: {JUDGE}, backend: '{kind}:{model}', parse_retries: {PARSE_RETRIES}, "
        f"settings: {{{told}}}}}\n"
    )
    return path


def judge_all(bench_file: Path, folder: RunFolder) -> None:
    """The whole runner, with short waits between tries."""
    room = "judgebench.models"
    with (
        patch(f"{room}.openai_compatible.OpenAICompatible", partial(OpenAICompatible, waits=QUICK)),
        patch(f"{room}.litellm_backend.LiteLLM", partial(LiteLLM, waits=QUICK)),
    ):
        run(load_bench(bench_file), folder)


@dataclass(frozen=True)
class Ending:
    """What became of one answer. `calls` were made by the judge, `heard` by the server, less what
    died with it; the rest of the calls met a dead server."""

    fault: Fault
    verdicts: Sequence[Verdict]
    calls: int
    heard: int

    @property
    def status(self) -> Status:
        """That of the latest verdict."""
        return self.verdicts[-1].status


def endings(server: FaultServer, folder: RunFolder) -> dict[int, Ending]:
    """By the number of the answer."""
    lines: dict[int, list[Verdict]] = defaultdict(list)
    for verdict in folder.verdicts(JUDGE):
        lines[int(verdict.item_id.removeprefix("case-"))].append(verdict)
    return {
        number: Ending(
            server.fault_of(number),
            verdicts,
            sum(v.usage.calls for v in verdicts),
            server.received[number] - server.cut_off[number],
        )
        for number, verdicts in lines.items()
    }


def complaints(server: FaultServer, found: dict[int, Ending], answers: int) -> list[str]:
    """Everything that is not as it was known beforehand; empty where all is well."""
    told = [f"answer {n} has no verdict" for n in range(answers) if n not in found]
    for number, ending in sorted(found.items()):
        told += [
            f"answer {number} ({ending.fault.name}): {c}" for c in _wrong(server, number, ending)
        ]
    return told


def _wrong(server: FaultServer, number: int, ending: Ending) -> Iterable[str]:
    lines = expected(ending.fault, MAX_RETRIES, PARSE_RETRIES)
    statuses = [verdict.status for verdict in ending.verdicts]
    if statuses != [line.status for line in lines]:
        yield f"ended as {statuses}, not as {[line.status for line in lines]}"
        return
    if [verdict.attempt for verdict in ending.verdicts] != list(range(len(lines))):
        yield f"has attempts {[verdict.attempt for verdict in ending.verdicts]}"
    if ending.status is Status.OK and ending.verdicts[-1].labels != labels_of(server.seed, number):
        yield f"has the labels {ending.verdicts[-1].labels}"
    calls = sum(line.calls for line in lines)
    if ending.calls < ending.heard or (ending.calls > ending.heard and not server.deaths):
        yield f"{ending.calls} calls are accounted for, {ending.heard} came"
    if lines[-1].exhausted:
        # Calls that met a dead server are among those that were allowed, unless it replied to
        # nobody: then all tries begin anew.
        if ending.calls < calls or (ending.calls > calls and not server.deaths):
            yield f"gave up after {ending.calls} calls, not {calls}"
    elif ending.heard != calls:
        yield f"took {ending.heard} calls, not {calls}"


def table(found: dict[int, Ending]) -> str:
    """Markdown: fault, count, outcome, calls for one answer, what to do."""
    by_fault: dict[Fault, list[Ending]] = defaultdict(list)
    for ending in found.values():
        by_fault[ending.fault].append(ending)
    lines = [
        "| fault | answers | outcome | calls an answer | what to do |",
        "|---|---|---|---|---|",
    ]
    for fault, group in sorted(by_fault.items(), key=lambda pair: pair[0].name):
        outcomes = Counter(str(ending.status) for ending in group)
        outcome = ", ".join(f"{status}" for status in sorted(outcomes))
        calls = Counter(ending.heard for ending in group).most_common(1)[0][0]
        lines.append(f"| {fault.name} | {len(group)} | {outcome} | {calls} | {fault.advice} |")
    return "\n".join(lines) + "\n"
