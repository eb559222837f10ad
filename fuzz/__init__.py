"""Fuzzing: what must be true of any bytes."""
