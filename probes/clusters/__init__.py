"""Clusters of both levels' latents: how stable they are, what is in them, and whether they tell trajectories apart."""
