"""`ortimg report`: what a project and this machine know, as one HTML page."""
