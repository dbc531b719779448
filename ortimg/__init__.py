"""ortimg: the image factory for ONNX Runtime GPU."""

__version__ = "0.1.0"
