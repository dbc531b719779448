#define _GNU_SOURCE
#include "elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// A part of the file, or NULL where the file ends before it does.
static const void *part(const struct elf *file, uint64_t offset, uint64_t length) {
    return offset <= file->size && length <= file->size - offset ? file->bytes + offset : NULL;
}

static const char *string_at(const struct elf *file, uint64_t offset) {
    const char *start = part(file, offset, 1);
    return start != NULL && memchr(start, 0, file->size - offset) != NULL ? start : NULL;
}

static const Elf64_Phdr *segments(const struct elf *file, size_t *count) {
    const Elf64_Ehdr *header = (const void *)file->bytes;
    *count = header->e_phnum;
    return part(file, header->e_phoff, (uint64_t)header->e_phnum * sizeof(Elf64_Phdr));
}

// The dynamic section speaks in addresses; the file has offsets.
static uint64_t offset_of(const struct elf *file, uint64_t address) {
    size_t count;
    const Elf64_Phdr *segment = segments(file, &count);
    for (size_t i = 0; i < count; i++)
        if (segment[i].p_type == PT_LOAD && address >= segment[i].p_vaddr &&
            address - segment[i].p_vaddr < segment[i].p_filesz)
            return address - segment[i].p_vaddr + segment[i].p_offset;
    return UINT64_MAX;
}

static const char *read_dynamic(struct elf *file, const Elf64_Phdr *segment) {
    const Elf64_Dyn *entry = part(file, segment->p_offset, segment->p_filesz);
    if (entry == NULL)
        return "cut: the file ends before its dynamic section";
    size_t count = segment->p_filesz / sizeof *entry;
    uint64_t strings = UINT64_MAX;
    for (size_t i = 0; i < count && entry[i].d_tag != DT_NULL; i++)
        if (entry[i].d_tag == DT_STRTAB)
            strings = offset_of(file, entry[i].d_un.d_ptr);
    if (strings == UINT64_MAX)
        return "damaged: no string table";
    for (size_t i = 0; i < count && entry[i].d_tag != DT_NULL; i++) {
        int64_t tag = entry[i].d_tag;
        if (tag != DT_NEEDED && tag != DT_SONAME && tag != DT_RPATH && tag != DT_RUNPATH)
            continue;
        const char *value = string_at(file, strings + entry[i].d_un.d_val);
        if (value == NULL)
            return "damaged: a name lies outside the file";
        if (tag == DT_NEEDED)
            names_add(&file->needed, value);
        else if (tag == DT_SONAME)
            file->soname = value;
        else if (tag == DT_RPATH)
            file->rpath = value;
        else
            file->runpath = value;
    }
    return NULL;
}

static const char *read_segments(struct elf *file) {
    const Elf64_Ehdr *header = part(file, 0, sizeof *header);
    if (header == NULL || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return "not an ELF file";
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != EM_X86_64)
        return "for another machine, not x86-64";
    size_t count;
    const Elf64_Phdr *segment = segments(file, &count);
    if (segment == NULL || header->e_phentsize != sizeof *segment)
        return "cut: the file ends before its segments";
    const Elf64_Phdr *dynamic = NULL;
    for (size_t i = 0; i < count; i++) {
        if (segment[i].p_type == PT_LOAD && part(file, segment[i].p_offset, segment[i].p_filesz) == NULL)
            return "cut: the file is shorter than its segments";
        if (segment[i].p_type == PT_DYNAMIC)
            dynamic = &segment[i];
        if (segment[i].p_type == PT_GNU_STACK && (segment[i].p_flags & PF_X) != 0)
            file->executable_stack = true;
    }
    return dynamic == NULL ? "not a shared library" : read_dynamic(file, dynamic);
}

const char *elf_read(const char *path, struct elf *out) {
    *out = (struct elf){.path = path};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return text("cannot be opened: %s", strerror(errno));
    struct stat status;
    const char *fault = NULL;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
        fault = "not a regular file";
    else if (status.st_size == 0)
        fault = "empty (0 bytes)";
    if (fault == NULL) {
        void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (bytes == MAP_FAILED)
            fault = text("cannot be read: %s", strerror(errno));
        else {
            out->bytes = bytes;
            out->size = (size_t)status.st_size;
        }
    }
    close(file);
    return fault != NULL ? fault : read_segments(out);
}

bool elf_imports(const struct elf *library, const char *symbol) {
    const Elf64_Ehdr *header = (const void *)library->bytes;
    const Elf64_Shdr *section =
        part(library, header->e_shoff, (uint64_t)header->e_shnum * sizeof(Elf64_Shdr));
    for (size_t i = 0; section != NULL && i < header->e_shnum; i++) {
        if (section[i].sh_type != SHT_DYNSYM || section[i].sh_link >= header->e_shnum)
            continue;
        const Elf64_Sym *entry = part(library, section[i].sh_offset, section[i].sh_size);
        uint64_t strings = section[section[i].sh_link].sh_offset;
        for (size_t k = 0; entry != NULL && k < section[i].sh_size / sizeof *entry; k++) {
            if (entry[k].st_shndx != SHN_UNDEF)
                continue;
            const char *name = string_at(library, strings + entry[k].st_name);
            if (name != NULL && strcmp(name, symbol) == 0)
                return true;
        }
        return false;
    }
    return true;
}
