"""One YAML file of limits for each robot."""
