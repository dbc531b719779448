"""The verifier: `ort-verify` (C, runs in the image) and what starts it and reads its report."""
