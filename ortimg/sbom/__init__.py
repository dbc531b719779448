"""Bills of materials: what is read from an image, and where the documents go."""
