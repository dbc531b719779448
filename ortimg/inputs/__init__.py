"""Inputs: where they come from, the cache that keeps them, and the lock that pins them."""
