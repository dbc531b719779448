"""Gathers what `ortimg.core.doctor` judges: this machine, a root, an image, a log, a program."""
