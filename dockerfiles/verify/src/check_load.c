// Tier load: the CUDA EP is brought up for real and must stop at exactly "no device", CUDA failure 100.
// Then every library was found, bound and initialised. Anything else is a failure: 35 ("driver too old") also comes
// without any driver, and older versions crash there.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "attempt.h"
#include "attempt_python.h"
#include "check.h"
#include "reading.h"

enum { NO_DEVICE = 100 }; // cudaErrorNoDevice

static const char one_release[] = "two libraries are of different releases: take all from one CUDA and cuDNN set";
static const char version_check_end[] = "VersionCheck";
static const char load_check[] = "load.session", version_check[] = "ort.version", driver_check[] = "load.driver";

static void judge_version(struct scene *scene, const char *version) {
    const char *wanted = scene->manifest.ort_version;
    if (wanted != NULL && strcmp(version, wanted) != 0)
        report_add(scene->report, version_check, FAIL, "unpack the archive of the cell's own version",
                   "the library says it is ONNX Runtime %s, the cell wants %s", version, wanted);
    else
        report_add(scene->report, version_check, OK, NULL, "ONNX Runtime %s", version);
}

// A library's name is worth more than any other text.
static void blame_library(struct scene *scene, const char *check, const char *library, const char *where) {
    struct explanation why = explain_missing(scene, library);
    report_add(scene->report, check, FAIL, why.cure, "%s cannot be opened (%s): %s", library, where, why.cause);
}

static void judge_end(struct scene *scene, const struct outcome *outcome, const struct reading *reading) {
    const char *step = reading->count > 0 ? reading->step[reading->count - 1].name : "start";
    char *library = library_in(outcome->errors);
    if (library != NULL)
        blame_library(scene, load_check, library, text("%s at \"%s\"", outcome_words(outcome, scene->seconds), step));
    else
        report_add(scene->report, load_check, FAIL,
                   outcome->hung ? "see what it waits for: give --timeout more seconds, or run it under strace"
                                 : "see the last words; a driver stub that is not complete also ends so",
                   "%s at \"%s\", last words: %s", outcome_words(outcome, scene->seconds), step,
                   last_line(outcome->errors));
}

static void judge_error(struct scene *scene, const struct outcome *outcome, const struct step *step) {
    char *library = library_in(step->error);
    if (library == NULL)
        library = library_in(outcome->errors); // since 1.22 the name is only there
    int failure = cuda_failure(step->error);
    if (library != NULL)
        blame_library(scene, load_check, library, text("at \"%s\"", step->name));
    else if (failure == 35)
        report_add(scene->report, load_check, FAIL,
                   scene->stub ? "give the complete stub driver of ortimg's verifier with --stub"
                               : "the driver is too old for this CUDA: update it, or take an image with an older CUDA",
                   "CUDA failure 35 (driver older than the CUDA libraries) at \"%s\"", step->name);
    else {
        // Through Python the reason may be in the log alone.
        const char *last = last_line(outcome->errors);
        bool more = strcmp(last, "nothing") != 0 && strstr(step->error, last) == NULL;
        char *said = more ? text("%s, last words: %s", step->error, last) : text("%s", step->error);
        bool symbol = strstr(said, "undefined symbol") != NULL;
        report_add(scene->report, load_check, FAIL, symbol ? one_release : "see ONNX Runtime's text", "at \"%s\": %s",
                   step->name, said);
    }
}

static void judge(struct scene *scene, const struct outcome *outcome, const struct reading *reading) {
    if (reading->version != NULL)
        judge_version(scene, reading->version);
    if (!reading->whole) {
        judge_end(scene, outcome, reading);
        return;
    }
    const struct step *options = step_named(reading, "set device_id"), *session = step_named(reading, "create session");
    for (size_t i = 0; i < reading->count; i++) {
        const struct step *step = &reading->step[i];
        if (step->error != NULL && !((step == options || step == session) && cuda_failure(step->error) == NO_DEVICE)) {
            judge_error(scene, outcome, step);
            return;
        }
    }
    if (session == NULL)
        report_add(scene->report, load_check, FAIL, "report this as a fault of ort-verify", "no session was tried");
    else if (session->error != NULL)
        report_add(scene->report, load_check, OK, NULL,
                   "the CUDA EP stops at CUDA failure 100, no device: every library was found and initialised");
    else if (scene->stub != NULL)
        report_add(scene->report, load_check, FAIL, "this is not the CUDA EP of ONNX Runtime: take the GPU archive",
                   "a session came up with the stub driver, which has no device: CUDA was not used");
    else
        report_add(scene->report, load_check, OK, NULL, "a GPU answered: the session came up with the CUDA EP");
}

void check_load(struct scene *scene) {
    if (scene->stub == NULL && loader_find("libcuda.so.1") == NULL) {
        if (scene->no_gpu)
            scene->report->tier = TIER_STATIC; // no more can be said of CUDA here, and nothing more was asked
        else
            scene->report->environment = true;
        report_add(scene->report, driver_check, SKIPPED,
                   "give --stub FILE (ortimg's stub driver), or start the container with --gpus all",
                   "no libcuda.so.1 and no --stub: without a driver the CUDA EP says nothing");
        return;
    }
    struct session_attempt attempt = {scene->stub, scene->core_name};
    struct python_attempt python = {scene->stub, scene->manifest.python};
    struct outcome outcome = scene->manifest.python ? child_run(attempt_python, &python, scene->seconds)
                                                    : child_run(attempt_session, &attempt, scene->seconds);
    struct reading reading = read_report(&outcome);
    judge(scene, &outcome, &reading);
}

