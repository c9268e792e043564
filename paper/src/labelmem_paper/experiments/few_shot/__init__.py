"""Table 4: thousands of characters, each shown a few times."""
