from __future__ import annotations

import subprocess
import sys
import warnings

from judgebench.align import Alignment
from judgebench.report.plots import draw_all

SIGNATURES = {"png": b"\x89PNG", "pdf": b"%PDF"}


def names(alignment: Alignment) -> dict[str, bytes]:
    return dict(draw_all(alignment))


def test_every_figure_comes_in_every_format(tiny: Alignment) -> None:
    found = names(tiny)
    stems = {name.rsplit(".", 1)[0] for name in found}
    assert stems == {
        "heat_map_accuracy", "judges_and_controls_accuracy", "heat_map_weighted_kappa",
        "judges_and_controls_weighted_kappa", "label_distribution", "confusion_1_m",
    }  # fmt: skip
    assert set(found) == {f"{stem}.{kind}" for stem in stems for kind in SIGNATURES}
    for name, content in found.items():
        assert content.startswith(SIGNATURES[name.rsplit(".", 1)[1]])


def test_hostile_names_are_drawn_and_file_names_are_plain(hostile: Alignment) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = names(hostile)
    for name in found:
        assert not set(name) & set("/\\<>|'\" $&=")


def test_the_same_alignment_gives_the_same_files(tiny: Alignment) -> None:
    assert names(tiny) == names(tiny)


def test_pyplot_is_left_alone() -> None:
    """No figure is registered anywhere, and the user's backend stays what it was."""
    code = "import sys, judgebench.report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_no_figure_stays_open(tiny: Alignment) -> None:
    from matplotlib import pyplot

    names(tiny)
    assert pyplot.get_fignums() == []
