#include "reading.h"

#include <stdlib.h>
#include <string.h>

#include "cJSON.h"

// "device.name \"NVIDIA H200\"" goes to its place; a place with a "+" is a list that grows.
static void keep(cJSON *kept, char *line) {
    char *value = strchr(line, ' ');
    if (value == NULL)
        return;
    *value++ = 0;
    cJSON *item = cJSON_Parse(value);
    struct names keys = split(line, '.');
    for (size_t i = 0; i + 1 < keys.count; i++) {
        cJSON *inner = cJSON_GetObjectItemCaseSensitive(kept, keys.item[i]);
        kept = inner ? inner : cJSON_AddObjectToObject(kept, keys.item[i]);
    }
    char *last = keys.item[keys.count - 1], *plus = strchr(last, '+');
    if (item == NULL)
        return; // cut
    if (plus == NULL) {
        cJSON_AddItemToObject(kept, last, item);
        return;
    }
    *plus = 0;
    cJSON *list = cJSON_GetObjectItemCaseSensitive(kept, last);
    cJSON_AddItemToArray(list ? list : cJSON_AddArrayToObject(kept, last), item);
}

struct reading read_report(const struct outcome *outcome) {
    struct reading reading = {.kept = cJSON_CreateObject()};
    struct names lines = split(outcome->report, '\n');
    bool end = false;
    for (size_t i = 0; i < lines.count; i++) {
        char *line = lines.item[i];
        if (starts_with(line, "at ")) {
            struct step *grown = realloc(reading.step, (reading.count + 1) * sizeof *grown);
            if (grown == NULL)
                abort();
            grown[reading.count++] = (struct step){line + strlen("at "), NULL};
            reading.step = grown;
        } else if (starts_with(line, "error ") && reading.count > 0)
            reading.step[reading.count - 1].error = last_line(line + strlen("error "));
        else if (starts_with(line, "version "))
            reading.version = line + strlen("version ");
        else if (starts_with(line, "put "))
            keep(reading.kept, line + strlen("put "));
        else if (strcmp(line, "end") == 0)
            end = true;
    }
    reading.whole = end && outcome->complete;
    return reading;
}

const struct step *step_named(const struct reading *reading, const char *name) {
    for (size_t i = 0; i < reading->count; i++)
        if (strcmp(reading->step[i].name, name) == 0)
            return &reading->step[i];
    return NULL;
}

const struct step *first_error(const struct reading *reading) {
    for (size_t i = 0; i < reading->count; i++)
        if (reading->step[i].error != NULL)
            return &reading->step[i];
    return NULL;
}

static char *word_at(const char *start) {
    return text("%.*s", (int)strspn(start, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-"), start);
}

char *library_in(const char *output) {
    static const char opening[] = ": cannot open shared object file", loading[] = "Could not load library ";
    const char *found = strstr(output, opening);
    if (found != NULL) {
        const char *start = found;
        while (start > output && strchr(" \n\t:/", start[-1]) == NULL)
            start--;
        return word_at(start);
    }
    found = strstr(output, loading);
    return found != NULL ? word_at(found + strlen(loading)) : NULL;
}

int cuda_failure(const char *error) {
    static const char mark[] = "CUDA failure ";
    const char *found = error ? strstr(error, mark) : NULL;
    return found ? atoi(found + strlen(mark)) : -1;
}
