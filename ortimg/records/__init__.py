"""Verdicts of tier run, kept beside the images they speak of: an image is never changed by its verdict."""
