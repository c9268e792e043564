"""The methods of the image tables, one file each, named after the method."""
