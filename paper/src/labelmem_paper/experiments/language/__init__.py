"""Words of running text one after another (Table 5 of the paper)."""
