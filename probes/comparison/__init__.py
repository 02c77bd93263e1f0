"""Several runs side by side, probed on the same test groups."""
