#define _GNU_SOURCE
#include "root.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "root_driver.h"

const char root_variable[] = "ORT_VERIFY_ROOT";

static const char *copy(const char *from, const char *to) {
    char piece[65536];
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    ssize_t got = in < 0 || out < 0 ? -1 : 1;
    while (got > 0 && (got = read(in, piece, sizeof piece)) > 0)
        if (write(out, piece, (size_t)got) != got)
            got = -1;
    if (got < 0 || close(out) != 0)
        return text("cannot copy %s: %s", from, strerror(errno));
    close(in);
    return NULL;
}

static void write_line(const char *path, const char *line) {
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file >= 0) {
        if (write(file, line, strlen(line)) < 0)
            fprintf(stderr, "ort-verify: %s: %s\n", path, strerror(errno));
        close(file);
    }
}

// Own mounts, no network; without root rights in a user namespace, where the system allows that.
static const char *leave_host(void) {
    unsigned uid = geteuid(), gid = getegid();
    int parts = CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC;
    if (unshare(uid == 0 ? parts : parts | CLONE_NEWUSER) != 0)
        return text("cannot leave the host's file system: %s (try as root)", strerror(errno));
    if (uid != 0) {
        write_line("/proc/self/setgroups", "deny");
        write_line("/proc/self/uid_map", text("0 %u 1", uid));
        write_line("/proc/self/gid_map", text("0 %u 1", gid));
    }
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 ? NULL
                                                                   : text("cannot part mounts: %s", strerror(errno));
}

// The root's code runs, so it gets no rights that it could use to leave again.
static void drop_rights(void) {
    for (int right = 0; prctl(PR_CAPBSET_READ, right) >= 0; right++)
        prctl(PR_CAPBSET_DROP, right);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

// Variables of CUDA mean inside what they mean here: which GPU, which cache.
static struct names environment(const struct entrance *entrance, const char *place) {
    struct names made = {0};
    bool lazy = false, cache = false;
    names_add(&made, text("%s=%s", root_variable, entrance->root));
    if (!entrance->driver)
        return made;
    for (char **entry = environ; *entry != NULL; entry++)
        if (starts_with(*entry, "CUDA_") || starts_with(*entry, "NVIDIA_TF32_OVERRIDE=")) {
            names_add(&made, *entry);
            lazy = lazy || starts_with(*entry, "CUDA_MODULE_LOADING=");
            cache = cache || starts_with(*entry, "CUDA_CACHE_PATH=");
        }
    if (!lazy) // as images of ortimg have it
        names_add(&made, "CUDA_MODULE_LOADING=LAZY");
    if (!cache) // what CUDA compiles must not stay in the root
        names_add(&made, text("CUDA_CACHE_PATH=/%s/cuda-cache", place));
    names_add(&made, text("LD_LIBRARY_PATH=/%s/driver", place));
    names_add(&made, text("TMPDIR=/%s", place));
    return made;
}

static char **as_words(struct names *names) {
    names->item = realloc(names->item, (names->count + 1) * sizeof *names->item);
    if (names->item == NULL)
        abort();
    names->item[names->count] = NULL;
    return names->item;
}

// The folder that holds what this process needs inside, and nobody else sees.
static const char *place_in(const char *root) {
    static const char *const places[] = {"run", "tmp", "mnt"};
    for (size_t i = 0; i < 3; i++) {
        struct stat status;
        if (lstat(text("%s/%s", root, places[i]), &status) == 0 && S_ISDIR(status.st_mode))
            return places[i];
    }
    return NULL;
}

static const char *show_folder(const char *from, const char *to, unsigned long flags) {
    if (mkdir(to, 0755) != 0)
        return text("cannot show %s inside: %s", from, strerror(errno));
    return show_place(from, to, flags);
}

// Folders of the user that go along.
static const char *show_folders(const struct entrance *entrance, const char *inside, const char *place,
                                struct names *words) {
    const char *fault = NULL;
    if (entrance->model != NULL) { // with its folder, which may hold its weights
        names_add(words, text("--model=/%s/models/%s", place, base_name(entrance->model)));
        fault = show_folder(folder_of(entrance->model), text("%s/models", inside), MS_RDONLY);
    }
    if (entrance->reference != NULL && fault == NULL) {
        names_add(words, text("--reference=/%s/reference", place));
        fault = show_folder(entrance->reference, text("%s/reference", inside), MS_RDONLY);
    }
    if (entrance->save != NULL && fault == NULL) {
        names_add(words, text("--save-outputs=/%s/outputs", place));
        fault = show_folder(entrance->save, text("%s/outputs", inside), 0);
    }
    return fault;
}

const char *root_enter(const struct entrance *entrance, struct names words, bool *unfit) {
    const char *root = entrance->root, *place = place_in(root), *fault;
    if (place == NULL)
        return text("%s has no folder run, tmp or mnt: not an unpacked root", root);
    char *inside = text("%s/%s", root, place);
    struct names driver = {0};
    if (entrance->driver)
        driver = driver_libraries();
    if ((fault = leave_host()) != NULL)
        return fault;
    if (mount("tmpfs", inside, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") != 0)
        return text("cannot mount on %s: %s", inside, strerror(errno));
    if ((fault = copy("/proc/self/exe", text("%s/ort-verify", inside))) != NULL)
        return fault;
    if (entrance->stub != NULL) {
        if ((fault = copy(entrance->stub, text("%s/stub-libcuda.so.1", inside))) != NULL)
            return fault;
        names_add(&words, text("--stub=/%s/stub-libcuda.so.1", place));
    }
    if (driver.count > 0 && (fault = driver_show(root, text("%s/driver", inside), &driver)) != NULL)
        return fault;
    if (driver.count == 0 && entrance->system && (fault = system_show(root)) != NULL)
        return fault;
    if ((fault = show_folders(entrance, inside, place, &words)) != NULL)
        return fault;
    if (chroot(root) != 0 || chdir("/") != 0)
        return text("cannot enter %s: %s", root, strerror(errno));
    drop_rights();
    struct names variables = environment(entrance, place);
    execve(text("/%s/ort-verify", place), as_words(&words), as_words(&variables));
    *unfit = errno == ENOENT; // of its loader
    if (*unfit)
        return "no /lib64/ld-linux-x86-64.so.2: not a glibc system for x86-64";
    return text("cannot start inside %s: %s", root, strerror(errno));
}
