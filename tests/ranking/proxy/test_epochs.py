"""Which epoch is kept, and when a training is over."""

from __future__ import annotations

import pytest

from judgebench.ranking.proxy.config import TrainingConfig
from judgebench.ranking.proxy.training import Epoch, Epochs


def progress(*of_development: tuple[float, float]) -> Epochs:
    """Of (loss, score) per epoch."""
    return Epochs([Epoch(0.5, loss, score) for loss, score in of_development])


@pytest.mark.parametrize(
    ("epochs", "best"),
    [
        ([(0.9, 0.5)], 0),
        ([(0.9, 0.5), (1.1, 0.6)], 1),  # decides better, though less sure of it
        ([(0.9, 0.6), (0.8, 0.6)], 1),  # of equal scores the lower loss
        ([(0.9, 0.6), (0.9, 0.6)], 0),  # of equal ones the earliest
    ],
)
def test_the_best_epoch_decides_best(epochs: list[tuple[float, float]], best: int) -> None:
    assert progress(*epochs).best == best


def test_training_ends_after_epochs_that_are_no_better() -> None:
    training = TrainingConfig(epochs=9, patience=2)
    assert not progress().over(training)
    assert not progress((0.9, 0.6), (0.8, 0.5)).over(training)
    assert progress((0.9, 0.6), (0.8, 0.5), (0.7, 0.5)).over(training)
    assert progress(*[(1.0, k / 10) for k in range(9)]).over(training)
