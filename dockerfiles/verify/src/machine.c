#define _GNU_SOURCE
#include "machine.h"

#include <cpuid.h>
#include <gnu/libc-version.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "talk.h"
#include "text.h"

static int usable(void) {
    cpu_set_t processors;
    CPU_ZERO(&processors);
    return sched_getaffinity(0, sizeof processors, &processors) == 0 ? CPU_COUNT(&processors) : 1;
}

// Logical processors of one core; leaf 0xB of CPUID, first level. 1 where the processor does not tell.
static int processors_of_a_core(void) {
    unsigned a, b = 0, c, d;
    if (__get_cpuid_max(0, NULL) < 0xb)
        return 1;
    __cpuid_count(0xb, 0, a, b, c, d);
    int count = (int)(b & 0xffff);
    return (c >> 8 & 0xff) == 1 && count >= 1 && count <= 8 ? count : 1;
}

int machine_cores(void) {
    int cores = usable() / processors_of_a_core();
    return cores > 0 ? cores : 1;
}

// "AMD EPYC 9654 96-Core Processor". Asked of the processor: an unpacked root may have no /proc.
static const char *processor_name(void) {
    unsigned words[12];
    for (unsigned i = 0; i < 3; i++)
        if (!__get_cpuid(0x80000002 + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]))
            return NULL;
    char name[sizeof words + 1] = "";
    memcpy(name, words, sizeof words);
    char *start = name + strspn(name, " ");
    for (size_t end = strlen(start); end > 0 && start[end - 1] == ' '; end--)
        start[end - 1] = 0;
    return text("%s", start);
}

// Processors that a container may use at once, "0.5"; `docker run --cpus` sets it. 0: as many as there are.
static double quota(void) {
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "r");
    double share = 0, period = 0;
    if (file == NULL)
        return 0;
    if (fscanf(file, "%lf %lf", &share, &period) != 2 || period <= 0) // "max 100000": no limit
        share = 0;
    fclose(file);
    return share > 0 ? share / period : 0;
}

void machine_put(int threads) {
    const char *name = processor_name();
    struct utsname system;
    if (name != NULL)
        put_text("machine.cpu", name);
    put_number("machine.processors", usable());
    put_number("machine.threads", threads);
    if (quota() > 0)
        put_number("machine.quota", quota());
    if (uname(&system) == 0)
        put_text("machine.kernel", system.release);
    put_text("machine.glibc", gnu_get_libc_version());
}
