"""The paper's tables: methods × data sets × seeds through one runner."""
