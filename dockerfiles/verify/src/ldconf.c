// The two files of ldconfig: what it was told to look at (ld.so.conf), and what it wrote down (ld.so.cache).
#define _GNU_SOURCE
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "loader.h"

static void read_conf(const char *path, struct names *folders, int depth) {
    FILE *file = depth < 8 ? fopen(path, "r") : NULL; // a file may include itself
    char line[4096];
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "#\n")] = 0;
        char *word = line + strspn(line, " \t");
        if (starts_with(word, "include") && strcspn(word, " \t") == strlen("include")) {
            char *pattern = word + strlen("include");
            pattern += strspn(pattern, " \t");
            pattern[strcspn(pattern, " \t")] = 0;
            if (*pattern != '/')
                pattern = text("%s/%s", folder_of(path), pattern);
            glob_t found;
            if (glob(pattern, 0, NULL, &found) == 0) {
                for (size_t i = 0; i < found.gl_pathc; i++)
                    read_conf(found.gl_pathv[i], folders, depth + 1);
                globfree(&found);
            }
        } else if (*word == '/') {
            word[strcspn(word, " \t=")] = 0;
            size_t length = strlen(word);
            while (length > 1 && word[length - 1] == '/')
                word[--length] = 0;
            names_add_once(folders, word);
        }
    }
    if (file != NULL)
        fclose(file);
}

struct names conf_folders(void) {
    struct names folders = {0};
    read_conf("/etc/ld.so.conf", &folders, 0);
    return folders;
}

// Layout: sysdeps/generic/dl-cache.h of glibc. An old-format cache may stand before the new one.
struct old_header {
    char magic[12]; // "ld.so-1.7.0"
    uint32_t count;
};
enum { OLD_ENTRY = 12, ALIGNMENT = 8, X86_64 = 0x0303 }; // FLAG_X8664_LIB64 | FLAG_ELF_LIBC6

struct new_header {
    char magic[20]; // "glibc-ld.so.cache1.1"
    uint32_t count, strings_length;
    uint32_t unused[5];
};
struct new_entry {
    int32_t flags;
    uint32_t name, path; // offsets from the header
    uint32_t os_version;
    uint64_t hardware;
};

struct libraries cache_entries(void) {
    static const char path[] = "/etc/ld.so.cache";
    struct libraries found = {0};
    struct stat status;
    FILE *file = fopen(path, "r");
    char *bytes = file && fstat(fileno(file), &status) == 0 ? malloc((size_t)status.st_size + 1) : NULL;
    size_t length = bytes ? fread(bytes, 1, (size_t)status.st_size, file) : 0;
    if (file != NULL)
        fclose(file);
    if (length == 0) {
        found.fault = "/etc/ld.so.cache is absent or empty";
        return found;
    }
    bytes[length] = 0;
    size_t start = 0;
    if (length > sizeof(struct old_header) && memcmp(bytes, "ld.so-1.7.0", 11) == 0) {
        start = sizeof(struct old_header) + (size_t)((const struct old_header *)bytes)->count * OLD_ENTRY;
        start = (start + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    const struct new_header *header = (const void *)(bytes + start);
    if (start + sizeof *header > length || memcmp(header->magic, "glibc-ld.so.cache1.1", 20) != 0 ||
        start + sizeof *header + (uint64_t)header->count * sizeof(struct new_entry) > length) {
        found.fault = "/etc/ld.so.cache is damaged";
        return found;
    }
    const struct new_entry *entry = (const void *)(header + 1);
    for (uint32_t i = 0; i < header->count; i++) {
        if (entry[i].flags != X86_64 || start + entry[i].name >= length || start + entry[i].path >= length)
            continue;
        struct library *grown = realloc(found.item, (found.count + 1) * sizeof *grown);
        if (grown == NULL)
            abort();
        grown[found.count++] = (struct library){bytes + start + entry[i].name, bytes + start + entry[i].path};
        found.item = grown;
    }
    return found;
}
