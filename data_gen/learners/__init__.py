"""How agents learn: policies, PPO, and the two ways of playing what an update reads."""
