"""The world of stub_world.py with a GPU: its driver has a device, its ONNX Runtime runs one model there.

Files under /etc/fake make it do something else; `World.write` puts them there:
`profile.json` is what it writes as its profile, `cuda-output` what it computes on CUDA (0.5 on the CPU),
`refuse` (there are nodes that CUDA lacks), `error` (text of a failing run on CUDA), `bound-error` (of one
with tensors on the GPU), `hang`, `crash`.
"""

from __future__ import annotations

import json
from pathlib import Path

from stub_world import CORE, SONAME, VERSION, World, compile_library, make_world

DRIVER = r"""
#include <string.h>
#ifndef VERSION
#define VERSION 13000
#endif
#ifndef INIT
#define INIT 0
#endif
#ifndef COUNT
#define COUNT 1
#endif
#ifndef MAJOR
#define MAJOR 9
#endif
typedef unsigned long size;
int cuDriverGetVersion(int *version) { *version = VERSION; return 0; }
int cuInit(unsigned flags) { return INIT; }
int cuDeviceGetCount(int *count) { *count = COUNT; return 0; }
int cuDeviceGet(int *device, int id) { *device = id; return 0; }
int cuDeviceGetName(char *name, int length, int device) { strcpy(name, "Stub GPU"); return 0; }
int cuDeviceGetAttribute(int *value, int which, int device) { *value = which == 75 ? MAJOR : 0; return 0; }
int cuDeviceTotalMem_v2(size *bytes, int device) { *bytes = 8ul << 30; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = 0; return 0; }
int cuCtxSetCurrent(void *context) { return 0; }
int cuMemGetInfo_v2(size *available, size *all) { *available = 7ul << 30; *all = 8ul << 30; return 0; }
int cuDeviceGetPCIBusId(char *bus, int length, int device) { strcpy(bus, "0000:01:00.0"); return 0; }
int cuGetErrorName(int code, const char **name) { *name = "CUDA_ERROR_OF_THE_STUB"; return 0; }
"""

# The driver's NVML: a GPU that is busy for 40 % of the time.
NVML = r"""
#include <string.h>
int nvmlInit_v2(void) { return 0; }
int nvmlSystemGetDriverVersion(char *version, unsigned length) { strcpy(version, "580.1"); return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device) {
    *device = (void *)1; return strcmp(bus, "0000:01:00.0") ? 6 : 0;
}
int nvmlDeviceGetUtilizationRates(void *device, unsigned *rates) { rates[0] = 40; return 0; }
"""

