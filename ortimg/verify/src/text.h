// Small strings and lists of strings. Nothing is ever freed: the process lives for seconds.
#ifndef ORT_VERIFY_TEXT_H
#define ORT_VERIFY_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct names {
    char **item;
    size_t count;
};

// A fresh string, made like printf does.
char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));

void names_add(struct names *list, const char *name);
void names_add_once(struct names *list, const char *name);
bool names_has(const struct names *list, const char *name);
// "a, b, c"; with more than `most` names "a, b and 7 more". "none" for an empty list.
char *names_join(const struct names *list, size_t most);
// The parts of `whole` between `separator`s, empty parts included; nothing for NULL.
struct names split(const char *whole, char separator);

bool starts_with(const char *whole, const char *start);
bool ends_with(const char *whole, const char *end);

const char *base_name(const char *path);
char *folder_of(const char *path);
bool is_file(const char *path);
// Do both paths lead to one folder or file, links followed?
bool same_place(const char *one, const char *other);
// Are both files there, and equal byte for byte?
bool same_content(const char *one, const char *other);
// Names in a folder, sorted; nothing where it cannot be read.
struct names folder_entries(const char *folder);

// `libcublas.so.11` → `libcublas.so.`: the name without its version, also of `libfoo.so`.
char *unversioned(const char *library);

#endif
