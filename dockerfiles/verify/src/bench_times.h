// Runs a session over and over, in one thread or several, and keeps the times.
#ifndef ORT_VERIFY_BENCH_TIMES_H
#define ORT_VERIFY_BENCH_TIMES_H

#include "session.h"

struct load {
    const struct ort *ort;
    void *session;
    const struct feed *feed;
    bool bound;      // inputs lie on the GPU and outputs stay there; else both are in host memory
    int device;      // for that
    int threads;     // that call the session at once
    int warmup, runs; // of each thread
};

struct times {
    double p50, p95, p99, mean, least, most; // seconds of one run
    double per_second;                       // runs of all threads together
};

// False where a run went wrong; the report has been told.
bool times_measure(const struct load *load, struct times *out);
// Share of time in which the GPU did nothing while one thread ran the session without a pause; -1: not told.
double times_idle(const struct load *load);

#endif
