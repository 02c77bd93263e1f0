"""A data set from learners: worlds that train and play, and the recorder that asks them."""
