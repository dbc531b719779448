// What the system's own loader finds. It is asked, not imitated: search order, run paths, LD_LIBRARY_PATH, cache
// and hardware folders are its business.
#ifndef ORT_VERIFY_LOADER_H
#define ORT_VERIFY_LOADER_H

#include "text.h"

struct library {
    char *name;
    char *path; // NULL: not found
};

struct libraries {
    struct library *item;
    size_t count;
    struct names complaints; // of versions: "/lib/libc.so.6: version `GLIBC_2.38' not found (required by …)"
    const char *fault;       // the loader could not be asked at all; NULL: it answered
};

// Everything that `file` and the bare names in `also` pull in. Runs no code of the libraries.
struct libraries loader_closure(const char *file, const struct names *also);
const struct library *library_named(const struct libraries *libraries, const char *name);
// Where the loader finds a bare name; NULL: nowhere.
char *loader_find(const char *name);

// Folders of /etc/ld.so.conf and what it includes.
struct names conf_folders(void);
// Folders that the loader searches without any configuration, where they exist.
struct names default_folders(void);
// Entries of /etc/ld.so.cache for x86-64, in its order. `fault`: absent or unreadable.
struct libraries cache_entries(void);
// Parts of LD_LIBRARY_PATH; an empty part is the current directory.
struct names environment_folders(void);

#endif
