"""Memory probes: what is shown and said to the robot, and what it is asked of it afterwards."""
