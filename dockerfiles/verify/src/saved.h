// What went into a model and what came out, kept in a folder so that another run can be held against it: one .npy file
// for each tensor, and tensors.json, which names them.
#ifndef ORT_VERIFY_SAVED_H
#define ORT_VERIFY_SAVED_H

#include "session.h"

// Who made the numbers.
struct maker {
    const char *ort, *model;
    bool cpu, tf32;
};

// NULL, or what went wrong.
const char *saved_write(const char *folder, const struct maker *maker, const struct feed *feed,
                        const struct tensor *output);
// What another process wrote: names and numbers of inputs and outputs. NULL, or what is wrong with the folder.
const char *saved_read(const char *folder, struct feed *feed, struct tensor **output);
// Holds outputs against those in `folder`, and tells the report under "reference". NULL, or what is wrong with the folder.
const char *saved_compare(const char *folder, const struct feed *feed, const struct tensor *output);

#endif
