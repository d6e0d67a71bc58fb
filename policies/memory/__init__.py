"""What the robot remembers: memory back ends, and the readers that answer from what they recall."""
