"""The methods of the tables, one file each, named after the method."""
