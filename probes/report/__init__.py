"""One page that tells a run, and its figures."""
