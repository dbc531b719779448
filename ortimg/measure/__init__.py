"""Reading facts out of libraries: what the catalogue says is measured with this, and checked with it."""
