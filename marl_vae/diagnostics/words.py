"""The figures of use in words, for the terminal and for the report."""

from marl_vae.diagnostics.usage import Usage
from marl_vae.model import AUTOENCODER, FLAT

UNDEFINED = {
    FLAT: "undefined: a flat model has no local level, its policy is given z_omega itself",
    AUTOENCODER: "undefined: an autoencoder's latents are points, with no prior, no KL and no bound",
}


def key_figures(found: Usage) -> list[tuple[str, str, str]]:
    """Name, value and meaning of each figure."""
    figures = [
        ("active units of z_omega", _text(0, found.active_omega), "dimensions whose mean varies over test episodes"),
        ("active units of z_alpha", _text(0, found.active_alpha), "the same, within each agent"),
        ("KL of z_omega", _text(2, found.kl_omega), f"nats an episode; by dimension {_dims(found.kl_omega_dims)}"),
        (
            "KL of z_alpha",
            _text(2, found.kl_alpha),
            f"nats an episode, all agents together; by dimension, an agent, {_dims(found.kl_alpha_dims)}",
        ),
        (
            "information in z_omega",
            _text(2, found.mi_omega),
            f"nats that it says about which episode it is, at most {found.mi_limit:.2f} here",
        ),
        ("information in z_alpha", _text(2, found.mi_alpha), "the same, mean over agents"),
        ("gain of p(z_alpha | z_omega)", _text(2, found.prior_gain), "nats an episode saved over a constant prior"),
        (
            "bound at K = 1 · 10 · 100",
            _text(1, found.iwae_1, found.iwae_10, found.iwae_100),
            "importance-weighted bounds of log p(a|o), nats an episode; far apart: loose posteriors",
        ),
        ("action NLL", _text(3, found.nll), "nats an action on test episodes; lower is better"),
        ("action NLL, no latents", _text(3, found.nll_without_latents), "a policy that sees the observation alone"),
        (
            "left for latents to say",
            _text(2, found.left_over),
            "share of that policy's residual variance that is a constant offset over an episode",
        ),
        ("action NLL, shuffled", _text(3, found.nll_shuffled), "with the latents of another episode"),
        (
            "action NLL, own z_omega alone",
            _text(3, found.nll_alpha_prior),
            "z_alpha drawn from p(z_alpha | z_omega)",
        ),
        (
            "action NLL, another's z_omega",
            _text(3, found.nll_omega_shuffled),
            "the same at the z_omega of another episode",
        ),
        (
            "action NLL, z_omega from N(0, I)",
            _text(3, found.nll_omega_prior),
            "the same: the model's own episodes",
        ),
    ]
    shown = [(name, value or "–", meaning if value else UNDEFINED[found.form]) for name, value, meaning in figures]
    return [("verdict", found.verdict, found.decided_by), *shown]


def _text(digits: int, *values: int | float | None) -> str:
    """The values in one line; empty where the model's form has none."""
    return "" if None in values else " · ".join(f"{value:.{digits}f}" for value in values)


def _dims(values: list[float]) -> str:
    return " ".join(f"{value:.2f}" for value in sorted(values, reverse=True))


def sentences(found: Usage) -> list[str]:
    """The figures in words, a line each."""
    gain, loss = found.nll_without_latents - found.nll, found.nll_shuffled - found.nll_without_latents
    return [
        f"verdict: {found.verdict} ({found.decided_by})",
        *_of_the_form(found),
        f"action NLL {found.nll:.3f} nats; without latents {found.nll_without_latents:.3f} "
        f"({'better' if gain > 0 else 'WORSE'} with latents by {abs(gain):.3f})",
        f"with the latents of another episode {found.nll_shuffled:.3f} "
        f"({'worse' if loss >= 0 else 'BETTER'} than without latents by {abs(loss):.3f})",
    ]


def _of_the_form(found: Usage) -> list[str]:
    """What latents that are random have, and what is undefined for this form of model."""
    if found.form == AUTOENCODER:
        return [
            f"active units: {found.active_omega} of z_omega and {found.active_alpha} of z_alpha, whose scale is free",
            f"KL, information and bounds are {UNDEFINED[found.form]}",
        ]
    of_agents = (
        f"z_alpha: figures are {UNDEFINED[found.form]}"
        if found.form == FLAT
        else f"z_alpha: {found.active_alpha} active units, KL {found.kl_alpha:.2f} nats an episode over all agents"
    )
    return [
        f"z_omega: {found.active_omega} active units, KL {found.kl_omega:.2f} nats an episode, information "
        f"{found.mi_omega:.2f} of at most {found.mi_limit:.2f}",
        of_agents,
        f"bound {found.iwae_1:.1f} at K = 1, {found.iwae_10:.1f} at 10, {found.iwae_100:.1f} at 100 nats an episode",
    ]
