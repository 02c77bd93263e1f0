"""A hierarchical VAE over multi-agent trajectories."""

from marl_vae.embed import TrainedModel, load, load_untrained

__all__ = ["TrainedModel", "load", "load_untrained"]
