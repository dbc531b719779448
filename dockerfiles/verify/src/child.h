// Runs a piece of work in a process of its own: a crash or a hang there is a result, not the end.
#ifndef ORT_VERIFY_CHILD_H
#define ORT_VERIFY_CHILD_H

#include "text.h"

struct outcome {
    bool hung;       // did not end in time, was killed with all its children
    bool complete;   // ended by itself with status 0
    int exit_status; // as a shell tells it: 139 for SIGSEGV
    char *report;    // what it wrote to its report pipe
    char *errors;    // the end of what it wrote to stdout and stderr
};

// `work` gets the report pipe and `argument`; it may also exec.
struct outcome child_run(void (*work)(int report, void *argument), void *argument, int seconds);

// "crashed: exit 139 (SIGSEGV)", "hang: …", "exit 1".
char *outcome_words(const struct outcome *outcome, int seconds);

// The last line with words in it, without colours, times, process numbers and host names.
char *last_line(const char *output);

#endif