// cudnnCnnInferVersionCheck → libcudnn_cnn_infer.so.8
static char *part_of(const struct scene *scene, const char *function) {
    char *name = text("libcudnn");
    size_t end = strlen(function) - strlen(version_check_end);
    for (size_t i = strlen("cudnn"); i < end; i++)
        name = isupper((unsigned char)function[i]) ? text("%s_%c", name, tolower((unsigned char)function[i]))
                                                   : text("%s%c", name, function[i]);
    return text("%s.so.%d", name, scene->cudnn_major);
}

static void touch(struct scene *scene, struct touch_attempt *attempt, struct names *good, char **version) {
    static const char check[] = "load.libraries";
    struct outcome outcome = child_run(attempt_touch, attempt, scene->seconds);
    struct reading reading = read_report(&outcome);
    const struct step *error = first_error(&reading);
    const char *last = reading.count > 0 ? reading.step[reading.count - 1].name : "start";
    char *library = error ? library_in(error->error) : NULL;
    if (library == NULL && (error != NULL || !reading.whole))
        library = library_in(outcome.errors);
    if (library != NULL)
        blame_library(scene, check, library,
                      reading.whole ? text("at \"%s\"", error->name)
                                    : text("%s at \"%s\"", outcome_words(&outcome, scene->seconds), last));
    else if (!reading.whole)
        report_add(scene->report, check, FAIL,
                   report_failed(scene->report, load_check) ? "cure load.session first, it may be the same" : one_release,
                   "%s: %s at \"%s\", last words: %s", attempt->library, outcome_words(&outcome, scene->seconds), last,
                   last_line(outcome.errors));
    else if (error != NULL && ends_with(error->name, version_check_end))
        report_add(scene->report, check, FAIL, one_release, "%s is of another release than %s: %s %s",
                   part_of(scene, error->name), attempt->library, error->name, error->error);
    else if (error != NULL)
        report_add(scene->report, check, FAIL, one_release, "%s: \"%s\" %s", attempt->library, error->name,
                   error->error);
    else
        names_add_once(good, attempt->library);
    if (version != NULL)
        *version = reading.version;
}

// Each of these makes libcudnn open one of its parts; *VersionCheck compares the part's version with the rest.
// cuDNN 8.9 API reference, cudnn_ops_infer.h … cudnn_ops_train.h; they work without a GPU.
static const char *const checks_8[] = {"cudnnOpsInferVersionCheck", "cudnnCnnInferVersionCheck",
                                       "cudnnAdvInferVersionCheck", NULL};
static const char *const checks_8_train[] = {"cudnnOpsInferVersionCheck", "cudnnCnnInferVersionCheck",
                                             "cudnnAdvInferVersionCheck", "cudnnOpsTrainVersionCheck", NULL};
static const char *const checks_9[] = {"cudnnGraphVersionCheck", "cudnnOpsVersionCheck", "cudnnCnnVersionCheck",
                                       "cudnnAdvVersionCheck", NULL};
static const char *const makers[] = {"cudnnCreateTensorDescriptor", "cudnnCreateConvolutionDescriptor",
                                     "cudnnCreateRNNDescriptor", NULL};

static const char *dotted(int major, const char *number) {
    int value = atoi(number), unit = major >= 9 ? 10000 : 1000;
    return text("%d.%d.%d", value / unit, value % unit / 100, value % 100);
}

void check_touch(struct scene *scene) {
    struct names good = {0};
    char *version = NULL;
    for (size_t i = 0; i < scene->touch.count; i++)
        touch(scene, &(struct touch_attempt){.stub = scene->stub, .library = scene->touch.item[i]}, &good, NULL);
    if (scene->cudnn_major == 8 || scene->cudnn_major == 9) {
        bool train = names_has(&scene->touch, "libcudnn_ops_train.so.8");
        struct touch_attempt cudnn = {scene->stub, text("libcudnn.so.%d", scene->cudnn_major),
                                      scene->cudnn_major == 9 ? checks_9
                                      : train                 ? checks_8_train
                                                              : checks_8,
                                      makers, "cudnnGetVersion"};
        touch(scene, &cudnn, &good, &version);
    }
    if (report_failed(scene->report, "load.libraries"))
        return;
    if (version != NULL) {
        const char *found = dotted(scene->cudnn_major, version), *wanted = scene->manifest.cudnn_version;
        if (wanted != NULL && !starts_with(text("%s.", wanted), text("%s.", found)))
            report_add(scene->report, "cudnn.version", FAIL, "copy the cuDNN of the cell's own CUDA set",
                       "cuDNN says it is %s, the cell wants %s", found, wanted);
        else
            report_add(scene->report, "cudnn.version", OK, NULL, "cuDNN %s, its parts say the same", found);
    }
    report_add(scene->report, "load.libraries", OK, NULL, "opened one by one: %s", names_join(&good, 30));
}
