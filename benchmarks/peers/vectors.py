"""How near sentence vectors are to others of the same sentences."""

import numpy as np


def nearest(rows):
    """Of each row [d], of length 1, the other row with the largest cosine."""
    similar = rows @ rows.T
    np.fill_diagonal(similar, -2)
    return similar.argmax(1)


def nearness(rows, exact):
    """Cosines of rows [n, d] to `exact`, all of length 1, and the share of rows whose nearest other one is the same."""
    cosines = (rows * exact).sum(1)
    return {"mean_cosine": float(cosines.mean()), "least_cosine": float(cosines.min()),
            "nearest_kept": float((nearest(rows) == nearest(exact)).mean())}
