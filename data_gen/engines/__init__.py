"""Bodies whose joints belong to different agents, and the physics engines that move them."""
