import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from marl_vae.modules import BiLSTM, summarise

R, S, D, H = 5, 7, 3, 4


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def lstm_states(cell: BiLSTM, direction: int, x: np.ndarray) -> np.ndarray:
    """Hidden states of one row without padding, one step after another."""
    inputs, recurrent, bias = (
        np.asarray(p[...], np.float64)[direction] for p in (cell.inputs, cell.recurrent, cell.bias)
    )
    hidden, memory, states = np.zeros(H), np.zeros(H), []
    for step in x:
        i, f, g, o = np.split(step @ inputs + hidden @ recurrent + bias, 4)
        memory = sigmoid(f) * memory + sigmoid(i) * np.tanh(g)
        hidden = sigmoid(o) * np.tanh(memory)
        states.append(hidden)
    return np.array(states)


def expected(cell: BiLSTM, x: np.ndarray, mask: np.ndarray) -> np.ndarray:
    rows = []
    for values, real in zip(x, mask, strict=True):
        forward, backward = lstm_states(cell, 0, values[real]), lstm_states(cell, 1, values[real][::-1])
        rows.append(np.concatenate([forward[-1], backward[-1], forward.mean(0), backward.mean(0)]))
    return np.array(rows)


def make(seed: int, width: int = D) -> BiLSTM:
    cell = BiLSTM(width, H, rngs=nnx.Rngs(seed))
    cell.bias[...] += jax.random.normal(jax.random.key(seed), cell.bias[...].shape) * 0.3
    return cell


def ragged(seed: int, rows: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, S, width)).astype(np.float32), rng.random((rows, S)) < 0.7


def test_two_cells_in_one_scan_equal_numpy_step_by_step() -> None:
    cells, (x, mask), (y, other) = [make(0), make(1, 6)], ragged(0, R, D), ragged(1, 2 * R, 6)
    mask[:, 3], other[:, 2] = True, True
    found = summarise(cells, [jnp.asarray(x), jnp.asarray(y)], [jnp.asarray(mask), jnp.asarray(other)])
    np.testing.assert_allclose(found[0], expected(cells[0], x, mask), atol=1e-5)
    np.testing.assert_allclose(found[1], expected(cells[1], y, other), atol=1e-5)


def test_a_row_with_no_real_step_gives_zeros() -> None:
    x, _ = ragged(0, R, D)
    found = summarise([make(0)], [jnp.asarray(x)], [jnp.zeros((R, S), bool)])[0]
    np.testing.assert_array_equal(found, 0.0)


def test_backward_weights_do_not_read_forward_in_time() -> None:
    """The state that the backward cell reaches at the first step hangs on the last one, and vice versa."""
    cell, (x, _) = make(0), ragged(0, 1, D)
    mask = jnp.ones((1, S), bool)
    grad = jax.jacobian(lambda v: summarise([cell], [v], [mask])[0][0])(jnp.asarray(x))[:, 0]
    reach = np.abs(np.asarray(grad)).sum(-1)
    assert reach[:H, 0].min() > 0 and reach[H : 2 * H, -1].min() > 0
