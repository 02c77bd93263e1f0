"""A hierarchical VAE over multi-agent trajectories."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from marl_vae.embed import TrainedModel, load, load_untrained

__all__ = ["TrainedModel", "load", "load_untrained"]


def __getattr__(name: str) -> Any:
    """The public names, when they are asked for: the libraries behind them take a second to import."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from marl_vae import embed

    return getattr(embed, name)
