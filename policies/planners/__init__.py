"""Planners: from an instruction and observations to skill calls, and answers to questions."""
