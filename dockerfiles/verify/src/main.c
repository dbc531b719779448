// ort-verify: does the ONNX Runtime of this system bring up its CUDA execution provider?
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "root.h"

static const char usage[] =
    "Usage: ort-verify [options]\n"
    "Tells whether the ONNX Runtime of this system can use CUDA, and if not, which library is at fault.\n"
    "\n"
    "  --tier static|load|run  how far to go (default: static)\n"
    "                          static: files, links and versions; load: the CUDA provider comes up until\n"
    "                          \"no device\", no GPU needed; run: on a GPU (not built in yet)\n"
    "  --stub FILE             a stub libcuda.so.1 that stands in for the driver in tier load\n"
    "  --root DIR              judge an unpacked root file system instead of this one (as root, or where user\n"
    "                          namespaces are allowed); tier load runs its code, without network or rights\n"
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
    const char *stub, *root, *manifest, *report;
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
        {"root", required_argument, NULL, 'R'},     {"help", no_argument, NULL, 'h'},
        {0}};
    struct options options = {.tier = TIER_STATIC, .manifest = NULL, .seconds = 120};
    for (int letter; (letter = getopt_long(count, words, "", known, NULL)) != -1;) {
        switch (letter) {
        case 't': options.tier = tier_of(optarg); break;
        case 's': options.stub = optarg; break;
        case 'R': options.root = optarg; break;
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
    if (options.root != NULL && (options.report != NULL || options.manifest != NULL))
        wrong("--root goes without --report and --manifest");
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

static int tell(const struct report *report, const struct options *options) {
    char *json = report_json(report);
    fputs(json, stdout);
    fflush(stdout);
    if (!options->json)
        report_words(report);
    const char *unwritten = options->report ? write_whole(options->report, json) : NULL;
    if (unwritten != NULL) {
        fprintf(stderr, "ort-verify: %s\n", unwritten);
        return EXIT_ENVIRONMENT;
    }
    return (int)report_exit_code(report);
}

// Returns when the root could not be entered.
static int enter(const struct options *options) {
    char *root = realpath(options->root, NULL);
    if (root == NULL)
        wrong(text("--root %s: no such folder", options->root));
    struct names words = {0};
    names_add(&words, "ort-verify");
    names_add(&words, text("--tier=%s", tier_names[options->tier]));
    names_add(&words, text("--timeout=%d", options->seconds));
    if (options->json)
        names_add(&words, "--json");
    const char *stub = options->stub ? realpath(options->stub, NULL) : NULL;
    bool unfit = false;
    const char *fault = root_enter(root, stub, words, &unfit);
    if (!unfit) {
        fprintf(stderr, "ort-verify: %s\n", fault);
        return EXIT_ENVIRONMENT;
    }
    struct report report = {.target = root, .tier = options->tier};
    report_add(&report, "base.libraries", FAIL, "take a base with glibc: Debian, Ubuntu, Rocky", "%s", fault);
    return tell(&report, options);
}

int main(int count, char **words) {
    struct options options = read_options(count, words);
    if (options.root != NULL)
        return enter(&options);
    struct report report = {.tier = options.tier};
    struct scene scene = {.report = &report,
                          .image_environment = options.report != NULL,
                          .unpacked_root = getenv(root_variable) != NULL,
                          .stub = options.stub ? realpath(options.stub, NULL) : NULL,
                          .seconds = options.seconds};
    const char *path = options.manifest ? options.manifest : "/usr/share/ortimg/manifest.json";
    const char *fault = manifest_read(path, &scene.manifest);
    report.target = scene.unpacked_root      ? getenv(root_variable)
                    : scene.manifest.present ? scene.manifest.identifier
                                             : "this system";
    scene.conf = conf_folders();
    scene.variable = environment_folders();
    scene.cache = cache_entries();
    if (fault != NULL)
        report_add(&report, "manifest", FAIL, "build the image again: the file is written by its Dockerfile", "%s %s",
                   path, fault);
    else
        run_checks(&scene);
    return tell(&report, &options);
}
