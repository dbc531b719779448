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

const char *root_enter(const char *root, const char *stub, struct names words, bool *unfit) {
    static const char *const places[] = {"run", "tmp", "mnt"};
    const char *place = NULL, *fault;
    for (size_t i = 0; i < 3 && place == NULL; i++) {
        struct stat status;
        if (lstat(text("%s/%s", root, places[i]), &status) == 0 && S_ISDIR(status.st_mode))
            place = places[i];
    }
    if (place == NULL)
        return text("%s has no folder run, tmp or mnt: not an unpacked root", root);
    char *inside = text("%s/%s", root, place);
    if ((fault = leave_host()) != NULL)
        return fault;
    if (mount("tmpfs", inside, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") != 0)
        return text("cannot mount on %s: %s", inside, strerror(errno));
    if ((fault = copy("/proc/self/exe", text("%s/ort-verify", inside))) != NULL)
        return fault;
    if (stub != NULL) {
        if ((fault = copy(stub, text("%s/libcuda.so.1", inside))) != NULL)
            return fault;
        names_add(&words, text("--stub=/%s/libcuda.so.1", place));
    }
    words.item = realloc(words.item, (words.count + 1) * sizeof *words.item);
    if (words.item == NULL)
        return "out of memory";
    words.item[words.count] = NULL;
    if (chroot(root) != 0 || chdir("/") != 0)
        return text("cannot enter %s: %s", root, strerror(errno));
    drop_rights();
    char *environment[] = {text("%s=%s", root_variable, root), NULL};
    execve(text("/%s/ort-verify", place), words.item, environment);
    *unfit = errno == ENOENT; // of its loader
    if (*unfit)
        return "no /lib64/ld-linux-x86-64.so.2: not a glibc system for x86-64";
    return text("cannot start inside %s: %s", root, strerror(errno));
}
