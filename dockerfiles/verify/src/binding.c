// Runs whose inputs lie on the GPU and whose outputs stay there.
#include "ask.h"
#include "session.h"

// BindInput copies what it is given to where the model wants it, once:
// https://github.com/microsoft/onnxruntime/blob/v1.21.0/onnxruntime/core/session/IOBinding.cc
void *binding_make(const struct ort *ort, void *session, const struct feed *feed, int device) {
    void *binding = NULL, *memory = NULL;
    if (!ASK(ort, CREATE_IO_BINDING, (void *, void **), session, &binding))
        return NULL;
    bool good = ASK(ort, CREATE_MEMORY_INFO, (const char *, int, int, int, void **), "Cuda", ARENA_ALLOCATOR, device,
                    MEMORY_DEFAULT, &memory);
    for (size_t i = 0; i < feed->inputs && good; i++)
        good = ASK(ort, BIND_INPUT, (void *, const char *, const void *), binding, feed->input_name[i], feed->value[i]);
    for (size_t i = 0; i < feed->outputs && good; i++)
        good = ASK(ort, BIND_OUTPUT_TO_DEVICE, (void *, const char *, const void *), binding, feed->output_name[i],
                   memory);
    if (memory != NULL)
        ORT_CALL(ort->api, RELEASE_MEMORY_INFO, void (*)(void *))(memory);
    if (good)
        return binding;
    binding_end(ort, binding);
    return NULL;
}

bool binding_run(const struct ort *ort, void *session, void *binding, double *seconds) {
    double start = seconds_now();
    void *status = ORT_CALL(ort->api, RUN_WITH_BINDING, void *(*)(void *, void *, void *))(session, NULL, binding);
    *seconds = seconds_now() - start;
    return went_well(ort->api, status);
}

void binding_end(const struct ort *ort, void *binding) {
    ORT_CALL(ort->api, RELEASE_IO_BINDING, void (*)(void *))(binding);
}
