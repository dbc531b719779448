"""A tiny root file system with a fake ONNX Runtime, fake CUDA and fake cuDNN, made by `cc` in a second.

The fakes behave like the originals where it matters: the core hands out its table of functions and opens
its providers next to itself; the CUDA provider NEEDs the CUDA libraries; cudart asks the driver for a version
and a device; cuDNN opens its parts when it is used and aborts where one is missing. C library, C++ run
time and zlib are this machine's own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

VERSION = "1.22.0"
SONAME = "libonnxruntime.so.1"
PREFIX = f"/opt/onnxruntime/{VERSION}"
CUDA = "/usr/local/cuda-12.2/lib64"
NVIDIA = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}

# What providers_cuda of ORT 1.20 to 1.22 needs (measured).
NEEDED = (
    "libcublasLt.so.12",
    "libcublas.so.12",
    "libcurand.so.10",
    "libcufft.so.11",
    "libcudart.so.12",
    "libcudnn.so.9",
    "libnvrtc.so.12",
)
PARTS = tuple(
    f"libcudnn_{part}.so.9"
    for part in (
        "graph",
        "engines_precompiled",
        "engines_runtime_compiled",
        "heuristic",
        "ops",
        "cnn",
        "adv",
    )
)

CORE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
static char message[2048];
static void *fail(const char *text) { snprintf(message, sizeof message, "%s", text); return message; }
static const char *get_message(const void *status) { return status; }
static void *create_env(int level, const char *id, void **out) { *out = &message; return 0; }
static void *create(void **out) { *out = &message; return 0; }
static void *threads(void *options, int count) { (void)options; (void)count; return 0; }
static void *providers(char ***out, int *count) {
    static char *list[] = {"CUDAExecutionProvider", "CPUExecutionProvider"};
    *out = list; *count = 2; return 0;
}
static void *load(const char *name) {
    Dl_info self; char path[4096];
    dladdr((void *)load, &self);
    snprintf(path, sizeof path, "%s", self.dli_fname);
    strcpy(strrchr(path, '/') + 1, name);
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    return library ? library : dlopen(name, RTLD_NOW | RTLD_GLOBAL);
}
static void *cuda_provider;
static void *append(void *options, const void *cuda) {
    (void)options; (void)cuda;
    if (!load("libonnxruntime_providers_shared.so") ||
        !(cuda_provider = load("libonnxruntime_providers_cuda.so"))) {
        /* since 1.22 the name is on stderr only */
        fprintf(stderr, "2026-01-01 00:00:00.1 [E:onnxruntime:Default, a.cc:1 f] %s\n", dlerror());
        return fail("Failed to load shared library");
    }
    return 0;
}
static void *update(void *cuda, const char *const *keys, const char *const *values, size_t count) {
    (void)cuda; (void)keys; (void)values; (void)count; return 0;
}
static void *session(void *env, const void *bytes, size_t length, void *options, void **out) {
    (void)env; (void)bytes; (void)length; (void)options;
    int (*device)(void) = (int (*)(void))dlsym(cuda_provider, "provider_device");
    int error = device();
    if (error == 0) { *out = message; return 0; }
    char text[200];
    snprintf(text, sizeof text, "CUDA failure %d: text ; GPU=32701 ; hostname=abc ; expr=f(id)", error);
    return fail(text);
}
static void unexpected(void) { __builtin_trap(); }
static void (*table[300])(void);
static const void *get_api(unsigned version) {
    if (version > 22) return 0;
    for (int i = 0; i < 300; i++) table[i] = unexpected;
    table[2] = (void (*)(void))get_message; table[3] = (void (*)(void))create_env;
    table[8] = (void (*)(void))session; table[10] = (void (*)(void))create;
    table[24] = (void (*)(void))threads; table[125] = (void (*)(void))providers;
    table[204] = (void (*)(void))append; table[205] = (void (*)(void))create;
    table[206] = (void (*)(void))update;
    return table;
}
static const char *get_version(void) { return "1.22.0"; }
static struct { const void *(*api)(unsigned); const char *(*version)(void); } base = {get_api, get_version};
void *OrtGetApiBase(void) { return &base; }
"""

PROVIDER = """
int cudaSetDevice(int); int provider_device(void) { return cudaSetDevice(0); }
"""

CUDART = r"""
#include <dlfcn.h>
int cudaSetDevice(int device) {
    (void)device;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    int (*version)(int *) = driver ? (int (*)(int *))dlsym(driver, "cuDriverGetVersion") : 0;
    int (*init)(unsigned) = driver ? (int (*)(unsigned))dlsym(driver, "cuInit") : 0;
    int number = 0;
    if (!version || !init || version(&number) != 0 || number < 12020) return 35;
    return init(0);
}
"""

