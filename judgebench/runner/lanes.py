"""Several judges at once, each at its own pace.

Every remote judge has a lane, which is a thread. Engines inside this process would take the cores
and the memory from each other, so they share one lane and work one after another.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from judgebench.errors import JudgebenchError, SetupError
from judgebench.progress import Progress
from judgebench.runner.stop import Interrupted, Stop

_GLANCE_S = 0.2  # a thread that waits longer than this would not see a signal in time


def run_lanes(lanes: Mapping[str, Callable[[], None]], stop: Stop, progress: Progress) -> None:
    """Run every lane to its end.

    A lane that fails ends alone: its error is reported at once, the other lanes continue, and the
    error is raised when all have ended. Any other exception stops the other lanes softly.
    Raises Interrupted after a Ctrl-C, and at once after a second one.
    """
    errors: list[BaseException] = []
    running = set(lanes)
    threads = [
        threading.Thread(
            target=_lane, args=(name, work, errors, running, stop, progress), daemon=True
        )
        for name, work in lanes.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(_GLANCE_S)
    if stop.interrupted:
        raise Interrupted
    if errors:
        raise _as_one(errors)


def _lane(
    name: str,
    work: Callable[[], None],
    errors: list[BaseException],
    running: set[str],
    stop: Stop,
    progress: Progress,
) -> None:
    try:
        work()
    except JudgebenchError as error:
        errors.append(error)
        if running - {name}:  # else it is reported anyway, as the error that ends the run
            progress.say(f"{name} stopped: {error}")
    except BaseException as error:
        errors.insert(0, error)
        stop()
    finally:
        running.discard(name)


def _as_one(errors: Sequence[BaseException]) -> BaseException:
    """Every problem of files and settings at once; else the first error."""
    setup = [error for error in errors if isinstance(error, SetupError)]
    if len(setup) == len(errors) > 1:
        return SetupError([problem for error in setup for problem in error.problems])
    return errors[0]
