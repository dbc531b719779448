"""What the user adds to a comparison: hosts, programs, sources and a model."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from ortimg.comparing.compiling import compile_source, placed
from ortimg.comparing.libraries import BrokenFileError, read_program
from ortimg.comparing.targets import Gathered
from ortimg.core.compare import Asked, Facts
from ortimg.core.compare_model import Program
from ortimg.core.compare_options import check_options, parse_options
from ortimg.core.compare_runs import Run
from ortimg.core.drivers import Driver, Drivers, is_driver
from ortimg.core.gpu import read_capability
from ortimg.core.gpu_names import Gpu, GpuNames
from ortimg.core.onnx_support import Stamp
from ortimg.core.problems import quote
from ortimg.data import read_host_facts, read_onnx_rows
from ortimg.errors import ConfigError
from ortimg.inputs.cache import Cache, Say
from ortimg.measure.onnx_model import NotAModelError, read_stamp


@dataclass(frozen=True)
class Question:
    """The options of the command line, as they were written."""

    driver: str | None = None
    gpus: tuple[str, ...] = ()
    programs: tuple[Path, ...] = ()
    sources: tuple[Path, ...] = ()
    options: tuple[str, ...] = ()
    model: Path | None = None
    shapes: tuple[str, ...] = ()
    allow_cpu: tuple[str, ...] = ()
    provider: str | None = None
    runs: int | None = None
    timeout: int | None = None

    def check(self, facts: Facts) -> None:
        """Raises ConfigError for what is wrong without looking at the sides."""
        if self.driver is not None and not is_driver(self.driver):
            raise ConfigError(f"--driver {quote(self.driver)} is no driver version",
                              hint="Write it as nvidia-smi does: 535.104.05.")  # fmt: skip
        check_options([option.partition("=")[0] for option in self.options], facts.options)
        for what, paths in (("--program", self.programs), ("--source", self.sources)):
            for path in paths:
                if not path.is_file():
                    raise ConfigError(f"there is no file {path}", hint=f"Give {what} a file.")
        of_a_run = (self.shapes, self.allow_cpu, self.provider, self.runs, self.timeout)
        if self.model is None and any(of_a_run):
            raise ConfigError("--shape, --allow-cpu, --provider, --runs and --timeout go with --model")
        _gpus(self.gpus)
        _programs(self.programs)
        _stamp(self.model)


def facts() -> Facts:
    """The tables of the package that a comparison reads."""
    host = read_host_facts()
    # Rows without names are of GPUs that come with an Arm processor only.
    capabilities = (read_capability(row.capability) for row in host.gpus if row.names)
    return Facts(
        drivers=Drivers(host.drivers),
        capabilities=tuple(sorted(one for one in capabilities if one is not None)),
        options=parse_options((files("ortimg.data") / "cuda-options.yaml").read_bytes()),
        onnx=read_onnx_rows(),
    )


def answer(question: Question, old: Gathered, new: Gathered, cache: Cache, say: Say) -> Asked:
    """Reads programs, compiles sources, runs the model. Raises ConfigError and EnvironmentFault."""
    with ExitStack() as stack:
        before, after = (stack.enter_context(placed(one.headers, one.header_folder)) for one in (old, new))
        sources = tuple(
            compile_source(source, before, after, new.side.headers_from) for source in question.sources
        )
    return Asked(
        driver=Driver(question.driver),
        gpus=_gpus(question.gpus),
        programs=_programs(question.programs),
        sources=sources,
        options=tuple(option.partition("=")[0] for option in question.options),
        model=question.model.name if question.model else None,
        stamp=_stamp(question.model),
        runs=_runs(question, old, new, cache, say),
    )


def _gpus(names: tuple[str, ...]) -> tuple[Gpu, ...]:
    known = GpuNames(read_host_facts()) if names else None
    return tuple(known.find(name) for name in names) if known else ()


def _programs(paths: tuple[Path, ...]) -> tuple[Program, ...]:
    found = []
    for path in paths:
        try:
            found.append(read_program(path, str(path)))
        except BrokenFileError as error:
            raise ConfigError(
                f"{path} is no program or library: {error}", hint="Give --program an ELF file."
            ) from None
    return tuple(found)


def _stamp(model: Path | None) -> Stamp | None:
    if model is None:
        return None
    if not model.is_file():
        raise ConfigError(f"there is no file {model}", hint="Give --model an ONNX file.")
    try:
        return read_stamp(model)
    except NotAModelError as error:
        raise ConfigError(f"--model: {error}", hint="Give --model an ONNX file.") from None


def _runs(question: Question, old: Gathered, new: Gathered, cache: Cache, say: Say) -> tuple[Run, Run] | None:
    if question.model is None or old.runs_at is None or new.runs_at is None:
        return None
    from ortimg.comparing.running import choose_provider, run_both
    from ortimg.verify.wish import Provider, RunWish

    provider, why = choose_provider(Provider(question.provider) if question.provider else None)
    say(f"running {question.model.name} on both, on {provider.name}")
    options = tuple(option for option in question.options if "=" in option)
    wish = RunWish(
        model=question.model,
        shapes=question.shapes,
        options=options if provider is Provider.CUDA else (),
        allow_cpu=question.allow_cpu if provider is Provider.CUDA else (),
        runs=question.runs,
        provider=provider,
    )
    return run_both(old.runs_at, new.runs_at, wish, question.timeout, cache, why)
