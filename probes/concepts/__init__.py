"""Concepts of the joint latent and how complete they are."""