CUDNN = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
static void part(const char *name) {
    if (!dlopen(name, RTLD_NOW)) {
        fprintf(stderr, "Could not load library %s. Error: %s\n", name, dlerror());
        abort();
    }
}
size_t cudnnGetVersion(void) { return 90501; }
int cudnnGraphVersionCheck(void) { part("libcudnn_graph.so.9"); return 0; }
int cudnnOpsVersionCheck(void) { part("libcudnn_ops.so.9"); return 0; }
int cudnnCnnVersionCheck(void) { part("libcudnn_cnn.so.9"); return 0; }
int cudnnAdvVersionCheck(void) { part("libcudnn_adv.so.9"); return 0; }
int cudnnCreateTensorDescriptor(void **out) { *out = 0; return 0; }
int cudnnCreateConvolutionDescriptor(void **out) { part("libcudnn_cnn.so.9"); *out = 0; return 0; }
int cudnnCreateRNNDescriptor(void **out) { part("libcudnn_adv.so.9"); *out = 0; return 0; }
"""

EMPTY = "int nothing_in_particular;"
CRASH = "#include <stdio.h>\n#include <stdlib.h>\n__attribute__((constructor)) static void f(void) {{ {} }}"
ABORTS = CRASH.format('fprintf(stderr, "the last words\\n"); abort();')
SEGFAULTS = CRASH.format('fprintf(stderr, "the last words\\n"); *(volatile int *)0 = 1;')
HANGS = "#include <unistd.h>\n" + CRASH.format("fork(); for (;;) sleep(1000);")
# Says so where anyone can see it: this code must never run.
HOSTILE = CRASH.format('fprintf(stderr, "HOSTILE CODE RAN\\n");')


def _can_unshare() -> bool:
    return os.geteuid() == 0 or subprocess.run(["unshare", "-rm", "true"], check=False).returncode == 0


NEEDS_ROOT = pytest.mark.skipif(not _can_unshare(), reason="needs root or user namespaces")


def compile_library(path: Path, source: str, *flags: str | Path, soname: str | None = None) -> None:
    """One shared library at `path`, which a copy of the world may share with others: so it is replaced."""
    path.unlink(missing_ok=True)
    command = ["cc", "-shared", "-fPIC", "-w", "-x", "c", "-", "-x", "none", "-o", path]
    name = soname or path.name
    subprocess.run([*command, f"-Wl,-soname,{name}", *flags], input=source.encode(), check=True)


@dataclass(frozen=True)
class World:
    """A root file system."""

    root: Path

    def path(self, inside: str) -> Path:
        return self.root / inside.lstrip("/")

    def ort(self, name: str) -> Path:
        return self.path(f"{PREFIX}/lib/{name}")

    def cuda(self, name: str) -> Path:
        return self.path(f"{CUDA}/{name}")

    def ldconfig(self) -> None:
        # A new file: the old one is shared with the world that this one is a copy of.
        self.path("/etc/ld.so.cache").unlink(missing_ok=True)
        subprocess.run(["ldconfig", "-X", "-r", self.root], check=True, capture_output=True)

    def replace(self, path: Path, source: str, soname: str | None = None) -> None:
        compile_library(path, source, soname=soname)

    def write(self, inside: str, content: str) -> None:
        path = self.path(inside)
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    def libz(self) -> list[Path]:
        return list(self.path("/usr/lib").rglob("libz.so.1"))

    def copy(self, target: Path) -> World:
        """A copy that shares its files: replace them, never write into them."""
        shutil.copytree(self.root, target, symlinks=True, copy_function=os.link)
        return World(target)


def make_world(root: Path) -> World:
    """The whole, sound world."""
    world = World(root)
    for folder in ("run", "tmp", "etc/ld.so.conf.d", "usr/lib", "usr/lib64", "usr/bin", "usr/local/lib"):
        (root / folder).mkdir(parents=True)
    (root / "lib").symlink_to("usr/lib")
    (root / "lib64").symlink_to("usr/lib64")
    shutil.copy(os.path.realpath("/lib64/ld-linux-x86-64.so.2"), root / "lib64/ld-linux-x86-64.so.2")
    libc = ["c.so.6", "m.so.6", "dl.so.2", "pthread.so.0", "rt.so.1"]
    for name in (*libc, "stdc++.so.6", "gcc_s.so.1", "z.so.1"):
        shutil.copy(_of_this_machine(f"lib{name}"), root / f"usr/lib/lib{name}")
    shutil.copy("/usr/bin/env", root / "usr/bin/env")

    world.cuda("x").parent.mkdir(parents=True)
    world.ort("x").parent.mkdir(parents=True)
    for name in (*NEEDED, *PARTS):
        source = {"libcudart.so.12": CUDART, "libcudnn.so.9": CUDNN}.get(name, EMPTY)
        compile_library(world.cuda(name), source)
    compile_library(world.ort(f"libonnxruntime.so.{VERSION}"), CORE, soname=SONAME)
    world.ort(SONAME).symlink_to(f"libonnxruntime.so.{VERSION}")
    world.ort("libonnxruntime.so").symlink_to(SONAME)
    compile_library(world.ort("libonnxruntime_providers_shared.so"), EMPTY)
    needed = [world.cuda(name) for name in NEEDED]
    libraries = ["-Wl,--no-as-needed", *needed, root / "usr/lib/libz.so.1", root / "usr/lib/libstdc++.so.6"]
    compile_library(
        world.ort("libonnxruntime_providers_cuda.so"),
        PROVIDER,
        *libraries,
        "-Wl,--allow-shlib-undefined",
    )

    world.write("/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n")
    world.write("/etc/ld.so.conf.d/onnxruntime.conf", f"{PREFIX}/lib\n")
    world.write("/etc/ld.so.conf.d/cuda.conf", f"{CUDA}\n")
    world.write("/usr/share/ortimg/manifest.json", json.dumps(manifest()))
    world.ldconfig()
    return world


def manifest() -> dict[str, object]:
    """What the world promises."""
    return {
        "schema": 1,
        "identifier": "1.22.0-cuda12.2-cudnn9-stub",
        "ort": {
            "version": VERSION,
            "prefix": PREFIX,
            "soname": SONAME,
            "needed": [*NEEDED],
            "dlopened": [],
        },
        "cuda": {"version": "12.2", "major": 12, "folder": CUDA, "libraries": [*NEEDED, *PARTS]},
        "cudnn": {"version": "9.5.1.17", "major": 9},
        "base": {"name": "stub", "glibc": None},
        "flavour": "runtime",
    }


def _of_this_machine(name: str) -> str:
    told = subprocess.run(["cc", f"-print-file-name={name}"], check=True, capture_output=True, text=True)
    return os.path.realpath(told.stdout.strip())
