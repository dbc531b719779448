#define _GNU_SOURCE
#include "cuda_settings.h"

#include <stdlib.h>
#include <string.h>

#include "cJSON.h"
#include "talk.h"

const char tf32_option[] = "use_tf32";
// "0" forbids TF32; with any other value ONNX Runtime before 1.18 lets cuBLAS use it.
static const char tf32_variable[] = "NVIDIA_TF32_OVERRIDE";

static struct cuda_options copy_of(const struct cuda_options *wish) {
    struct cuda_options copy = {.warnings = wish->warnings};
    for (size_t i = 0; i < wish->key.count; i++) {
        names_add(&copy.key, wish->key.item[i]);
        names_add(&copy.value, wish->value.item[i]);
    }
    return copy;
}

struct cuda_options cuda_settings(const struct cuda_options *wish, const char *version, bool *tf32_on) {
    struct cuda_options all = copy_of(wish);
    static const char *const ours[][2] = {
        {"device_id", "0"}, {"cudnn_conv_algo_search", "EXHAUSTIVE"}, {tf32_option, "0"}};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (cuda_option_value(wish, ours[i][0]) == NULL && cuda_option_known(ours[i][0], version)) {
            names_add(&all.key, ours[i][0]);
            names_add(&all.value, ours[i][1]);
        }
    for (size_t i = 0; i < all.key.count; i++)
        put_text(text("options.%s", all.key.item[i]), all.value.item[i]);
    bool has_option = cuda_option_known(tf32_option, version);
    if (!has_option)
        setenv(tf32_variable, "0", 0); // read when cuBLAS and cuDNN start, which is later
    const char *variable = getenv(tf32_variable);
    const char *option = has_option ? cuda_option_value(&all, tf32_option) : variable;
    *tf32_on = strcmp(option, "0") != 0 && (variable == NULL || strcmp(variable, "0") != 0);
    put("tf32", cJSON_CreateBool(*tf32_on));
    return all;
}

struct cuda_options cuda_with_tf32(const struct cuda_options *wish, const char *version, bool on) {
    struct cuda_options all = copy_of(wish);
    if (cuda_option_known(tf32_option, version)) {
        names_add(&all.key, tf32_option);
        names_add(&all.value, on ? "1" : "0");
    } else
        setenv(tf32_variable, on ? "1" : "0", 1);
    return all;
}
