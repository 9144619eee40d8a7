"""Which epoch is kept, and when a training is over."""

from __future__ import annotations

import pytest

from judgebench.ranking.proxy.task import TrainingConfig
from judgebench.ranking.proxy.training import Epoch, best_epoch, is_over


def epochs(*of_development: tuple[float, float]) -> list[Epoch]:
    """Of (loss, score) per epoch."""
    return [
        {"train_loss": 0.5, "development_loss": loss, "development_score": score}
        for loss, score in of_development
    ]


@pytest.mark.parametrize(
    ("done", "best"),
    [
        ([(0.9, 0.5)], 0),
        ([(0.9, 0.5), (1.1, 0.6)], 1),  # decides better, though less sure of it
        ([(0.9, 0.6), (0.8, 0.6)], 1),  # of equal scores the lower loss
        ([(0.9, 0.6), (0.9, 0.6)], 0),  # of equal ones the earliest
    ],
)
def test_the_best_epoch_decides_best(done: list[tuple[float, float]], best: int) -> None:
    assert best_epoch(epochs(*done)) == best


def test_training_ends_after_epochs_that_are_no_better() -> None:
    training = TrainingConfig(epochs=9, patience=2)
    assert not is_over([], training)
    assert not is_over(epochs((0.9, 0.6), (0.8, 0.5)), training)
    assert is_over(epochs((0.9, 0.6), (0.8, 0.5), (0.7, 0.5)), training)
    assert is_over(epochs(*[(1.0, k / 10) for k in range(9)]), training)
