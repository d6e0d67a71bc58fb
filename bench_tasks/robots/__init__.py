"""The bodies that tasks are done with: sizes, limits, kinematics, what sets them apart."""
