"""Gathers what is known of the two sides of a comparison: from the catalogue, an image or a folder."""
