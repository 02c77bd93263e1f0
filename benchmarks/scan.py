"""What one scan for both levels gains: `python benchmarks/scan.py`.

Times the gradient of the recurrent encoders at the default size, with both LSTMs in one scan and with one scan each,
taking turns so that a busy machine slows both alike.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from marl_vae.encoders import BiLSTM

BATCH, STEPS, AGENTS, FEATURES, HIDDEN, ROUNDS = 64, 25, 3, 8, 48, 30


def together(cells, inputs, masks):
    """One scan."""
    return BiLSTM.together(cells, inputs, masks)


def apart(cells, inputs, masks):
    """A scan for each level."""
    return [BiLSTM.together([cell], [x], [mask])[0] for cell, x, mask in zip(cells, inputs, masks, strict=True)]


def gradient(run):
    """A compiled gradient of the sum of all features."""
    rngs = nnx.Rngs(0)
    cells = [BiLSTM(AGENTS * FEATURES, HIDDEN, rngs=rngs), BiLSTM(FEATURES, HIDDEN, rngs=rngs)]
    graph, params = nnx.split(nnx.List(cells))
    keys = jax.random.split(jax.random.key(0), 2)
    inputs = [
        jax.random.normal(keys[0], (BATCH, STEPS, AGENTS * FEATURES)),
        jax.random.normal(keys[1], (BATCH * AGENTS, STEPS, FEATURES)),
    ]
    masks = [jnp.ones(x.shape[:2], bool) for x in inputs]
    loss = jax.jit(jax.grad(lambda p: sum(f.sum() for f in run(list(nnx.merge(graph, p)), inputs, masks))))
    return lambda: jax.block_until_ready(loss(params))


def main() -> None:
    """Print the median ratio of the two, taken in turns."""
    ways = {"one scan": gradient(together), "two scans": gradient(apart)}
    times = {name: [] for name in ways}
    for number in range(ROUNDS):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            if number:  # the first call compiles
                times[name].append(time.perf_counter() - start)
    ratio = np.median(np.array(times["two scans"]) / np.array(times["one scan"]))
    print("; ".join(f"{name} {1e3 * np.median(found):.1f} ms" for name, found in times.items()))
    print(f"two scans take {ratio:.2f} times as long as one")


if __name__ == "__main__":
    main()
