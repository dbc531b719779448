// ort-verify: does the ONNX Runtime of this system bring up its CUDA execution provider?
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "files.h"
#include "options.h"
#include "root.h"

static bool is_ours(const char *name) {
    return is_cuda(name) || is_core(name);
}

static void run_checks(struct scene *scene, const struct options *options) {
    bool run = options->tier >= TIER_RUN || options->bench.wanted;
    check_environment(scene);
    if (!check_readable(scene))
        return;
    check_ort(scene);
    check_run_paths(scene);
    check_loader_files(scene);
    check_cuda(scene);
    check_cudnn(scene);
    check_copies(scene);
    check_base(scene);
    if (options->tier < TIER_LOAD)
        return;
    if (report_failed(scene->report, NULL)) { // no code of a system that is not as it should be
        report_add(scene->report, "load.session", SKIPPED, "cure the failures first", "not tried after the failures");
        return;
    }
    check_load(scene);
    check_touch(scene);
    if (!run)
        return;
    if (report_failed(scene->report, NULL))
        report_add(scene->report, "run.session", SKIPPED, "cure the failures first", "not tried after the failures");
    else if (options->bench.wanted)
        check_bench(scene, options);
    else
        check_run(scene, &options->run);
}

// A model on the CPU is no proof that it runs on a GPU.
static enum tier tier_told(const struct options *options) {
    return options->run.cpu && options->tier == TIER_RUN ? TIER_LOAD : options->tier;
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
        options_wrong(text("--root %s: no such folder", options->root));
    struct entrance entrance = {.root = root,
                                .stub = options->stub ? realpath(options->stub, NULL) : NULL,
                                .model = options->run.model ? realpath(options->run.model, NULL) : NULL,
                                .save = options->run.save ? realpath(options->run.save, NULL) : NULL,
                                .reference = options->run.reference ? realpath(options->run.reference, NULL) : NULL,
                                .system = options->tier == TIER_RUN || options->bench.wanted,
                                .driver = (options->tier == TIER_RUN || options->bench.wanted) && !options->run.cpu};
    bool unfit = false;
    const char *fault = root_enter(&entrance, options_words(options), &unfit);
    if (!unfit) {
        fprintf(stderr, "ort-verify: %s\n", fault);
        return EXIT_ENVIRONMENT;
    }
    struct report report = {.target = root, .tier = tier_told(options)};
    report_add(&report, "base.libraries", FAIL, "take a base with glibc: Debian, Ubuntu, Rocky", "%s", fault);
    return tell(&report, options);
}

int main(int count, char **words) {
    struct options options = options_read(count, words);
    if (options.root != NULL)
        return enter(&options);
    struct report report = {.tier = tier_told(&options)};
    struct scene scene = {.report = &report,
                          .image_environment = options.report != NULL,
                          .unpacked_root = getenv(root_variable) != NULL,
                          .stub = options.stub ? realpath(options.stub, NULL) : NULL,
                          .seconds = options.seconds,
                          .no_gpu = options.run.cpu};
    const char *path = options.manifest ? options.manifest : "/usr/share/ortimg/manifest.json";
    const char *fault = manifest_read(path, &scene.manifest);
    report.target = scene.unpacked_root      ? getenv(root_variable)
                    : scene.manifest.present ? scene.manifest.identifier
                                             : "this system";
    scene.conf = conf_folders();
    scene.variable = environment_folders();
    scene.cache = cache_entries();
    if (scene.manifest.present)
        scene.files = files_named(is_ours);
    if (fault != NULL)
        report_add(&report, "manifest", FAIL, "build the image again: the file is written by its Dockerfile", "%s %s",
                   path, fault);
    else {
        const char *version = scene.manifest.ort_version; // without a manifest the attempt itself tells it
        const char *unknown = version ? cuda_options_fit(&options.run.cuda, version) : NULL;
        if (unknown != NULL)
            options_wrong(text("--option %s", unknown));
        run_checks(&scene, &options);
    }
    return tell(&report, &options);
}
