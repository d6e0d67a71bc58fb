"""MuJoCo worlds: robots, parametric objects, scenes, cameras, stepping."""
