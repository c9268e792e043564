"""One suite that judges every way to take a step of the labeled memory network."""
