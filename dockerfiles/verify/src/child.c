#define _GNU_SOURCE
#include "child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { KEPT = 1 << 20 }; // bytes of output that are kept, the end of it

struct pipe_end {
    int file;
    char bytes[KEPT + 1];
    size_t length;
};

static pid_t running; // the group that a signal to us must end too

static void pass_on(int number) {
    if (running > 0)
        kill(-running, SIGKILL);
    signal(number, SIG_DFL);
    raise(number);
}

static void collect(struct pipe_end *end) {
    char piece[4096];
    ssize_t got = read(end->file, piece, sizeof piece);
    if (got <= 0) {
        if (got < 0 && errno == EINTR)
            return;
        close(end->file);
        end->file = -1;
        return;
    }
    size_t fresh = (size_t)got;
    if (end->length + fresh > KEPT) {
        size_t drop = end->length + fresh - KEPT;
        memmove(end->bytes, end->bytes + drop, end->length - drop);
        end->length -= drop;
    }
    memcpy(end->bytes + end->length, piece, fresh);
    end->length += fresh;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static _Noreturn void become_child(void (*work)(int, void *), void *argument, int report, int errors, pid_t parent) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    dup2(errors, STDERR_FILENO);
    dup2(errors, STDOUT_FILENO);
    work(report, argument);
    _exit(0);
}

struct outcome child_run(void (*work)(int, void *), void *argument, int seconds) {
    static struct pipe_end report, errors;
    int report_pipe[2], error_pipe[2];
    if (pipe(report_pipe) != 0 || pipe(error_pipe) != 0) {
        perror("ort-verify: pipe");
        exit(3);
    }
    signal(SIGINT, pass_on);
    signal(SIGTERM, pass_on);
    fflush(NULL);
    pid_t self = getpid(), child = fork();
    if (child == 0) {
        close(report_pipe[0]);
        close(error_pipe[0]);
        become_child(work, argument, report_pipe[1], error_pipe[1], self);
    }
    if (child < 0) {
        perror("ort-verify: fork");
        exit(3);
    }
    setpgid(child, child);
    running = child;
    close(report_pipe[1]);
    close(error_pipe[1]);
    report = (struct pipe_end){.file = report_pipe[0]};
    errors = (struct pipe_end){.file = error_pipe[0]};

    double limit = now() + seconds;
    bool ended = false;
    int status = 0;
    while ((report.file >= 0 || errors.file >= 0) && now() < limit) {
        // Asked before the poll: all that an ended child wrote is in the pipes then, and the poll finds it.
        ended = ended || waitpid(child, &status, WNOHANG) == child;
        struct pollfd wait_for[] = {{report.file, POLLIN, 0}, {errors.file, POLLIN, 0}};
        int ready = poll(wait_for, 2, 50);
        if (wait_for[0].revents != 0)
            collect(&report);
        if (wait_for[1].revents != 0)
            collect(&errors);
        // A grandchild may hold the pipes open after the child is gone.
        if (ready == 0 && ended)
            break;
    }
    // Pipes closed, yet still running: wait until the limit.
    while (!ended && !(ended = waitpid(child, &status, WNOHANG) == child) && now() < limit)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    kill(-child, SIGKILL);
    if (!ended)
        waitpid(child, &status, 0);
    running = 0;
    if (report.file >= 0)
        close(report.file);
    if (errors.file >= 0)
        close(errors.file);
    return (struct outcome){
        .hung = !ended,
        .complete = ended && status == 0,
        .exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
        .report = text("%s", report.bytes),
        .errors = text("%s", errors.bytes),
    };
}

char *outcome_words(const struct outcome *outcome, int seconds) {
    if (outcome->hung)
        return text("hang: it did not end within %d s and was stopped", seconds);
    switch (outcome->exit_status) {
    case 128 + SIGSEGV:
        return text("crash: exit 139 (SIGSEGV)");
    case 128 + SIGABRT:
        return text("crash: exit 134 (SIGABRT)");
    default:
        return text("exit %d", outcome->exit_status);
    }
}

// Cuts `key=value` words that differ from run to run: ORT writes host and device numbers into its errors.
static void cut_word(char *line, const char *key) {
    char *start;
    while ((start = strstr(line, key)) != NULL) {
        char *end = start + strcspn(start, " ;\n");
        end += strspn(end, " ;");
        memmove(start, end, strlen(end) + 1);
    }
}

char *last_line(const char *output) {
    struct names lines = split(output, '\n');
    for (size_t i = lines.count; i-- > 0;) {
        char *line = lines.item[i], *to = line;
        for (const char *from = line; *from != 0; from++) {
            if (*from == '\033') { // colours of ORT's log: ESC [ … m
                from += strcspn(from, "m");
                if (*from == 0)
                    break;
            } else if ((unsigned char)*from >= ' ')
                *to++ = *from;
        }
        *to = 0;
        cut_word(line, "hostname=");
        cut_word(line, "GPU=");
        char *mark = strstr(line, " [E:onnxruntime"); // after its date
        if (mark == NULL)
            mark = strstr(line, " [W:onnxruntime");
        line = mark != NULL ? mark + 1 : line;
        if (strspn(line, " ") != strlen(line))
            return line;
    }
    return text("nothing");
}
