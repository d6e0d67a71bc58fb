"""Where `bench_tasks.options` was before; for what still looks for it here."""

from bench_tasks.options import FORMAT_VERSION, build, read_spec

__all__ = ["FORMAT_VERSION", "build", "read_spec"]
