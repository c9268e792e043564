"""An index over the cells of a large memory, so that a read looks at a part of them."""
