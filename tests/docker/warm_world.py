"""The world of run_world.py on a GPU that is newer than the kernels: a stub of a driver that compiles.

Its "compute cache" has the shape of CUDA's (folders, hex names, an index), and holds nothing that a GPU could
run. `World.write("/etc/fake/native", "")` makes it a GPU that needs none, `must-write` a driver that uses no
cache which it cannot write to.
"""

from __future__ import annotations

from pathlib import Path

import run_world
from run_world import make_run_world
from stub_world import PREFIX, SONAME, VERSION, World, compile_library

_HANG = '    if (options->cuda && fake("hang"))'
_HEADER = "#define _GNU_SOURCE\n"
_JIT = r"""
    if (options->cuda && !fake("native")) {
        char path[600], *cache = getenv("CUDA_CACHE_PATH");
        snprintf(path, sizeof path, "%s/index", cache);
        FILE *file = fopen(path, fake("must-write") ? "r+" : "r");
        if (!file && getenv("CUDA_DISABLE_PTX_JIT"))
            return fail("CUDA failure 223: PTX JIT compilation was disabled ; expr=cudaGetLastError()");
        if (!file) {
            usleep(150000);
            snprintf(path, sizeof path, "%s/a", cache); mkdir(path, 0700);
            snprintf(path, sizeof path, "%s/a/0b1c", cache);
            FILE *kernel = fopen(path, "w");
            if (kernel) { fputs("STUB, NO KERNEL", kernel); fclose(kernel); }
            snprintf(path, sizeof path, "%s/index", cache);
            if ((file = fopen(path, "w"))) fputs("STUB, NO INDEX", file);
        }
        if (file) fclose(file);
    }
"""


_NVML = r"""
#include <string.h>
int nvmlInit_v2(void) { return 0; }
int nvmlSystemGetDriverVersion(char *version, unsigned length) { strcpy(version, "580.159.04"); return 0; }
"""


def make_warm_world(root: Path) -> World:
    """The whole, sound world, whose GPU has to compile."""
    world = make_run_world(root)
    source = run_world._core()
    assert source.count(_HANG) == 1
    source = source.replace(_HANG, _JIT + _HANG).replace(_HEADER, f"{_HEADER}#include <sys/stat.h>\n", 1)
    compile_library(world.ort(f"libonnxruntime.so.{VERSION}"), source, soname=SONAME)
    compile_library(world.path("/usr/lib/libnvidia-ml.so.1"), _NVML)
    world.ldconfig()
    world.path("/opt/onnxruntime/current").symlink_to(Path(PREFIX).name)
    return world
