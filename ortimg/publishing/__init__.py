"""Images on their way from the engine to a registry."""
