"""The warm-up on disk, on a GPU and in the engine; what it means is in `ortimg.core.warm*`."""
