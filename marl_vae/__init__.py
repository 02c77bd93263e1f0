"""A hierarchical VAE over multi-agent trajectories."""

from marl_vae.embed import TrainedModel, load

__all__ = ["TrainedModel", "load"]
