#include "attempt.h"

#include <dlfcn.h>
#include <unistd.h>

#include "model.h"
#include "ort_api.h"
#include "talk.h"
#include "text.h"

typedef void *(*create_function)(void **);
typedef void *(*create_env_function)(int, const char *, void **);
typedef void *(*providers_function)(char ***, int *);
typedef void *(*threads_function)(void *, int);
typedef void *(*update_function)(void *, const char *const *, const char *const *, size_t);
typedef void *(*append_function)(void *, const void *);
typedef void *(*session_function)(void *, const void *, size_t, void *, void **);

static bool has_cuda(const void *api) {
    char **providers = NULL;
    int count = 0;
    say("at list providers");
    if (!went_well(api, ORT_CALL(api, GET_AVAILABLE_PROVIDERS, providers_function)(&providers, &count)))
        return false;
    for (int i = 0; i < count; i++)
        if (starts_with(providers[i], "CUDA"))
            return true;
    say("error this library was built without CUDA");
    return false;
}

static void bring_up(const void *api) {
    void *env = NULL, *options = NULL, *cuda = NULL, *session = NULL;
    say("at create environment");
    if (!went_well(api, ORT_CALL(api, CREATE_ENV, create_env_function)(LOG_ERROR, "ort-verify", &env)) ||
        !has_cuda(api))
        return;
    say("at create options");
    if (!went_well(api, ORT_CALL(api, CREATE_SESSION_OPTIONS, create_function)(&options)))
        return;
    ORT_CALL(api, SET_INTRA_OP_NUM_THREADS, threads_function)(options, 1); // no pinning of threads to cores
    // Here ORT opens its CUDA provider, with all that the provider NEEDs.
    say("at open CUDA provider");
    if (!went_well(api, ORT_CALL(api, CREATE_CUDA_PROVIDER_OPTIONS, create_function)(&cuda)))
        return;
    // An explicit device is looked up at once, so "no device" may come from here …
    static const char *const key = "device_id", *const value = "0";
    say("at set device_id");
    went_well(api, ORT_CALL(api, UPDATE_CUDA_PROVIDER_OPTIONS, update_function)(cuda, &key, &value, 1));
    say("at append CUDA provider");
    if (!went_well(api, ORT_CALL(api, APPEND_CUDA_V2, append_function)(options, cuda)))
        return;
    // … and must come from here in any case.
    say("at create session");
    went_well(api, ORT_CALL(api, CREATE_SESSION_FROM_ARRAY, session_function)(env, model_bytes, model_size, options,
                                                                             &session));
}

void attempt_session(int report, void *argument) {
    const struct session_attempt *attempt = argument;
    talk_to(report);
    void *library;
    if (!open_stub(attempt->stub) || (library = open_library(attempt->core, RTLD_NOW)) == NULL) {
        say("end");
        return;
    }
    say("at ask for the API");
    struct ort_base *(*get_base)(void);
    *(void **)&get_base = dlsym(library, "OrtGetApiBase");
    const void *api = get_base ? get_base()->get_api(API_VERSION) : NULL;
    if (api == NULL)
        say("error no API of version %d: older than ONNX Runtime 1.14, or not ONNX Runtime", API_VERSION);
    else {
        say("version %s", get_base()->get_version());
        bring_up(api);
    }
    say("end");
    _exit(0); // no destructors: what counts has been seen
}

void attempt_touch(int report, void *argument) {
    const struct touch_attempt *attempt = argument;
    talk_to(report);
    void *library;
    if (!open_stub(attempt->stub) || (library = open_library(attempt->library, RTLD_NOW)) == NULL) {
        say("end");
        return;
    }
    for (size_t i = 0; attempt->checks != NULL && attempt->checks[i] != NULL; i++) {
        int (*check)(void);
        *(void **)&check = dlsym(library, attempt->checks[i]);
        say("at %s", attempt->checks[i]);
        int result = check ? check() : -1;
        if (result != 0)
            say("error %s %d", check ? "gives status" : "is not exported", result);
    }
    for (size_t i = 0; attempt->makers != NULL && attempt->makers[i] != NULL; i++) {
        int (*make)(void **);
        void *made = NULL;
        *(void **)&make = dlsym(library, attempt->makers[i]);
        say("at %s", attempt->makers[i]);
        int result = make ? make(&made) : -1;
        if (result != 0)
            say("error %s %d", make ? "gives status" : "is not exported", result);
    }
    if (attempt->version != NULL) {
        size_t (*version)(void);
        *(void **)&version = dlsym(library, attempt->version);
        say("at %s", attempt->version);
        if (version != NULL)
            say("version %zu", version());
        else
            say("error is not exported");
    }
    say("end");
    _exit(0);
}
