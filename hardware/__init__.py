"""Drivers of real robots, and what keeps them safe."""
