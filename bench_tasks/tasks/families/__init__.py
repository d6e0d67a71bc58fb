"""What tasks of one family share; no module here is a task."""
