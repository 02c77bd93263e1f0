"""Which clusters occur together, and how tight a region of one agent's latent is in another's."""
