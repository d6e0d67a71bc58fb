"""A small ros2 for machines without a ROS distribution: launch, run, bag and topic."""
