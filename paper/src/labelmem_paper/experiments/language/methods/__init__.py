"""The methods on running text, one file each."""
