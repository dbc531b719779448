// ort-verify: does the ONNX Runtime of this system bring up its CUDA execution provider?
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static const char usage[] =
    "Usage: ort-verify [options]\n"
    "Tells whether the ONNX Runtime of this system can use CUDA, and if not, which library is at fault.\n"
    "\n"
    "  --tier static|load|run  how far to go (default: static)\n"
    "                          static: files, links and versions; load: the CUDA provider comes up until\n"
    "                          \"no device\", no GPU needed; run: on a GPU (not built in yet)\n"
    "  --stub FILE             a stub libcuda.so.1 that stands in for the driver in tier load\n"
    "  --manifest FILE         what the image should hold (default: /usr/share/ortimg/manifest.json, if it is there)\n"
    "  --report FILE           also write the JSON to FILE; says that this environment is the image's own,\n"
    "                          so that missing NVIDIA_* variables are a fault\n"
    "  --json                  no words on stderr, only the JSON on stdout\n"
    "  --timeout SECONDS       limit of one attempt to load (default: 120)\n"
    "  --help\n"
    "\n"
    "JSON on stdout, words on stderr. Exit: 0 pass, 1 fail, 2 wrong usage, 3 this machine cannot tell.\n";

struct options {
    enum tier tier;
    const char *stub, *manifest, *report;
    bool json;
    int seconds;
};

static _Noreturn void wrong(const char *what) {
    fprintf(stderr, "ort-verify: %s\nort-verify --help shows the options.\n", what);
    exit(EXIT_USAGE);
}

static enum tier tier_of(const char *word) {
    for (int tier = TIER_STATIC; tier <= TIER_RUN; tier++)
        if (strcmp(word, tier_names[tier]) == 0)
            return (enum tier)tier;
    wrong(text("--tier %s: it is static, load or run", word));
}

static struct options read_options(int count, char **words) {
    static const struct option known[] = {
        {"tier", required_argument, NULL, 't'},     {"stub", required_argument, NULL, 's'},
        {"manifest", required_argument, NULL, 'm'}, {"report", required_argument, NULL, 'r'},
        {"json", no_argument, NULL, 'j'},           {"timeout", required_argument, NULL, 'T'},
        {"help", no_argument, NULL, 'h'},           {0}};
    struct options options = {.tier = TIER_STATIC, .manifest = NULL, .seconds = 120};
    for (int letter; (letter = getopt_long(count, words, "", known, NULL)) != -1;) {
        switch (letter) {
        case 't': options.tier = tier_of(optarg); break;
        case 's': options.stub = optarg; break;
        case 'm': options.manifest = optarg; break;
        case 'r': options.report = optarg; break;
        case 'j': options.json = true; break;
        case 'T':
            options.seconds = atoi(optarg);
            if (options.seconds < 1 || options.seconds > 86400)
                wrong("--timeout: seconds, 1 to 86400");
            break;
        case 'h': fputs(usage, stdout); exit(EXIT_PASS);
        default: wrong("unknown option");
        }
    }
    if (optind < count)
        wrong(text("unexpected word: %s", words[optind]));
    if (options.stub != NULL && !is_file(options.stub))
        wrong(text("--stub %s: no such file", options.stub));
    if (options.manifest != NULL && !is_file(options.manifest))
        wrong(text("--manifest %s: no such file", options.manifest));
    return options;
}

static void run_checks(struct scene *scene) {
    check_environment(scene);
    check_ort(scene);
    check_run_paths(scene);
    check_loader_files(scene);
    check_cuda(scene);
    check_cudnn(scene);
    check_base(scene);
    if (scene->report->tier < TIER_LOAD)
        return;
    if (report_failed(scene->report, NULL)) { // no code of a system that is not as it should be
        report_add(scene->report, "load.session", SKIPPED, "cure the failures first", "not tried after the failures");
        return;
    }
    check_load(scene);
    check_touch(scene);
    if (scene->report->tier < TIER_RUN)
        return;
    scene->report->environment = true;
    report_add(scene->report, "run", SKIPPED, "use --tier load", "tier run is not built in yet: not verified on a GPU");
}

int main(int count, char **words) {
    struct options options = read_options(count, words);
    struct report report = {.tier = options.tier};
    struct scene scene = {.report = &report,
                          .image_environment = options.report != NULL,
                          .stub = options.stub ? realpath(options.stub, NULL) : NULL,
                          .seconds = options.seconds};
    const char *path = options.manifest ? options.manifest : "/usr/share/ortimg/manifest.json";
    const char *fault = manifest_read(path, &scene.manifest);
    report.target = scene.manifest.present ? scene.manifest.identifier : "this system";
    scene.conf = conf_folders();
    scene.variable = environment_folders();
    scene.cache = cache_entries();
    if (fault != NULL)
        report_add(&report, "manifest", FAIL, "build the image again: the file is written by its Dockerfile", "%s %s",
                   path, fault);
    else
        run_checks(&scene);

    char *json = report_json(&report);
    fputs(json, stdout);
    fflush(stdout);
    if (!options.json)
        report_words(&report);
    const char *unwritten = options.report ? write_whole(options.report, json) : NULL;
    if (unwritten != NULL) {
        fprintf(stderr, "ort-verify: %s\n", unwritten);
        return EXIT_ENVIRONMENT;
    }
    return (int)report_exit_code(&report);
}
