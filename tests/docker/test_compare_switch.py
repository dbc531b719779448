"""Two versions in one image, as docs/upgrading.md says it: every command below is taken from there."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from compare_images import real_image
from real import MARK, ROOT

from ortimg.engine.buildx import BuildOutcome, run_build
from ortimg.engine.client import Engine
from ortimg.factory.disk import builder_name

pytestmark = [pytest.mark.engine, pytest.mark.inputs]

OLD, NEW = "1.16.2", "1.17.1"
DEVEL, LATEST = "1.23.2", "1.30.0"
CELLS = (
    f"{OLD}-cuda11.8-cudnn8-debian12",
    f"{NEW}-cuda11.8-cudnn8-debian12",
    f"{DEVEL}-cuda12.6-cudnn9-debian13-devel",
    f"{LATEST}-cuda13.0-cudnn9-debian13",
)
TEXT = (ROOT / "docs" / "upgrading.md").read_text()
API = """\
struct api_base { const void *(*get_api)(unsigned); const char *(*get_version)(void); };
"""
# Says which ONNX Runtime it met. It asks for nothing but OrtGetApiBase, as every program in C or C++ does.
LINKED = (
    API
    + """
#include <stdio.h>
const struct api_base *OrtGetApiBase(void);
int main(void) { puts(OrtGetApiBase()->get_version()); return 0; }
"""
)
# Brings up the CUDA provider besides: its libraries are found and bound.
FREE = (
    API
    + """
