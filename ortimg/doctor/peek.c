// Prints what a root file system holds, as far as the loader cares: folders, links, libraries with the parts of their
// ELF files that name what they need. It runs in images with glibc; others (musl, empty ones) are small, and exported.
//
// One record a line: `d PATH`, `l PATH TARGET`, `f PATH SIZE`, and below a file `s OFFSET BASE64`; last `e`.
// In names all but printable ASCII is written as %XX.
#define _GNU_SOURCE
#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 4 << 20, WHOLE = 16 << 20, DEEPEST = 64 }; // bytes of one section, of one whole file; folders

static const char *const skipped[] = {"/proc", "/sys", "/dev", "/run/ortimg-doctor"};

static void put_name(const char *name) {
    putchar(' ');
    for (const unsigned char *c = (const unsigned char *)name; *c; c++)
        if (*c > ' ' && *c < 127 && *c != '%')
            putchar(*c);
        else
            printf("%%%02X", *c);
}

static void put_bytes(const unsigned char *bytes, size_t count) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < count; i += 3) {
        uint32_t three = (uint32_t)bytes[i] << 16 | (i + 1 < count ? (uint32_t)bytes[i + 1] << 8 : 0) |
                         (i + 2 < count ? bytes[i + 2] : 0);
        putchar(letters[three >> 18]);
        putchar(letters[three >> 12 & 63]);
        putchar(i + 1 < count ? letters[three >> 6 & 63] : '=');
        putchar(i + 2 < count ? letters[three & 63] : '=');
    }
}

static unsigned char *part(int file, uint64_t offset, uint64_t count) {
    unsigned char *bytes = count > 0 && count <= WHOLE ? malloc(count) : NULL;
    if (bytes != NULL && pread(file, bytes, count, (off_t)offset) != (ssize_t)count) {
        free(bytes);
        return NULL;
    }
    return bytes;
}

static void put_part(int file, uint64_t offset, uint64_t count) {
    unsigned char *bytes = part(file, offset, count);
    if (bytes == NULL)
        return;
    printf("s %llu ", (unsigned long long)offset);
    put_bytes(bytes, count);
    putchar('\n');
    free(bytes);
}

static void put_elf(int file, uint64_t size) {
    Elf64_Ehdr head;
    if (pread(file, &head, sizeof head, 0) != sizeof head || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64) {
        put_part(file, 0, size < 64 ? size : 64);
        return;
    }
    put_part(file, 0, size < 4096 ? size : 4096);
    if (head.e_phoff > 0)
        put_part(file, head.e_phoff, (uint64_t)head.e_phnum * head.e_phentsize);
    uint64_t table = (uint64_t)head.e_shnum * head.e_shentsize;
    Elf64_Shdr *section = head.e_shentsize == sizeof *section ? (void *)part(file, head.e_shoff, table) : NULL;
    if (section == NULL)
        return;
    put_part(file, head.e_shoff, table);
    for (unsigned i = 0; i < head.e_shnum; i++) {
        uint32_t type = section[i].sh_type;
        int names = type == SHT_STRTAB && (i == head.e_shstrndx || (section[i].sh_flags & SHF_ALLOC));
        if ((names || type == SHT_DYNAMIC || type == SHT_GNU_verneed || type == SHT_GNU_verdef) &&
            section[i].sh_size <= MOST)
            put_part(file, section[i].sh_offset, section[i].sh_size);
    }
    free(section);
}

static void put_file(const char *path, const char *name, const struct stat *status) {
    int loader = strncmp(path, "/etc/ld.so", 10) == 0, library = strstr(name, ".so") != NULL;
    if (!loader && !library)
        return;
    putchar('f');
    put_name(path);
    printf(" %lld\n", (long long)status->st_size);
    int wanted = strncmp(name, "libcu", 5) == 0 || strncmp(name, "libnv", 5) == 0 ||
                 strncmp(name, "libonnxruntime", 14) == 0;
    int libc = strcmp(name, "libc.so.6") == 0 || strncmp(name, "libc-2", 6) == 0;
    if (!loader && !wanted && !libc)
        return;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return;
    if (loader || libc)
        put_part(file, 0, (uint64_t)status->st_size);
    else
        put_elf(file, (uint64_t)status->st_size);
    close(file);
}

static void walk(const char *folder, int depth) {
    for (size_t i = 0; i < sizeof skipped / sizeof *skipped; i++)
        if (strcmp(folder, skipped[i]) == 0)
            return;
    putchar('d');
    put_name(*folder ? folder : "/");
    putchar('\n');
    DIR *entries = depth < DEEPEST ? opendir(*folder ? folder : "/") : NULL;
    struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        char path[PATH_MAX], target[PATH_MAX];
        struct stat status;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path ||
            lstat(path, &status) != 0)
            continue;
        if (S_ISDIR(status.st_mode))
            walk(path, depth + 1);
        else if (S_ISREG(status.st_mode))
            put_file(path, entry->d_name, &status);
        else if (S_ISLNK(status.st_mode)) {
            ssize_t length = readlink(path, target, sizeof target - 1);
            target[length < 0 ? 0 : length] = 0;
            putchar('l');
            put_name(path);
            put_name(target);
            putchar('\n');
        }
    }
    if (entries != NULL)
        closedir(entries);
}

int main(void) {
    static char buffer[1 << 16];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    walk("", 0);
    puts("e");
    return fflush(stdout) == 0 ? 0 : 1;
}
