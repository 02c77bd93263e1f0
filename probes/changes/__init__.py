"""When in training the distribution of a latent changed."""
