"""Records as tables, plots, a page and blocks of a README; nothing here computes a result."""
