"""Robots that stand in for real ones: simulated arms behind the vendors' own protocols."""
