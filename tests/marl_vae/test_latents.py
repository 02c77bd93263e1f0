import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats

from marl_vae.latents import Gaussian, draw, kl, log_density, standard_normal

Q = Gaussian(mean=jnp.array([0.3, -1.2, 2.0]), log_std=jnp.array([-0.5, 0.4, 0.1]))
P = Gaussian(mean=jnp.array([-0.4, 0.7, 1.5]), log_std=jnp.array([0.2, -0.3, 0.6]))


def by_quadrature(q: Gaussian, p: Gaussian) -> np.ndarray:
    """∫ q log(q/p) on a fine grid, with SciPy's densities."""
    grid = np.linspace(-15, 15, 200_001)
    of_q, of_p = ([scipy.stats.norm(m, np.exp(s)) for m, s in zip(*g, strict=True)] for g in (q, p))
    return np.array(
        [np.trapezoid(a.pdf(grid) * (a.logpdf(grid) - b.logpdf(grid)), grid) for a, b in zip(of_q, of_p, strict=True)]
    )


def test_kl_equals_the_integral() -> None:
    np.testing.assert_allclose(kl(Q, P), by_quadrature(Q, P), rtol=1e-4)
    np.testing.assert_allclose(kl(Q, standard_normal(Q)), by_quadrature(Q, standard_normal(Q)), rtol=1e-4)


def test_kl_equals_a_monte_carlo_estimate() -> None:
    noise = jax.random.normal(jax.random.key(0), (200_000, 3))
    wide = jax.tree.map(lambda x: jnp.broadcast_to(x[None], noise.shape), (Q, P))
    z = draw(wide[0], noise)
    sampled = log_density(wide[0], z) - log_density(wide[1], z)
    error = np.asarray(sampled.std(0)) / np.sqrt(len(noise))
    assert np.all(np.abs(np.asarray(sampled.mean(0) - kl(Q, P))) < 4 * error)


def test_kl_of_a_gaussian_with_itself_is_zero() -> None:
    np.testing.assert_allclose(kl(Q, Q), 0.0, atol=1e-7)


def test_density_equals_scipy() -> None:
    value = np.array([0.1, -2.0, 3.3])
    want = scipy.stats.norm(np.asarray(Q.mean), np.exp(np.asarray(Q.log_std))).logpdf(value)
    np.testing.assert_allclose(log_density(Q, jnp.asarray(value)), want, rtol=1e-5)
