#define _GNU_SOURCE
#include "report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cJSON.h"

const char *const tier_names[] = {"static", "load", "run"};
static const char *const verdict_names[] = {"ok", "warning", "fail", "skipped"};

void report_add(struct report *report, const char *check, enum verdict verdict, const char *cure,
                const char *evidence, ...) {
    va_list list;
    char line[4096];
    va_start(list, evidence);
    vsnprintf(line, sizeof line, evidence, list);
    va_end(list);
    struct finding *grown = realloc(report->finding, (report->count + 1) * sizeof *grown);
    if (grown == NULL)
        abort();
    grown[report->count++] = (struct finding){check, verdict, text("%s", line), cure};
    report->finding = grown;
}

bool report_failed(const struct report *report, const char *check) {
    for (size_t i = 0; i < report->count; i++)
        if (report->finding[i].verdict == FAIL && (check == NULL || strcmp(report->finding[i].check, check) == 0))
            return true;
    return false;
}

static const char *overall(const struct report *report) {
    if (report_failed(report, NULL))
        return "fail";
    return report->environment ? "environment" : "pass";
}

enum exit_code report_exit_code(const struct report *report) {
    if (report_failed(report, NULL))
        return EXIT_FAIL;
    return report->environment ? EXIT_ENVIRONMENT : EXIT_PASS;
}

char *report_json(const struct report *report) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "schema", 1);
    cJSON_AddStringToObject(root, "target", report->target);
    cJSON_AddStringToObject(root, "tier", tier_names[report->tier]);
    cJSON_AddStringToObject(root, "verdict", overall(report));
    cJSON *findings = cJSON_AddArrayToObject(root, "findings");
    for (size_t i = 0; i < report->count; i++) {
        const struct finding *finding = &report->finding[i];
        cJSON *entry = cJSON_CreateObject();
        cJSON_AddStringToObject(entry, "check", finding->check);
        cJSON_AddStringToObject(entry, "verdict", verdict_names[finding->verdict]);
        cJSON_AddStringToObject(entry, "evidence", finding->evidence);
        if (finding->cure != NULL)
            cJSON_AddStringToObject(entry, "cure", finding->cure);
        else
            cJSON_AddNullToObject(entry, "cure");
        cJSON_AddItemToArray(findings, entry);
    }
    if (report->run != NULL)
        cJSON_AddItemReferenceToObject(root, "run", report->run);
    if (report->bench != NULL)
        cJSON_AddItemReferenceToObject(root, "bench", report->bench);
    char *printed = cJSON_Print(root);
    if (printed == NULL)
        abort();
    return text("%s\n", printed);
}

void report_words(const struct report *report) {
    for (size_t i = 0; i < report->count; i++)
        if (report->finding[i].verdict != FAIL)
            fprintf(stderr, "%-8s %-22s %s\n", verdict_names[report->finding[i].verdict],
                    report->finding[i].check, report->finding[i].evidence);
    if (!report_failed(report, NULL)) {
        fprintf(stderr, "ort-verify: %s, tier %s\n", overall(report), tier_names[report->tier]);
        return;
    }
    fprintf(stderr, "ort-verify: FAIL, tier %s\n", tier_names[report->tier]);
    for (size_t i = 0; i < report->count; i++)
        if (report->finding[i].verdict == FAIL)
            fprintf(stderr, "FAIL     %s: %s\n         cure: %s\n", report->finding[i].check,
                    report->finding[i].evidence, report->finding[i].cure ? report->finding[i].cure : "none known");
}

const char *write_whole(const char *path, const char *content) {
    char *temporary = text("%s.part", path);
    FILE *file = fopen(temporary, "w");
    if (file == NULL)
        return text("cannot write %s: %s", temporary, strerror(errno));
    bool good = fputs(content, file) != EOF && fflush(file) == 0 && fchmod(fileno(file), 0644) == 0;
    good = fclose(file) == 0 && good;
    if (good && rename(temporary, path) == 0)
        return NULL;
    const char *why = text("cannot write %s: %s", path, strerror(errno));
    unlink(temporary);
    return why;
}
