#define _GNU_SOURCE
#include "root_driver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader.h"

struct names driver_libraries(void) {
    struct names files = {0};
    char *libcuda = loader_find("libcuda.so.1");
    if (libcuda == NULL)
        return files;
    char *folder = folder_of(libcuda);
    struct names entries = folder_entries(folder);
    for (size_t i = 0; i < entries.count; i++) {
        const char *name = entries.item[i];
        bool ours = starts_with(name, "libcuda.so.") || starts_with(name, "libnvidia-");
        if (ours && strstr(name, ".so.") != NULL && is_file(text("%s/%s", folder, name)))
            names_add(&files, text("%s/%s", folder, name));
    }
    return files;
}

static const char *fault_at(const char *path) {
    return text("cannot show %s inside: %s", path, strerror(errno));
}

// A file of the host at another place; nothing is copied.
static const char *show_file(const char *from, const char *to) {
    int file = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0)
        return fault_at(from);
    close(file);
    return mount(from, to, NULL, MS_BIND, NULL) == 0 ? NULL : fault_at(from);
}

const char *show_place(const char *from, const char *to, unsigned long flags) {
    // In a user namespace a folder goes along with all that is mounted in it, or not at all.
    unsigned long whole = geteuid() == 0 ? 0 : MS_REC;
    flags |= MS_NOSUID | MS_NODEV | MS_NOEXEC;
    bool shown = mount(from, to, NULL, MS_BIND | whole, NULL) == 0 &&
                 mount(NULL, to, NULL, MS_BIND | MS_REMOUNT | flags, NULL) == 0;
    return shown ? NULL : fault_at(from);
}

// CUDA names its threads through /proc, so it cannot be read-only; what is the whole machine's can, as in a container.
static const char *show_proc(const char *to) {
    static const char *const of_the_machine[] = {"bus", "fs", "irq", "sys", "sysrq-trigger"};
    const char *fault = show_place("/proc", to, 0);
    for (size_t i = 0; i < sizeof of_the_machine / sizeof *of_the_machine && fault == NULL; i++) {
        char *from = text("/proc/%s", of_the_machine[i]);
        if (access(from, F_OK) == 0)
            fault = show_place(from, text("%s/%s", to, of_the_machine[i]), MS_RDONLY);
    }
    return fault;
}

// Device files that a container has too, and the GPUs'.
static const char *show_devices(const char *to) {
    static const char *const plain[] = {"null", "zero", "full", "random", "urandom"};
    const char *fault = NULL;
    if (mount("tmpfs", to, "tmpfs", MS_NOSUID, "mode=0755") != 0)
        return fault_at("/dev");
    for (size_t i = 0; i < sizeof plain / sizeof *plain && fault == NULL; i++)
        fault = show_file(text("/dev/%s", plain[i]), text("%s/%s", to, plain[i]));
    struct names entries = folder_entries("/dev");
    for (size_t i = 0; i < entries.count && fault == NULL; i++) {
        struct stat status;
        char *from = text("/dev/%s", entries.item[i]);
        if (starts_with(entries.item[i], "nvidia") && stat(from, &status) == 0 && S_ISCHR(status.st_mode))
            fault = show_file(from, text("%s/%s", to, entries.item[i]));
    }
    if (fault == NULL && mkdir(text("%s/shm", to), 01777) == 0 &&
        mount("tmpfs", text("%s/shm", to), "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") != 0)
        fault = fault_at("/dev/shm");
    return fault;
}

static bool has_folder(const char *root, const char *name) {
    struct stat status;
    return lstat(text("%s/%s", root, name), &status) == 0 && S_ISDIR(status.st_mode);
}

const char *system_show(const char *root) {
    const char *fault = NULL;
    if (has_folder(root, "dev"))
        fault = show_devices(text("%s/dev", root));
    if (fault == NULL && has_folder(root, "proc"))
        fault = show_proc(text("%s/proc", root));
    if (fault == NULL && has_folder(root, "sys"))
        fault = show_place("/sys", text("%s/sys", root), MS_RDONLY);
    return fault;
}

const char *driver_show(const char *root, const char *libraries, const struct names *files) {
    static const char *const wanted[] = {"dev", "proc", "sys"};
    for (size_t i = 0; i < 3; i++)
        if (!has_folder(root, wanted[i]))
            return text("%s has no folder %s: the driver has no place in it", root, wanted[i]);
    if (mkdir(libraries, 0755) != 0)
        return fault_at(libraries);
    const char *fault = NULL;
    for (size_t i = 0; i < files->count && fault == NULL; i++)
        fault = show_file(files->item[i], text("%s/%s", libraries, base_name(files->item[i])));
    return fault ? fault : system_show(root);
}
