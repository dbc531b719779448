#include "talk.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cJSON.h"
#include "ort_api.h"
#include "text.h"

static int report_file;
static char last_error[2048];

void talk_to(int report) {
    report_file = report;
}

void say(const char *format, ...) {
    char line[2048];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(line, sizeof line - 1, format, list);
    va_end(list);
    if (length < 0 || (size_t)length > sizeof line - 2)
        length = sizeof line - 2;
    for (int i = 0; i < length; i++)
        if (line[i] == '\n')
            line[i] = ' ';
    line[length] = '\n';
    if (write(report_file, line, (size_t)length + 1) < 0)
        _exit(1);
}

void put(const char *place, cJSON *item) {
    char *printed = cJSON_PrintUnformatted(item);
    if (printed == NULL)
        abort();
    say("put %s %s", place, printed);
    cJSON_Delete(item);
    free(printed);
}

void put_text(const char *place, const char *value) {
    put(place, cJSON_CreateString(value));
}

void put_number(const char *place, double value) {
    put(place, cJSON_CreateNumber(value));
}

void *open_library(const char *name, int flags) {
    say("at open %s", base_name(name));
    void *library = dlopen(name, flags);
    if (library == NULL)
        say("error %s", dlerror());
    return library;
}

bool open_stub(const char *stub) {
    return stub == NULL || open_library(stub, RTLD_NOW | RTLD_GLOBAL) != NULL;
}

bool went_well(const void *api, const void *status) {
    if (status == NULL)
        return true;
    snprintf(last_error, sizeof last_error, "%s",
             ORT_CALL(api, GET_ERROR_MESSAGE, const char *(*)(const void *))(status));
    say("error %s", last_error);
    return false;
}

bool last_error_has(const char *words) {
    return strstr(last_error, words) != NULL;
}
