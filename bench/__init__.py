"""`make bench`: what ortimg costs, against the naive way, against NVIDIA's images and against the limit.

One run gives one file of bench/results, with a plot beside it; docs/numbers.md tells how it is measured. Only
root on Linux can run all of it: it starts engines, registries and a containerd of its own, with nothing but a
loopback network, and ends them by their process numbers.
"""

from pathlib import Path

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "bench" / "results"
