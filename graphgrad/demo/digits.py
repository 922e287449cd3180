"""The data: the handwritten digits that come with scikit-learn, 8 by 8 pixels each."""

from __future__ import annotations

from typing import Any, NamedTuple

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

Array = Any


class Digits(NamedTuple):
    """Pixels of shape (digit, 64), standardised over the training digits; labels (digit,)."""

    train_pixels: Array
    train_labels: Array
    test_pixels: Array
    test_labels: Array


def load(seed: int) -> Digits:
    """80 % for training and 20 % for testing, each class in proportion."""
    pixels, labels = load_digits(return_X_y=True)
    train, test, train_labels, test_labels = train_test_split(
        pixels, labels.astype("int64"), test_size=0.2, stratify=labels, random_state=seed
    )
    mean, spread = train.mean(), train.std()
    return Digits((train - mean) / spread, train_labels, (test - mean) / spread, test_labels)
