"""The container engine: find it, start it, build with it, ask it."""
