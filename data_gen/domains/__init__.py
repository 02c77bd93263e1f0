"""The domains by name: how each is made, and the config it is made from."""

from data_gen.domains import coordination, hill_climbing

DOMAINS = {"hill_climbing": hill_climbing.make, "coordination": coordination.make}
DOMAIN_CONFIGS = {"hill_climbing": hill_climbing.HillClimbing, "coordination": coordination.Coordination}
