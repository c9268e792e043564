"""Table 3: a network of pictures meets characters that it was not taught."""
