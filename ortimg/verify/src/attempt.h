// The attempts that run in a child: they load real code, so they may crash or hang.
#ifndef ORT_VERIFY_ATTEMPT_H
#define ORT_VERIFY_ATTEMPT_H

struct session_attempt {
    const char *stub; // NULL: none
    const char *core; // bare name of libonnxruntime
};
// Brings up the CUDA EP and a session with it.
void attempt_session(int report, void *session_attempt);

struct touch_attempt {
    const char *stub;
    const char *library;       // bare name or path
    const char *const *checks; // functions to call: `int name(void)`, 0 is success; NULL-terminated
    const char *const *makers; // functions to call: `int name(void **)`, 0 is success; NULL-terminated
    const char *version;       // `size_t name(void)`, its result goes into the report; NULL: none
};
// Opens a library and calls what makes it open its parts.
void attempt_touch(int report, void *touch_attempt);

#endif
