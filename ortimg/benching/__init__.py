"""`ortimg bench`: what a GPU gains for a model, and what stands in its way."""
