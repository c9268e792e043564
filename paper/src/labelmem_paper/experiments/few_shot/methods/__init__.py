"""The methods of the few-shot tables, one file each, named after the method."""
