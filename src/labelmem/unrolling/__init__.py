"""Training a combiner on recorded streams, many steps at once."""
