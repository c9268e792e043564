"""Methods that the paper compares and few try first; the library finds them by entry point."""
