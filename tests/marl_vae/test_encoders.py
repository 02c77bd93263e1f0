"""Every encoder step by step in NumPy, and what all of them promise about padding and order."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from marl_vae.encoders import ENCODERS, Attention, BiGRU, BiLSTM, DilatedConvolution
from marl_vae.encoders.encoder import Encoder
from marl_vae.encoders.recurrent import Recurrent

R, S, D, H = 5, 7, 3, 4


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def silu(x: np.ndarray) -> np.ndarray:
    return x * sigmoid(x)


def lstm_states(weights: list[np.ndarray], x: np.ndarray) -> np.ndarray:
    """Hidden states of one row without padding, one step after another."""
    inputs, recurrent, bias = weights
    hidden, memory, states = np.zeros(H), np.zeros(H), []
    for step in x:
        i, f, g, o = np.split(step @ inputs + hidden @ recurrent + bias, 4)
        memory = sigmoid(f) * memory + sigmoid(i) * np.tanh(g)
        hidden = sigmoid(o) * np.tanh(memory)
        states.append(hidden)
    return np.array(states)


def gru_states(weights: list[np.ndarray], x: np.ndarray) -> np.ndarray:
    inputs, recurrent, bias = (np.split(part, 3, axis=-1) for part in weights)
    hidden, states = np.zeros(H), []
    for step in x:
        reset, update = (sigmoid(step @ inputs[k] + bias[k] + hidden @ recurrent[k]) for k in (0, 1))
        new = np.tanh(step @ inputs[2] + bias[2] + reset * (hidden @ recurrent[2]))
        hidden = update * hidden + (1 - update) * new
        states.append(hidden)
    return np.array(states)


STATES = {BiLSTM: lstm_states, BiGRU: gru_states}


def expected(cell: Recurrent, x: np.ndarray, mask: np.ndarray) -> np.ndarray:
    rows = []
    for values, real in zip(x, mask, strict=True):
        both = []
        for direction, steps in enumerate((values[real], values[real][::-1])):
            weights = [np.asarray(p[...], np.float64)[direction] for p in (cell.inputs, cell.recurrent, cell.bias)]
            both.append(STATES[type(cell)](weights, steps))
        forward, backward = both
        rows.append(np.concatenate([forward[-1], backward[-1], forward.mean(0), backward.mean(0)]))
    return np.array(rows)


def make(kind: type[Encoder], seed: int, width: int = D) -> Encoder:
    """An encoder all of whose parameters matter: those that start as zeros or ones are moved."""
    encoder = kind(width, H, rngs=nnx.Rngs(seed))
    graph, params = nnx.split(encoder)
    leaves, tree = jax.tree.flatten(params)
    keys = jax.random.split(jax.random.key(seed), len(leaves))
    moved = [leaf + 0.3 * jax.random.normal(key, leaf.shape) for leaf, key in zip(leaves, keys, strict=True)]
    return nnx.merge(graph, jax.tree.unflatten(tree, moved))


def ragged(seed: int, rows: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, S, width)).astype(np.float32), rng.random((rows, S)) < 0.7


@pytest.mark.parametrize("kind", STATES)
def test_two_cells_in_one_scan_equal_numpy_step_by_step(kind: type[Recurrent]) -> None:
    cells, (x, mask), (y, other) = [make(kind, 0), make(kind, 1, 6)], ragged(0, R, D), ragged(1, 2 * R, 6)
    mask[:, 3], other[:, 2] = True, True
    found = kind.together(cells, [jnp.asarray(x), jnp.asarray(y)], [jnp.asarray(mask), jnp.asarray(other)])
    np.testing.assert_allclose(found[0], expected(cells[0], x, mask), atol=1e-5)
    np.testing.assert_allclose(found[1], expected(cells[1], y, other), atol=1e-5)


def test_the_backward_cell_does_not_read_forward_in_time() -> None:
    """The state that the backward cell reaches at the first step hangs on the last one, and vice versa."""
    cell, (x, _) = make(BiLSTM, 0), ragged(0, 1, D)
    mask = jnp.ones((1, S), bool)
    grad = jax.jacobian(lambda v: cell(v, mask)[0])(jnp.asarray(x))[:, 0]
    reach = np.abs(np.asarray(grad)).sum(-1)
    assert reach[:H, 0].min() > 0 and reach[H : 2 * H, -1].min() > 0


def linear(layer, x: np.ndarray) -> np.ndarray:
    return x @ np.asarray(layer.kernel[...], np.float64) + np.asarray(layer.bias[...], np.float64)


def test_convolutions_by_hand() -> None:
    """One row at a time: three taps at a distance, each step alone, with 0 for what is absent or beyond the ends."""
    net, (x, mask) = make(DilatedConvolution, 0), ragged(2, R, D)
    mask[:, 0] = True
    found = net(jnp.asarray(x), jnp.asarray(mask))
    for row in range(R):
        now = {t: linear(net.first, x[row, t]) for t in np.flatnonzero(mask[row])}
        for block, apart in zip(net.blocks, (1, 2, 4, 8), strict=True):
            kernel, bias = (np.asarray(p[...], np.float64) for p in (block.conv.kernel, block.conv.bias))
            after = {}
            for t, value in now.items():
                summed = sum(now.get(t + (k - 1) * apart, np.zeros(H)) @ kernel[k] for k in range(3)) + bias
                after[t] = value + linear(block.out, silu(summed))
            now = after
        values = np.array(list(now.values()))
        np.testing.assert_allclose(found[row], np.concatenate([values.mean(0), values.max(0)]), atol=1e-4)


def normed(layer, x: np.ndarray) -> np.ndarray:
    scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
    return scaled * np.asarray(layer.scale[...], np.float64) + np.asarray(layer.bias[...], np.float64)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max())
    return e / e.sum()


def test_attention_by_hand() -> None:
    """Only the real steps of a row exist: each head asks every step about every step."""
    net, (x, mask) = make(Attention, 0), ragged(3, R, D)
    mask[:, 0] = True
    found = net(jnp.asarray(x), jnp.asarray(mask))
    for row in range(R):
        own = linear(net.first, x[row][mask[row]].astype(np.float64))
        time = np.arange(len(own))[:, None] * np.array([1.0, 1e-4])
        own = own + np.concatenate([np.sin(time), np.cos(time)], axis=1)
        for block in net.blocks:
            q, k, v = np.split(linear(block.qkv, normed(block.norms[0], own)).reshape(len(own), 4, -1), 3, axis=-1)
            heads = [np.array([softmax(k[:, h] @ q[t, h] / 1.0) @ v[:, h] for t in range(len(own))]) for h in range(4)]
            own = own + linear(block.joined, np.concatenate(heads, axis=1))
            own = own + linear(block.narrow, silu(linear(block.wide, normed(block.norms[1], own))))
        own = normed(net.norm, own)
        weight = softmax((own @ np.asarray(net.query[...], np.float64))[:, 0])
        np.testing.assert_allclose(found[row], np.concatenate([weight @ own, own.mean(0)]), atol=2e-4)


@pytest.mark.parametrize("name", ENCODERS)
def test_padding_changes_nothing_and_a_row_without_steps_gives_zeros(name: str) -> None:
    net, (x, mask) = make(ENCODERS[name], 0), ragged(0, R, D)
    mask[:, 3], mask[-1] = True, False
    before = net(jnp.asarray(x), jnp.asarray(mask))
    assert before.shape == (R, net.width * H)
    for pad in ((0, 4), (4, 0)):
        longer = np.pad(x, [(0, 0), pad, (0, 0)], constant_values=9.0)
        longer[~np.pad(mask, [(0, 0), pad])] = 7.0
        after = net(jnp.asarray(longer), jnp.asarray(np.pad(mask, [(0, 0), pad])))
        np.testing.assert_allclose(before, after, atol=1e-5)
    np.testing.assert_array_equal(before[-1], 0.0)


@pytest.mark.parametrize("name", ENCODERS)
def test_order_in_time_matters_and_gradients_are_finite(name: str) -> None:
    net, (x, mask) = make(ENCODERS[name], 0), ragged(0, R, D)
    mask[:, 2:4], mask[-1] = True, False
    turned = x.copy()
    turned[:, [2, 3]] = x[:, [3, 2]]
    values = [np.asarray(net(jnp.asarray(v), jnp.asarray(mask))) for v in (x, turned)]
    assert np.abs(values[0] - values[1])[:-1].max(1).min() > 1e-4
    graph, params = nnx.split(net)
    loss = lambda params, v: (nnx.merge(graph, params)(v, jnp.asarray(mask)) ** 2).sum()  # noqa: E731
    of_params, of_x = jax.grad(loss, argnums=(0, 1))(params, jnp.asarray(x))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(of_params))
    assert np.isfinite(of_x).all() and (np.abs(np.asarray(of_x)).sum(-1) > 0).tolist() == mask.tolist()


def test_an_encoder_is_one_of_its_kinds() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Encoder(1, 1, rngs=nnx.Rngs(0))
