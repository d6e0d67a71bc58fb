"""Unitree G1: its driver process, and the node `world` made of it."""
