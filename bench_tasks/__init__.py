"""Evaluate multimodal planners and action policies on bimanual tasks and memory probes."""

__version__ = "0.1.0"
