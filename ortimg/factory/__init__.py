"""From planned cells to proven images: what must be built, in which order, by the engine."""
