"""What is wrong where ONNX Runtime should use CUDA: from facts to findings, and nothing else."""
