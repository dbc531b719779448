#include "saved.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cJSON.h"
#include "kept.h"
#include "npy.h"
#include "report.h"
#include "talk.h"

static const char index_name[] = "tensors.json";
enum { LONGEST_NAME = 80, LARGEST_INDEX = 1 << 24 };

// A name of a tensor holds anything, a file's name does not: "output-000-logits.npy".
static char *file_name(const char *role, size_t number, const char *name) {
    char *made = text("%s-%03zu-%.*s.npy", role, number, LONGEST_NAME, name);
    for (char *letter = made; *letter != 0; letter++)
        if (!isalnum((unsigned char)*letter) && strchr("-_.", *letter) == NULL)
            *letter = '_';
    return made;
}

static const char *write_one(const char *folder, const char *role, size_t number, const char *name,
                             const struct tensor *tensor, cJSON *list) {
    cJSON *row = cJSON_CreateObject();
    cJSON_AddItemToArray(list, row);
    cJSON_AddStringToObject(row, "name", name);
    if (tensor->kind == 0) {
        cJSON_AddStringToObject(row, "skipped", "no tensor of numbers");
        return NULL;
    }
    char *file = file_name(role, number, name);
    cJSON_AddStringToObject(row, "type", kind_name(tensor->kind));
    cJSON *shape = cJSON_AddArrayToObject(row, "shape");
    for (size_t i = 0; i < tensor->shape.rank; i++)
        cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)tensor->shape.size[i]));
    cJSON_AddStringToObject(row, "file", file);
    return npy_write(text("%s/%s", folder, file), tensor);
}

const char *saved_write(const char *folder, const struct maker *maker, const struct feed *feed,
                        const struct tensor *output) {
    cJSON *index = cJSON_CreateObject();
    cJSON_AddNumberToObject(index, "schema", 1);
    cJSON_AddStringToObject(index, "ort", maker->ort);
    cJSON_AddStringToObject(index, "provider", maker->cpu ? "cpu" : "cuda");
    cJSON_AddStringToObject(index, "model", maker->model);
    cJSON_AddBoolToObject(index, "tf32", maker->tf32);
    cJSON *inputs = cJSON_AddArrayToObject(index, "inputs"), *outputs = cJSON_AddArrayToObject(index, "outputs");
    const char *fault = NULL;
    for (size_t i = 0; i < feed->inputs && fault == NULL; i++)
        fault = write_one(folder, "input", i, feed->input_name[i], &feed->input[i], inputs);
    for (size_t i = 0; i < feed->outputs && fault == NULL; i++)
        fault = write_one(folder, "output", i, feed->output_name[i], &output[i], outputs);
    char *printed = cJSON_Print(index); // the index comes last: with it the folder is whole
    return fault ? fault : write_whole(text("%s/%s", folder, index_name), text("%s\n", printed));
}

static cJSON *read_index(const char *folder, const char **fault) {
    const char *path = text("%s/%s", folder, index_name);
    FILE *file = fopen(path, "r");
    char *bytes = file ? malloc(LARGEST_INDEX) : NULL;
    size_t length = bytes ? fread(bytes, 1, LARGEST_INDEX, file) : 0;
    if (file == NULL)
        *fault = text("cannot read %s: %s; --save-outputs of another run writes it", path, strerror(errno));
    else
        fclose(file);
    cJSON *index = bytes ? cJSON_ParseWithLength(bytes, length) : NULL;
    if (*fault == NULL && (kept_number(index, "schema") != 1 || !cJSON_IsArray(kept_item(index, "inputs")) ||
                           !cJSON_IsArray(kept_item(index, "outputs"))))
        *fault = text("%s is not what --save-outputs writes", path);
    return index;
}

static const cJSON *row_named(const cJSON *list, const char *name) {
    const cJSON *row;
    cJSON_ArrayForEach(row, list) if (strcmp(kept_words(row, "name"), name) == 0) return row;
    return NULL;
}

// The tensor of a row. One that was skipped has the kind 0.
static const char *read_one(const char *folder, const cJSON *row, struct tensor *out) {
    *out = (struct tensor){0};
    if (kept_item(row, "skipped") != NULL)
        return NULL;
    out->kind = kind_named(kept_words(row, "type"));
    const cJSON *size, *file = kept_item(row, "file");
    cJSON_ArrayForEach(size, kept_item(row, "shape")) {
        if (out->shape.rank == MOST_DIMENSIONS || !cJSON_IsNumber(size) || size->valuedouble < 0)
            out->kind = 0;
        else
            out->shape.size[out->shape.rank++] = (int64_t)size->valuedouble;
    }
    if (out->kind == 0 || !cJSON_IsString(file) || strchr(file->valuestring, '/') != NULL)
        return text("%s/%s is not what --save-outputs writes", folder, index_name);
    return npy_read(text("%s/%s", folder, file->valuestring), out);
}