# What a run needs besides what CORE has.
_FUNCTIONS = r"""
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
static struct options { int cuda, strict; char profile[500]; } all_options[9], *latest;
static int made;
static const char *fake(const char *name) {
    static char text[100000];
    char path[200];
    snprintf(path, sizeof path, "/etc/fake/%s", name);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}
static void *make_options(void **out) { *out = latest = &all_options[made++]; return 0; }
static void *enable_profile(void *options, const char *prefix) {
    strcpy(((struct options *)options)->profile, prefix); return 0;
}
static void *add_entry(void *options, const char *key, const char *value) {
    if (!strcmp(key, "session.disable_cpu_ep_fallback")) ((struct options *)options)->strict = *value == '1';
    return 0;
}
static void *append_cuda(void *options, const void *cuda) {
    ((struct options *)options)->cuda = 1; return append(options, cuda);
}
static void *make_session(void *env, const void *bytes, size_t length, struct options *options, void **out) {
    if (options->cuda) {
        void *status = session(env, bytes, length, options, out);
        if (status) return status;
        if (options->strict && fake("refuse"))
            return fail("This session contains graph nodes that are assigned to the default CPU EP, "
                        "but fallback to CPU EP has been explicitly disabled by the user.");
    }
    *out = options;
    return 0;
}
static void *make_session_of_file(void *env, const char *path, struct options *options, void **out) {
    return make_session(env, path, 0, options, out);
}
static void *one(void *session, size_t *count) { *count = 1; return 0; }
static void *input_name(void *s, size_t i, void *a, char **name) { *name = "image"; return 0; }
static void *output_name(void *s, size_t i, void *a, char **name) { *name = "out"; return 0; }
static struct info { int kind; size_t rank; int64_t size[4]; }
    input = {1, 4, {-1, 3, -1, 8}}, output = {1, 1, {4}}, given;
static void *input_type(void *s, size_t i, void **out) { *out = &input; return 0; }
static void *cast(void *info, void **out) { *out = info; return 0; }
static void *kind(struct info *info, int *out) { *out = info->kind; return 0; }
static void *rank(struct info *info, size_t *out) { *out = info->rank; return 0; }
static void *sizes(struct info *info, int64_t *out, size_t n) { memcpy(out, info->size, n * 8); return 0; }
static void *any(void) { return 0; }
static void *make_tensor(void *m, void *data, size_t bytes, const int64_t *size, size_t rank, int kind,
                         void **out) {
    size_t count = 1;
    for (size_t i = 0; i < rank; i++) count *= size[i];
    if (bytes != count * 4) return fail("not enough bytes");
    *out = &given; return 0;
}
static void *run(struct options *options, void *o, char **in, void **v, size_t n, char **names, size_t m,
                 void **out) {
    float *data = malloc(16);
    const char *text = options->cuda ? fake("cuda-output") : 0;
    float value = text ? atof(text) : 0.5f;
    for (int i = 0; i < 4; i++) data[i] = value;
    if (options->cuda && fake("hang")) { fork(); for (;;) sleep(1000); }
    if (options->cuda && fake("crash")) { fprintf(stderr, "the last words\n"); abort(); }
    if (options->cuda && (text = fake("error"))) return fail(text);
    *out = data;
    return 0;
}
static void *make_binding(struct options *options, void **out) { *out = options; return 0; }
static void *run_bound(struct options *options, void *o, void *binding) {
    const char *text = fake("bound-error");
    return text ? fail(text) : 0;
}
static void *is_tensor(void *value, int *out) { *out = 1; return 0; }
static void *data_of(void *value, void **out) { *out = value; return 0; }
static void *info_of(void *value, void **out) { *out = &output; return 0; }
static void *end_profile(struct options *options, void *allocator, char **out) {
    const char *text = fake("profile.json");
    strcat(options->profile, "_2026-01-01.json");
    FILE *file = fopen(options->profile, "w");
    if (text) fputs(text, file);
    fclose(file);
    *out = options->profile; return 0;
}
static void none(void *value) { (void)value; }
"""
_PLACES = {
    7: "make_session_of_file",
    8: "make_session",
    9: "run",
    10: "make_options",
    14: "enable_profile",
    30: "one",
    31: "one",
    33: "input_type",
    36: "input_name",
    37: "output_name",
    49: "make_tensor",
    50: "is_tensor",
    51: "data_of",
    55: "cast",
    60: "kind",
    61: "rank",
    62: "sizes",
    65: "info_of",
    68: "any",
    69: "any",
    78: "any",
    94: "none",
    95: "none",
    96: "none",
    110: "end_profile",
    130: "add_entry",
    133: "run_bound",
    134: "make_binding",
    135: "none",
    136: "any",
    138: "any",
    204: "append_cuda",
}


def _core() -> str:
    table = "".join(f"    table[{place}] = (void (*)(void)){name};\n" for place, name in _PLACES.items())
    head, tail = CORE.split("static void unexpected")
    return (
        head
        + _FUNCTIONS
        + "static void unexpected"
        + tail.replace("    return table;", table + "    return table;")
    )


def profile(*nodes: tuple[str, str, str]) -> str:
    """A profile as ONNX Runtime writes it, of nodes (name, operator, provider: "CUDA" or "CPU")."""
    events: list[dict[str, object]] = [{"cat": "Session", "name": "session_initialization", "args": {}}]
    for index, (name, op, provider) in enumerate(nodes):
        args = {
            "op_name": op,
            "node_index": str(index),
            "provider": f"{provider}ExecutionProvider",
        }
        events.append({"cat": "Node", "dur": 5, "name": f"{name}_kernel_time", "args": args})
    return json.dumps(events)


ALL_ON_CUDA = profile(("conv", "Conv", "CUDA"), ("gemm", "Gemm", "CUDA"))


def put_driver(world: World, *flags: str) -> None:
    """The driver of this world's GPU; `-DVERSION=…`, `-DINIT=…` and `-DCOUNT=…` make it another one."""
    compile_library(world.path("/usr/lib/libcuda.so.1"), DRIVER, *flags)
    world.ldconfig()


def make_run_world(root: Path) -> World:
    """The whole, sound world, with a GPU."""
    world = make_world(root)
    compile_library(world.ort(f"libonnxruntime.so.{VERSION}"), _core(), soname=SONAME)
    world.write("/etc/fake/profile.json", ALL_ON_CUDA)
    put_driver(world)
    return world
