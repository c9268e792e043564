"""``labelmem demo``: two small tasks on data that comes with the dependencies."""
