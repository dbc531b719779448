"""The fit table of the README: what each ONNX Runtime with each CUDA needs of a host, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from ortimg.core.cudnn import CAUTION, NO_CUDNN
from ortimg.core.drivers import Drivers
from ortimg.core.fit_rules import RANK, Host, Verdict, findings
from ortimg.core.gpu import read_capability
from ortimg.core.gpu_names import Gpu
from ortimg.core.host_facts import HostFacts
from ortimg.core.model import Cell, CudaSet, OrtRelease

HEAD = (
    "| ONNX Runtime | CUDA | cuDNN | driver from | GPUs: native | compiled at the first start | not known |",
    "|---|---|---|---|---|---|---|",
)


def fit_table(cells: Sequence[Cell], facts: HostFacts) -> str:
    """One row for each release and CUDA set of `cells`, in their order; lines end with a newline.

    "driver from" is the lowest driver, by minor-version compatibility; kernels that must be compiled need a
    driver as new as the toolkit that made them, in brackets. GPUs that do not stand in a row are refused.
    """
    drivers = Drivers(facts.drivers)
    pairs = dict.fromkeys((cell.release, cell.cuda_set) for cell in cells)
    rows = [_row(release, cuda_set, facts, drivers) for release, cuda_set in pairs]
    return "".join(f"{line}\n" for line in (*HEAD, *rows))


def _row(release: OrtRelease, cuda_set: CudaSet, facts: HostFacts, drivers: Drivers) -> str:
    by_verdict = _by_verdict(release, cuda_set, facts, drivers)
    made_with = drivers.ptx_cuda(release.gpu, release.cuda_build)
    own = drivers.own(made_with) if made_with else None
    jit = _named(by_verdict[Verdict.JIT], facts)
    columns = (
        release.version,
        cuda_set.cuda,
        f"{NO_CUDNN} ({CAUTION})" if cuda_set.cudnn == NO_CUDNN else cuda_set.cudnn_version,
        drivers.lowest(cuda_set.cuda) or "not known",
        _named(by_verdict[Verdict.NATIVE], facts),
        f"{jit} (driver from {own})" if jit and own else jit,
        _named(by_verdict[Verdict.UNKNOWN], facts),
    )
    return f"| {' | '.join(column or '-' for column in columns)} |"


def _by_verdict(
    release: OrtRelease, cuda_set: CudaSet, facts: HostFacts, drivers: Drivers
) -> dict[Verdict, list[str]]:
    """Compute capabilities of GPUs beside an x86-64 processor, by what becomes of the pair on them."""
    found: dict[Verdict, list[str]] = {verdict: [] for verdict in Verdict}
    for row in reversed(facts.gpus):
        capability = read_capability(row.capability)
        if not row.names or capability is None:
            continue
        host = Host(gpus=(Gpu(name=None, capability=capability),))
        verdicts = [finding.verdict for finding in findings(release, cuda_set, host, drivers)]
        found[max(verdicts, key=RANK.__getitem__, default=Verdict.NATIVE)].append(row.capability)
    return found


def _named(capabilities: Sequence[str], facts: HostFacts) -> str:
    """`Pascal 6.0 6.1, Turing 7.5`."""
    names: dict[str, list[str]] = {}
    for capability in capabilities:
        row = next((row for row in facts.drivers.architectures if capability in row.capabilities), None)
        names.setdefault(row.name if row else "", []).append(capability)
    return ", ".join(f"{name} {' '.join(numbers)}".strip() for name, numbers in names.items())
