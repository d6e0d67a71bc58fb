"""What the command line and the launch files ask for."""
