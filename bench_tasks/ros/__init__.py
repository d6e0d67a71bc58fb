"""Nodes, and what they share; the only room here that knows ROS, besides the launch files."""
