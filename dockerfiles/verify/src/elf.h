// What a shared library says about itself. Read from the file, nothing of it is run.
#ifndef ORT_VERIFY_ELF_H
#define ORT_VERIFY_ELF_H

#include "text.h"

struct elf {
    const char *path;
    const char *soname;  // NULL: none
    const char *rpath;   // DT_RPATH, NULL: none
    const char *runpath; // DT_RUNPATH, NULL: none
    struct names needed;
    bool executable_stack;
    const unsigned char *bytes; // the mapped file
    size_t size;
};

// Reads a 64-bit x86 shared library. NULL, or why it is none: cut, empty, HTML, another machine's.
const char *elf_read(const char *path, struct elf *out);

// Does the library want `symbol` from another one? True also where its symbol table cannot be read.
bool elf_imports(const struct elf *library, const char *symbol);

#endif
