"""The memories of the limited-memory study, one file each, named after the method."""