static const char *read_all(const char *folder, const cJSON *list, size_t *count, char ***names,
                            struct tensor **tensors) {
    const cJSON *row;
    *count = 0;
    *names = calloc((size_t)cJSON_GetArraySize(list) + 1, sizeof **names);
    *tensors = calloc((size_t)cJSON_GetArraySize(list) + 1, sizeof **tensors);
    if (*names == NULL || *tensors == NULL)
        abort();
    cJSON_ArrayForEach(row, list) {
        const char *fault = read_one(folder, row, &(*tensors)[*count]);
        if (fault != NULL)
            return fault;
        (*names)[(*count)++] = text("%s", kept_words(row, "name"));
    }
    return NULL;
}

const char *saved_read(const char *folder, struct feed *feed, struct tensor **output) {
    const char *fault = NULL;
    const cJSON *index = read_index(folder, &fault);
    *feed = (struct feed){0};
    if (fault == NULL)
        fault = read_all(folder, kept_item(index, "inputs"), &feed->inputs, &feed->input_name, &feed->input);
    if (fault == NULL)
        fault = read_all(folder, kept_item(index, "outputs"), &feed->outputs, &feed->output_name, output);
    return fault;
}

static bool same_form(const struct tensor *one, const struct tensor *other) {
    return one->kind == other->kind && shape_fits(&one->shape, &other->shape);
}

static const char *form_words(const struct tensor *tensor) {
    return tensor->kind ? text("%s %s", kind_name(tensor->kind), shape_words(&tensor->shape)) : "no tensor of numbers";
}

// Which of our inputs the reference had not; NULL: all are the same.
static const char *other_input(const char *folder, const cJSON *inputs, const struct feed *feed, const char **fault) {
    for (size_t i = 0; i < feed->inputs; i++) {
        const cJSON *row = row_named(inputs, feed->input_name[i]);
        struct tensor theirs = {0}, *ours = &feed->input[i];
        if (row == NULL)
            return text("%s: the reference has no such input", feed->input_name[i]);
        if ((*fault = read_one(folder, row, &theirs)) != NULL)
            return NULL;
        if (!same_form(ours, &theirs))
            return text("%s: %s here, %s there", feed->input_name[i], form_words(ours), form_words(&theirs));
        if (memcmp(ours->data, theirs.data, ours->count * kind_size(ours->kind)) != 0)
            return text("%s: other numbers", feed->input_name[i]);
        free(theirs.data);
    }
    return cJSON_GetArraySize(inputs) == (int)feed->inputs ? NULL : "the reference has more inputs";
}

static cJSON *compare_one(const char *name, const struct tensor *ours, const struct tensor *theirs) {
    cJSON *told = cJSON_CreateObject();
    cJSON_AddStringToObject(told, "name", name);
    if (!same_form(ours, theirs)) {
        cJSON_AddStringToObject(told, "fault", text("%s here, %s there", form_words(ours), form_words(theirs)));
        return told;
    }
    if (ours->kind == 0) {
        cJSON_AddStringToObject(told, "skipped", "no tensor of numbers");
        return told;
    }
    struct difference worst = tensor_difference(ours->kind, ours->data, theirs->data, ours->count);
    cJSON_AddStringToObject(told, "type", kind_name(ours->kind));
    cJSON_AddStringToObject(told, "shape", shape_words(&ours->shape));
    cJSON_AddNumberToObject(told, "relative_error", worst.largest); // null: endless
    cJSON_AddNumberToObject(told, "at", (double)worst.at);
    cJSON_AddNumberToObject(told, "got", worst.got);
    cJSON_AddNumberToObject(told, "wanted", worst.wanted);
    return told;
}

static void put_fault(const char *name, const char *fault) {
    cJSON *told = cJSON_CreateObject();
    cJSON_AddStringToObject(told, "name", name);
    cJSON_AddStringToObject(told, "fault", fault);
    put("reference.outputs+", told);
}

const char *saved_compare(const char *folder, const struct feed *feed, const struct tensor *output) {
    const char *fault = NULL;
    const cJSON *index = read_index(folder, &fault), *row;
    if (fault != NULL)
        return fault;
    put_text("reference.ort", kept_words(index, "ort"));
    put_text("reference.provider", kept_words(index, "provider"));
    put("reference.tf32", cJSON_CreateBool(cJSON_IsTrue(kept_item(index, "tf32"))));
    const char *other = other_input(folder, kept_item(index, "inputs"), feed, &fault);
    if (fault != NULL)
        return fault;
    if (other != NULL) {
        put_text("reference.other_inputs", other);
        return NULL;
    }
    const cJSON *outputs = kept_item(index, "outputs");
    struct names ours = {0};
    for (size_t i = 0; i < feed->outputs; i++) {
        const char *name = feed->output_name[i];
        struct tensor theirs;
        names_add(&ours, name);
        if ((row = row_named(outputs, name)) == NULL) {
            put_fault(name, "the reference has no such output");
            continue;
        }
        if ((fault = read_one(folder, row, &theirs)) != NULL)
            return fault;
        put("reference.outputs+", compare_one(name, &output[i], &theirs));
        free(theirs.data);
    }
    cJSON_ArrayForEach(row, outputs) if (!names_has(&ours, kept_words(row, "name")))
        put_fault(kept_words(row, "name"), "only the reference has this output");
    return NULL;
}
