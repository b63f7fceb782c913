"""Fleets that are too large for their pods, for the benchmark of consolidation."""
