"""A pair of Franka FR3 arms with Franka Hands."""
