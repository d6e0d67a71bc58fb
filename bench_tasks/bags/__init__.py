"""Recordings and datasets: written, read, turned into each other."""
