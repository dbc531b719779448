// What an attempt writes to its report, line by line: "at STEP", "error TEXT" where that went wrong, "put PLACE JSON"
// for what is worth keeping, and "end" as its last. reading.h reads it.
#ifndef ORT_VERIFY_TALK_H
#define ORT_VERIFY_TALK_H

#include <stdbool.h>

struct cJSON;

// Everything below goes to this pipe.
void talk_to(int report);

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
// `place` is a path of keys, "device.name"; with a "+" at its end the item is added to the list there.
void put(const char *place, struct cJSON *item);
void put_text(const char *place, const char *value);
void put_number(const char *place, double value);

// dlopen, told.
void *open_library(const char *name, int flags);
// NULL: nothing to open. Its SONAME answers every later look-up of libcuda.so.1, also cudart's own dlopen.
bool open_stub(const char *stub);
// Did a step of ONNX Runtime go well? Tells what went wrong.
bool went_well(const void *api, const void *status);
// Did the last step that went wrong say so?
bool last_error_has(const char *words);

#endif
