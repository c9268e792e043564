"""The methods around frozen heads, one file each, named after the method."""
