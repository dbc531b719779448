#include "text.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void *need(void *memory) {
    if (memory == NULL) {
        fputs("ort-verify: out of memory\n", stderr);
        exit(3);
    }
    return memory;
}

char *text(const char *format, ...) {
    va_list list;
    va_start(list, format);
    int length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    char *made = need(malloc((size_t)length + 1));
    va_start(list, format);
    vsnprintf(made, (size_t)length + 1, format, list);
    va_end(list);
    return made;
}

void names_add(struct names *list, const char *name) {
    list->item = need(realloc(list->item, (list->count + 1) * sizeof *list->item));
    list->item[list->count++] = text("%s", name);
}

bool names_has(const struct names *list, const char *name) {
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->item[i], name) == 0)
            return true;
    return false;
}

void names_add_once(struct names *list, const char *name) {
    if (!names_has(list, name))
        names_add(list, name);
}

char *names_join(const struct names *list, size_t most) {
    if (list->count == 0)
        return text("none");
    char *joined = text("%s", list->item[0]);
    size_t shown = list->count > most ? most : list->count;
    for (size_t i = 1; i < shown; i++)
        joined = text("%s, %s", joined, list->item[i]);
    return shown < list->count ? text("%s and %zu more", joined, list->count - shown) : joined;
}

struct names split(const char *whole, char separator) {
    struct names parts = {0};
    if (whole == NULL)
        return parts;
    for (const char *start = whole;; start++) {
        const char *end = strchr(start, separator);
        size_t length = end ? (size_t)(end - start) : strlen(start);
        names_add(&parts, text("%.*s", (int)length, start));
        if (end == NULL)
            return parts;
        start = end;
    }
}

bool starts_with(const char *whole, const char *start) {
    return strncmp(whole, start, strlen(start)) == 0;
}

bool ends_with(const char *whole, const char *end) {
    size_t length = strlen(whole), tail = strlen(end);
    return length >= tail && strcmp(whole + length - tail, end) == 0;
}

const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return text(".");
    return slash == path ? text("/") : text("%.*s", (int)(slash - path), path);
}

bool is_file(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

bool same_place(const char *one, const char *other) {
    struct stat a, b;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool same_content(const char *one, const char *other) {
    static char left[1 << 16], right[1 << 16];
    FILE *first = fopen(one, "rb"), *second = fopen(other, "rb");
    bool same = first != NULL && second != NULL;
    for (size_t got = 1; same && got > 0;) {
        got = fread(left, 1, sizeof left, first);
        same = fread(right, 1, sizeof right, second) == got && memcmp(left, right, got) == 0;
    }
    if (first != NULL)
        fclose(first);
    if (second != NULL)
        fclose(second);
    return same;
}

static int by_name(const void *left, const void *right) {
    return strcmp(*(char *const *)left, *(char *const *)right);
}

struct names folder_entries(const char *folder) {
    struct names entries = {0};
    DIR *open = opendir(folder);
    if (open == NULL)
        return entries;
    for (struct dirent *entry; (entry = readdir(open)) != NULL;)
        names_add(&entries, entry->d_name);
    closedir(open);
    qsort(entries.item, entries.count, sizeof *entries.item, by_name);
    return entries;
}

char *unversioned(const char *library) {
    const char *so = strstr(library, ".so");
    return so ? text("%.*s.so.", (int)(so - library), library) : text("%s", library);
}
