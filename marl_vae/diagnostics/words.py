"""The figures of use in words, for the terminal and for the report."""

from marl_vae.diagnostics.usage import Usage


def key_figures(found: Usage) -> list[tuple[str, str, str]]:
    """Name, value and meaning of each figure."""
    return [
        ("verdict", found.verdict, found.decided_by),
        ("active units of z_omega", str(found.active_omega), "dimensions whose mean varies over test episodes"),
        ("active units of z_alpha", str(found.active_alpha), "the same, within each agent"),
        ("KL of z_omega", f"{found.kl_omega:.2f}", f"nats an episode; by dimension {_dims(found.kl_omega_dims)}"),
        (
            "KL of z_alpha",
            f"{found.kl_alpha:.2f}",
            f"nats an episode, all agents together; by dimension, an agent, {_dims(found.kl_alpha_dims)}",
        ),
        (
            "information in z_omega",
            f"{found.mi_omega:.2f}",
            f"nats that it says about which episode it is, at most {found.mi_limit:.2f} here",
        ),
        ("information in z_alpha", f"{found.mi_alpha:.2f}", "the same, mean over agents"),
        ("gain of p(z_alpha | z_omega)", f"{found.prior_gain:.2f}", "nats an episode saved over a constant prior"),
        (
            "bound at K = 1 · 10 · 100",
            f"{found.iwae_1:.1f} · {found.iwae_10:.1f} · {found.iwae_100:.1f}",
            "importance-weighted bounds of log p(a|o), nats an episode; far apart: loose posteriors",
        ),
        ("action NLL", f"{found.nll:.3f}", "nats an action on test episodes; lower is better"),
        ("action NLL, no latents", f"{found.nll_without_latents:.3f}", "a policy that sees the observation alone"),
        (
            "left for latents to say",
            f"{found.left_over:.2f}",
            "share of that policy's residual variance that is a constant offset over an episode",
        ),
        ("action NLL, shuffled", f"{found.nll_shuffled:.3f}", "with the latents of another episode"),
        ("action NLL, own z_omega alone", f"{found.nll_alpha_prior:.3f}", "z_alpha drawn from p(z_alpha | z_omega)"),
        (
            "action NLL, another's z_omega",
            f"{found.nll_omega_shuffled:.3f}",
            "the same at the z_omega of another episode",
        ),
        ("action NLL, z_omega from N(0, I)", f"{found.nll_omega_prior:.3f}", "the same: the model's own episodes"),
    ]


def _dims(values: list[float]) -> str:
    return " ".join(f"{value:.2f}" for value in sorted(values, reverse=True))


def sentences(found: Usage) -> list[str]:
    """The figures in words, a line each."""
    gain, loss = found.nll_without_latents - found.nll, found.nll_shuffled - found.nll_without_latents
    return [
        f"verdict: {found.verdict} ({found.decided_by})",
        f"z_omega: {found.active_omega} active units, KL {found.kl_omega:.2f} nats an episode, information "
        f"{found.mi_omega:.2f} of at most {found.mi_limit:.2f}",
        f"z_alpha: {found.active_alpha} active units, KL {found.kl_alpha:.2f} nats an episode over all agents",
        f"bound {found.iwae_1:.1f} at K = 1, {found.iwae_10:.1f} at 10, {found.iwae_100:.1f} at 100 nats an episode",
        f"action NLL {found.nll:.3f} nats; without latents {found.nll_without_latents:.3f} "
        f"({'better' if gain > 0 else 'WORSE'} with latents by {abs(gain):.3f})",
        f"with the latents of another episode {found.nll_shuffled:.3f} "
        f"({'worse' if loss >= 0 else 'BETTER'} than without latents by {abs(loss):.3f})",
    ]
