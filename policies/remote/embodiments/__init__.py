"""One YAML file per robot that a policy server was trained for (`policies.remote.embodiment`)."""
