"""Table 2: online prediction of sequences."""
