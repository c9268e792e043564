"""The limited-memory study: rare labels and a memory too small for all."""
