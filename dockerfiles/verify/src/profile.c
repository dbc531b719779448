#include "profile.h"

#include <stdlib.h>
#include <string.h>

#include "cJSON.h"
#include "text.h"

// Each run of a node is an event "NAME_kernel_time" of category "Node", with the provider among its arguments:
// https://github.com/microsoft/onnxruntime/blob/v1.16.2/onnxruntime/core/framework/sequential_executor.cc
static const char kernel_end[] = "_kernel_time";

static const char *string_of(const cJSON *parent, const char *key) {
    const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(parent, key));
    return value ? value : "";
}

static int compare_nodes(const void *left, const void *right) {
    const struct profile_node *one = left, *other = right;
    int names = strcmp(one->name, other->name);
    int ops = names ? names : strcmp(one->op, other->op);
    return ops ? ops : strcmp(one->provider, other->provider);
}

// In the order of their names: a node that ran twice stands beside itself.
static void keep_one_of_each(struct profile *profile) {
    if (profile->count == 0)
        return;
    qsort(profile->node, profile->count, sizeof *profile->node, compare_nodes);
    size_t kept = 1;
    for (size_t i = 1; i < profile->count; i++)
        if (compare_nodes(&profile->node[kept - 1], &profile->node[i]) != 0)
            profile->node[kept++] = profile->node[i];
    profile->count = kept;
    size_t own = 0;
    for (size_t i = 0; i < profile->count; i++)
        if (starts_with(profile->node[i].op, "Memcpy"))
            profile->copies++;
        else
            profile->node[own++] = profile->node[i];
    profile->count = own;
}

const char *profile_read(const char *json, size_t length, struct profile *out) {
    *out = (struct profile){0};
    const cJSON *events = cJSON_ParseWithLength(json, length), *event;
    if (!cJSON_IsArray(events))
        return length == 0 ? "it is empty" : "it is cut, or not JSON";
    out->node = calloc((size_t)cJSON_GetArraySize(events) + 1, sizeof *out->node);
    if (out->node == NULL)
        return "it is too large";
    cJSON_ArrayForEach(event, events) {
        const cJSON *arguments = cJSON_GetObjectItemCaseSensitive(event, "args");
        const char *name = string_of(event, "name"), *provider = string_of(arguments, "provider");
        if (strcmp(string_of(event, "cat"), "Node") != 0 || !ends_with(name, kernel_end) || *provider == 0)
            continue;
        name = text("%.*s", (int)(strlen(name) - strlen(kernel_end)), name);
        if (*name == 0) // a node without a name is told from others by its number
            name = text("node %s", string_of(arguments, "node_index"));
        out->node[out->count++] = (struct profile_node){name, string_of(arguments, "op_name"), provider};
    }
    if (out->count == 0)
        return "it names no node that ran";
    keep_one_of_each(out);
    return NULL;
}

size_t profile_count(const struct profile *profile, const char *provider) {
    size_t count = 0;
    for (size_t i = 0; i < profile->count; i++)
        count += strcmp(profile->node[i].provider, provider) == 0;
    return count;
}
