// Findings, and the two ways to tell them: JSON for programs, words for people.
#ifndef ORT_VERIFY_REPORT_H
#define ORT_VERIFY_REPORT_H

#include "text.h"

enum verdict { OK, WARNING, FAIL, SKIPPED };

// How far to go; each tier holds the ones before it.
enum tier { TIER_STATIC, TIER_LOAD, TIER_RUN };
extern const char *const tier_names[];

enum exit_code { EXIT_PASS = 0, EXIT_FAIL = 1, EXIT_USAGE = 2, EXIT_ENVIRONMENT = 3 };

struct finding {
    const char *check;
    enum verdict verdict;
    char *evidence;
    const char *cure; // NULL: none needed
};

struct report {
    const char *target;
    enum tier tier;
    bool environment; // the machine is at fault, the image could not be judged
    struct finding *finding;
    size_t count;
    struct cJSON *run;   // numbers of tier run, an object; NULL: nothing was run
    struct cJSON *bench; // numbers of --bench, an object; NULL: nothing was measured
};

void report_add(struct report *report, const char *check, enum verdict verdict, const char *cure,
                const char *evidence, ...) __attribute__((format(printf, 5, 6)));
// Has one check (NULL: any) failed?
bool report_failed(const struct report *report, const char *check);

char *report_json(const struct report *report);
// One line a finding; the failures and their cures come last, where `docker build` shows them.
void report_words(const struct report *report);
// Writes a file whole or not at all. NULL, or what went wrong.
const char *write_whole(const char *path, const char *content);
enum exit_code report_exit_code(const struct report *report);

#endif
