"""Pages and tables made of scored episodes."""
