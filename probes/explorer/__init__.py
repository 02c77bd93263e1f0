"""One page in which a run's episodes are brushed, filtered and played: self-contained, offline."""
