import io

import pytest
from rich.console import Console

from judgebench.progress import ProgressDisplay
from judgebench.records import Status, Usage, Verdict


def verdict(
    status: Status = Status.OK, cost: float | None = None, attempt: int = 0, item: str = "i"
) -> Verdict:
    return Verdict(
        item, "h", "tiny", "s", status, usage=Usage(1, 10, 5), cost=cost, attempt=attempt
    )  # fmt: skip


def shown(terminal: bool) -> str:
    """What is drawn for a judge with four answers, one of them judged before."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=160, color_system=None)
    with ProgressDisplay(console) as display:
        display.start("tiny", total=4, done=1)
        display.advance("tiny", verdict(cost=0.5))
        display.advance("tiny", verdict(Status.UNPARSED, cost=0.25, item="b"))
        display.advance("tiny", verdict(Status.FAILED))
        display.advance("tiny", verdict(cost=0.25, attempt=1, item="b"))
        display.advance("tiny", verdict(Status.UNPARSED, attempt=1, item="of an earlier run"))
        display.say("[bold]as it is[/bold]")
    return out.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_calls_failures_and_cost_are_shown(terminal: bool) -> None:
    text = shown(terminal)
    assert "tiny: 1 of 4 done before" in text
    assert "5 calls, 1 unparsed, 1 failed, $1.0000" in text  # not the one that was read at last
    assert "[bold]as it is[/bold]" in text


def test_a_terminal_sees_a_bar_and_the_time_left() -> None:
    text = shown(terminal=True)
    assert "4/4" in text, "asking again must not move the bar"
    assert "left" in text
    assert "4/4" not in shown(terminal=False)


def test_without_a_terminal_a_line_is_printed_every_few_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = iter(range(1000))
    monkeypatch.setattr("judgebench.progress.time.monotonic", lambda: float(next(seconds)))
    out = io.StringIO()
    with ProgressDisplay(Console(file=out, width=80)) as display:
        display.start("tiny", total=400, done=0)
        for _ in range(400):
            display.advance("tiny", verdict())
    told = [line for line in out.getvalue().splitlines() if " after " in line]
    assert told[:3] == [f"tiny: {n} of 400 after {n} s" for n in (5, 10, 15)]
    assert 20 < len(told) < 40  # fewer as time goes by
