// The command line.
#ifndef ORT_VERIFY_OPTIONS_H
#define ORT_VERIFY_OPTIONS_H

#include "bench_wish.h"
#include "cuda_options.h"
#include "report.h"
#include "shape.h"

// What to run in tier run, and how.
struct run_wish {
    const char *model; // file, NULL: the model that ort-verify carries
    struct shape *shape;
    size_t shapes;
    struct cuda_options cuda;
    struct names allow_cpu; // operators that may run on the CPU; none: nothing may
    int warmup, runs;
    bool cpu;                    // on the CPU provider, where there is no GPU
    const char *save;            // folder for what goes in and what comes out, NULL: none
    const char *reference;       // such a folder of another run, NULL: none
};

struct options {
    enum tier tier;
    const char *stub, *root, *manifest, *report;
    bool json;
    int seconds; // limit of one attempt
    struct run_wish run;
    struct bench_wish bench;
};

// Ends the program (exit 0 or 2) where there is nothing to do, or the words are wrong.
struct options options_read(int count, char **words);
// Ends the program as a wrong command line does.
_Noreturn void options_wrong(const char *what);
// The words that say the same to another process, but for files: those it may see elsewhere.
struct names options_words(const struct options *options);

#endif
