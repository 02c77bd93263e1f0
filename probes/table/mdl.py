"""Online codelength of a label given features: how many bits, not only how right (Voita and Titov 2020, section 2.2).

Letters: B rows, F features, K classes.
"""

import numpy as np
from jaxtyping import Float, Int

from probes.probe import Probe, predict

FRACTIONS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0)
LEAST = 1e-9  # a probability; the MLP's may be exactly 0


def code_blocks(
    values: Int[np.ndarray, " B"],
    groups: Int[np.ndarray, " B"],
    train: Int[np.ndarray, " n"],
    rng: np.random.Generator,
) -> list[Int[np.ndarray, " _"]]:
    """Training rows in the blocks they are sent in: whole groups in random order, up to each of FRACTIONS of them.

    The first block goes on until every class was seen: a class that is new later has probability 0 and no code.
    """
    order = rng.permutation(np.unique(groups[train]))
    place = np.argsort(order)[np.searchsorted(np.sort(order), groups[train])]
    ends = np.unique(np.ceil(len(order) * np.array(FRACTIONS)).astype(int))
    n_classes = len(np.unique(values[train]))
    ends = [end for end in ends if len(np.unique(values[train[place < end]])) == n_classes]
    starts = [0, *ends[:-1]]
    return [train[(start <= place) & (place < end)] for start, end in zip(starts, ends, strict=True)]


def uniform_bits(blocks: list[Int[np.ndarray, " _"]], n_classes: int) -> float:
    """The codelength without features: log2 K for each row."""
    return sum(map(len, blocks)) * float(np.log2(n_classes))


def code_bits(
    probe: str,
    x: Float[np.ndarray, "B F"],
    values: Int[np.ndarray, " B"],
    blocks: list[Int[np.ndarray, " _"]],
    n_classes: int,
    config: Probe,
) -> float:
    """Bits to send the training labels to someone who has the features.

    L = |block 1| log2 K - sum_j sum_(i in block j) log2 p(y_i | x_i; fitted on blocks before j). The sender names the
    strength that makes L least, which costs log2 of the number of strengths. Fits are not balanced: a code pays for
    each row alike.
    """
    strengths = config.strengths_of(probe)
    lengths = [_bits_at(strength, probe, x, values, blocks, config) for strength in strengths]
    return uniform_bits(blocks[:1], n_classes) + min(lengths) + float(np.log2(len(strengths)))


def _bits_at(
    strength: float, probe: str, x: np.ndarray, values: np.ndarray, blocks: list[np.ndarray], config: Probe
) -> float:
    bits = 0.0
    for j in range(1, len(blocks)):
        known, sent = np.concatenate(blocks[:j]), blocks[j]
        guess = predict(probe, "class", x[known], values[known], x[sent], strength, config, balanced=False)
        column = np.searchsorted(guess.classes, values[sent])
        bits -= float(np.log2(np.maximum(guess.probabilities[np.arange(len(sent)), column], LEAST)).sum())
    return bits