#include <dlfcn.h>
#include <stdio.h>
int main(void) {
    void *library = dlopen("libonnxruntime.so", RTLD_NOW);
    if (!library) { puts(dlerror()); return 1; }
    const struct api_base *(*get)(void) = (const struct api_base *(*)(void))dlsym(library, "OrtGetApiBase");
    void *(*append)(void *, int) =
        (void *(*)(void *, int))dlsym(library, "OrtSessionOptionsAppendExecutionProvider_CUDA");
    void *(*const *api)(void) = (void *(*const *)(void))get()->get_api(14);
    void *options = NULL;
    ((void *(*)(void **))api[10])(&options); /* CreateSessionOptions */
    void *status = append(options, 0);
    printf("%s %s\\n", get()->get_version(), status ? ((const char *(*)(void *))api[2])(status) : "CUDA");
    return 0;
}
"""
)


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def switch(version: str) -> str:
    """The two lines that lead to `version`."""
    (lines,) = [block for block in blocks("sh") if f"ln -sfn {version} " in block]
    assert len(lines.splitlines()) == 2
    return lines


def heredoc(name: str, text: str) -> str:
    return f"COPY <<'EOF' {name}\n{text}EOF\n\n"


def build(dockerfile: str, folder: Path) -> BuildOutcome:
    path = folder / "Dockerfile"
    path.write_text(dockerfile)
    return run_build(
        ["build", f"--builder={builder_name()}", f"--file={path}", "--output=type=cacheonly", str(folder)],
        on_event=lambda _event: None,
        log=folder / "build.log",
        cancel=threading.Event(),
    )


@pytest.fixture(scope="module")
def cells(tidy_engine: Engine) -> dict[str, str]:
    """Version → an image of it."""
    return {name.partition("-")[0]: real_image(tidy_engine, name) for name in CELLS}


def mounted(cells: dict[str, str], version: str, target: str) -> str:
    source = f"/opt/onnxruntime/{version}"
    return f"--mount=type=bind,from={cells[version]},source={source},target={target}"


def programs(cells: dict[str, str], *versions: str) -> str:
    """A stage that links the program to each version, to none, and to the stand-in of the text."""
    stand_in = next(block for block in blocks("sh") if "-soname,libonnxruntime.so" in block)
    mounts = [mounted(cells, version, f"/from/{version}") for version in versions]
    commands = [
        f"cc main.c -L/from/{version}/lib -lonnxruntime -Wl,--allow-shlib-undefined"
        f" -o /programs/linked-{version}"
        for version in versions
    ]
    mount, link = " ".join(mounts), "\n".join(commands)
    return (
        f"FROM {cells[DEVEL]} AS programs\nWORKDIR /src\n"
        + heredoc("main.c", LINKED)
        + heredoc("free.c", FREE)
        + f"RUN --network=none {mount} <<'EOF'\nset -eux # {MARK}\nmkdir /programs\n{link}\n{stand_in}"
        "mv serve /programs/stand-in\ncc free.c -ldl -o /programs/free\nEOF\n\n"
    )


def steps(*commands: str, mounts: Sequence[str] = ()) -> str:
    return (
        f"RUN --network=none {' '.join(mounts)} <<'EOF'\nset -eux # {MARK}\n"
        + "\n".join(commands)
        + "\nEOF\n"
    )


def says(program: str, text: str) -> str:
    """The program starts and says exactly this."""
    return f'test "$({program})" = "{text}"'


def refuses(program: str, text: str) -> str:
    """The program does not start, and the loader says this."""
    return f"! {program} >/tmp/said 2>&1; cat /tmp/said; grep -qF '{text}' /tmp/said"


def test_back_and_forward(cells: dict[str, str], tmp_path: Path) -> None:
    (dockerfile,) = blocks("dockerfile")
    for version in (OLD, NEW):
        assert cells[version] in dockerfile  # the images of the text are those built here
    text = programs(cells, OLD, NEW) + dockerfile + "COPY --from=programs /programs /usr/local/bin\n" + steps(
        says("free", f"{NEW} CUDA"), says("stand-in", NEW), says(f"linked-{NEW}", NEW),
        refuses(f"linked-{OLD}", f"libonnxruntime.so.{OLD}: cannot open shared object file"),
        switch(OLD),
        says("free", f"{OLD} CUDA"), says("stand-in", OLD), says(f"linked-{OLD}", OLD),
        refuses(f"linked-{NEW}", f"libonnxruntime.so.{NEW}: cannot open shared object file"),
        switch(NEW),
        says("free", f"{NEW} CUDA"), says("stand-in", NEW), says(f"linked-{NEW}", NEW),
        # Without ldconfig the cache still names the file of the other version.
        switch(OLD).splitlines()[0],
        refuses(f"linked-{OLD}", f"libonnxruntime.so.{OLD}: cannot open shared object file"),
    )  # fmt: skip
    outcome = build(text, tmp_path)
    assert outcome.ok, str(outcome.failure)


def test_one_soname_since_1_19_is_no_freedom(cells: dict[str, str], tmp_path: Path) -> None:
    """1.23.2 and 1.30.0 are both libonnxruntime.so.1, and 1.17.1 is not."""
    beside = [mounted(cells, version, f"/opt/onnxruntime/{version}") for version in (NEW, LATEST)]
    commands = (
        says(f"linked-{DEVEL}", DEVEL), says("stand-in", DEVEL),
        switch(OLD).replace(OLD, LATEST),
        refuses(f"linked-{DEVEL}", f"version `VERS_{DEVEL}"), says("stand-in", LATEST),
        switch(NEW),
        refuses(f"linked-{DEVEL}", "libonnxruntime.so.1: cannot open shared object file"),
        says("stand-in", NEW),
    )  # fmt: skip
    image = f"FROM {cells[DEVEL]}\nCOPY --from=programs /programs /usr/local/bin\n"
    outcome = build(programs(cells, DEVEL) + image + steps(*commands, mounts=beside), tmp_path)
    assert outcome.ok, str(outcome.failure)


def test_the_checks_of_the_switch_can_fail(cells: dict[str, str], tmp_path: Path) -> None:
    text = programs(cells, NEW) + f"FROM {cells[NEW]}\nCOPY --from=programs /programs /usr/local/bin\n"
    assert not build(text + steps(says("free", f"{OLD} CUDA")), tmp_path).ok
