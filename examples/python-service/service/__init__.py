"""A small HTTP service in front of one ONNX model: FastAPI, uvicorn, ONNX Runtime."""
