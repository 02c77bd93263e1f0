"""What follows when the joint latent is changed in the simulator."""
