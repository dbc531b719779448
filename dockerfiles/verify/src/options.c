#define _GNU_SOURCE
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] =
    "Usage: ort-verify [options]\n"
    "Tells whether the ONNX Runtime of this system can use CUDA, and if not, which library is at fault.\n"
    "\n"
    "  --tier static|load|run  how far to go (default: static)\n"
    "                          static: files, links and versions; load: the CUDA provider comes up until\n"
    "                          \"no device\", no GPU needed; run: a model runs on the GPU, all of it, and gives\n"
    "                          what the CPU gives\n"
    "  --stub FILE             a stub libcuda.so.1 that stands in for the driver in tier load\n"
    "  --root DIR              judge an unpacked root file system instead of this one (as root, or where user\n"
    "                          namespaces are allowed); its code runs without network or rights, in tier run\n"
    "                          with this system's driver and GPUs\n"
    "  --manifest FILE         what the image should hold (default: /usr/share/ortimg/manifest.json, if it is there)\n"
    "  --report FILE           also write the JSON to FILE; says that this environment is the image's own,\n"
    "                          so that missing NVIDIA_* variables are a fault\n"
    "  --json                  no words on stderr, only the JSON on stdout\n"
    "  --timeout SECONDS       limit of one attempt (default: 120, in tier run 600: a first start may compile\n"
    "                          kernels for the GPU)\n"
    "  --help\n"
    "\n"
    "For tier run:\n"
    "  --model FILE            your own ONNX model (default: a small network of convolution, attention,\n"
    "                          reduction and Gemm)\n"
    "  --shape NAME=1x3x224x224  shape of one of its inputs; sizes that are left open are 1\n"
    "  --option KEY=VALUE      an option of the CUDA provider: gpu_mem_limit=4G, device_id=1, …\n"
    "                          (default: cudnn_conv_algo_search=EXHAUSTIVE, and no TF32)\n"
    "  --allow-cpu OP,…        operators that may run on the CPU (default: none)\n"
    "  --warmup N --runs N     runs before the timed ones, and timed ones (default: 5 and 20)\n"
    "  --save-outputs DIR      keep each input and output as a .npy file in DIR, and tensors.json, which names them\n"
    "  --reference DIR         hold the outputs against those that another run kept: ORT of another version, another\n"
    "                          GPU; the largest relative error of each may be 1e-3\n"
    "  --provider cuda|cpu     cpu: the same model on the CPU alone, where there is no GPU; proves nothing about\n"
    "                          CUDA, so the report says tier load (default: cuda)\n"
    "\n"
    "  --bench                 measure instead: the model on the CPU and on CUDA, with copies to and from the GPU and\n"
    "                          without, with TF32 and without; takes the options of tier run (--warmup 20 --runs 200)\n"
    "  --batch 1,8,32          sizes of the first dimension, of inputs whose model leaves it open\n"
    "  --concurrency 1,4       threads that call one session at once (default: 1)\n"
    "  --threads N             of the CPU provider (default: one for each core)\n"
    "                          an input may have several --shape: each is measured, with its own first run\n"
    "\n"
    "JSON on stdout, words on stderr. Exit: 0 pass, 1 fail, 2 wrong usage, 3 this machine cannot tell.\n";

_Noreturn void options_wrong(const char *what) {
    fprintf(stderr, "ort-verify: %s\nort-verify --help shows the options.\n", what);
    exit(EXIT_USAGE);
}

static enum tier tier_of(const char *word) {
    for (int tier = TIER_STATIC; tier <= TIER_RUN; tier++)
        if (strcmp(word, tier_names[tier]) == 0)
            return (enum tier)tier;
    options_wrong(text("--tier %s: it is static, load or run", word));
}

static int number_of(const char *option, const char *word, int least, int most) {
    char *end;
    long number = strtol(word, &end, 10);
    if (*word == 0 || *end != 0 || number < least || number > most)
        options_wrong(text("--%s %s: a whole number, %d to %d", option, word, least, most));
    return (int)number;
}

static void add_shape(struct run_wish *run, const char *word) {
    struct shape *grown = realloc(run->shape, (run->shapes + 1) * sizeof *grown);
    if (grown == NULL)
        abort();
    run->shape = grown;
    const char *fault = shape_read(word, &grown[run->shapes]);
    if (fault != NULL)
        options_wrong(text("--shape %s: %s", word, fault));
    run->shapes++;
}

static void add_operators(struct run_wish *run, const char *word) {
    struct names operators = split(word, ',');
    for (size_t i = 0; i < operators.count; i++)
        if (*operators.item[i] == 0)
            options_wrong(text("--allow-cpu %s: names of operators with commas between, as Shape,Gather", word));
        else
            names_add_once(&run->allow_cpu, operators.item[i]);
}

static bool is_cpu(const char *word) {
    if (strcmp(word, "cuda") != 0 && strcmp(word, "cpu") != 0)
        options_wrong(text("--provider %s: it is cuda or cpu", word));
    return strcmp(word, "cpu") == 0;
}

// Made where it is not there; who may write into it shows later.
static void make_place(const char *folder) {
    struct stat status;
    if (mkdir(folder, 0755) != 0 && (errno != EEXIST || stat(folder, &status) != 0 || !S_ISDIR(status.st_mode)))
        options_wrong(text("--save-outputs %s: %s", folder, errno == EEXIST ? "not a folder" : strerror(errno)));
}

// One shape an input; to measure, several.
static void check_shapes(const struct options *options) {
    const struct run_wish *run = &options->run;
    for (size_t i = 0; i < run->shapes && !options->bench.wanted; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(run->shape[i].name, run->shape[k].name) == 0)
                options_wrong(text("--shape %s: %s is given twice", shape_words(&run->shape[i]), run->shape[i].name));
    if (bench_cases(run->shape, run->shapes) == 0)
        options_wrong("--shape: give each input that has several shapes the same number of them");
}

static void check_bench_wish(const struct options *options, bool of_bench, bool tier_given) {
    const struct run_wish *run = &options->run;
    if (of_bench && !options->bench.wanted)
        options_wrong("--batch, --concurrency and --threads go with --bench");
    if (!options->bench.wanted)
        return;
    if (tier_given)
        options_wrong("--bench goes without --tier");
    if (run->save != NULL || run->reference != NULL || run->allow_cpu.count > 0)
        options_wrong("--bench goes without --save-outputs, --reference and --allow-cpu");
}

static void read_steps(const char *option, const char *word, int most, struct steps *steps) {
    const char *fault = steps_read(word, most, steps);
    if (fault != NULL)
        options_wrong(text("--%s %s: %s", option, word, fault));
}

static void check_run_wish(const struct run_wish *run) {
    if (run->model != NULL && access(run->model, R_OK) != 0)
        options_wrong(text("--model %s: %s for uid %u", run->model, strerror(errno), (unsigned)getuid()));
    if (run->cpu && (run->cuda.key.count > 0 || run->allow_cpu.count > 0))
        options_wrong(text("--%s is about CUDA, and --provider cpu does without it",
                           run->cuda.key.count > 0 ? "option" : "allow-cpu"));
    if (run->reference != NULL && access(run->reference, X_OK) != 0)
        options_wrong(text("--reference %s: %s for uid %u", run->reference, strerror(errno), (unsigned)getuid()));
    if (run->save != NULL)
        make_place(run->save);
}

static void check_together(const struct options *options, const char *of_tier_run) {
    if (options->stub != NULL && !is_file(options->stub))
        options_wrong(text("--stub %s: no such file", options->stub));
    if (options->root != NULL && (options->report != NULL || options->manifest != NULL))
        options_wrong("--root goes without --report and --manifest");
    if (options->manifest != NULL && !is_file(options->manifest))
        options_wrong(text("--manifest %s: no such file", options->manifest));
    if (options->tier != TIER_RUN && !options->bench.wanted && of_tier_run != NULL)
        options_wrong(text("--%s goes with --tier run", of_tier_run));
    check_run_wish(&options->run);
}

struct options options_read(int count, char **words) {
    static const struct option known[] = {
        {"tier", required_argument, NULL, 't'},      {"stub", required_argument, NULL, 's'},
        {"manifest", required_argument, NULL, 'm'},  {"report", required_argument, NULL, 'r'},
        {"json", no_argument, NULL, 'j'},            {"timeout", required_argument, NULL, 'T'},
        {"root", required_argument, NULL, 'R'},      {"help", no_argument, NULL, 'h'},
        {"model", required_argument, NULL, 'M'},     {"shape", required_argument, NULL, 'S'},
        {"option", required_argument, NULL, 'O'},    {"allow-cpu", required_argument, NULL, 'A'},
        {"warmup", required_argument, NULL, 'W'},    {"runs", required_argument, NULL, 'N'},
        {"bench", no_argument, NULL, 'B'},           {"batch", required_argument, NULL, 'b'},
        {"concurrency", required_argument, NULL, 'c'}, {"threads", required_argument, NULL, 'n'},
        {"provider", required_argument, NULL, 'P'},  {"save-outputs", required_argument, NULL, 'V'},
        {"reference", required_argument, NULL, 'F'},
        {0}};
    struct options options = {.tier = TIER_STATIC, .run = {.warmup = -1, .runs = -1}};
    bool of_bench = false, tier_given = false;
    const char *of_tier_run = NULL, *fault;
    for (int letter, place; (letter = getopt_long(count, words, "", known, &place)) != -1;) {
        if (strchr("MSOAWNPVF", letter) != NULL)
            of_tier_run = known[place].name;
        of_bench = of_bench || strchr("bcn", letter) != NULL;
        tier_given = tier_given || letter == 't';
        switch (letter) {
        case 't': options.tier = tier_of(optarg); break;
        case 's': options.stub = optarg; break;
        case 'R': options.root = optarg; break;
        case 'm': options.manifest = optarg; break;
        case 'r': options.report = optarg; break;
        case 'j': options.json = true; break;
        case 'T': options.seconds = number_of("timeout", optarg, 1, 86400); break;
        case 'M': options.run.model = optarg; break;
        case 'S': add_shape(&options.run, optarg); break;
        case 'O':
            if ((fault = cuda_option_add(&options.run.cuda, optarg)) != NULL)
                options_wrong(text("--option %s", fault));
            break;
        case 'A': add_operators(&options.run, optarg); break;
        case 'W': options.run.warmup = number_of("warmup", optarg, 0, 1000000); break;
        case 'N': options.run.runs = number_of("runs", optarg, 1, 1000000); break;
        case 'B': options.bench.wanted = true; break;
        case 'b': read_steps("batch", optarg, 1000000, &options.bench.batch); break;
        case 'c': read_steps("concurrency", optarg, 256, &options.bench.concurrency); break;
        case 'n': options.bench.threads = number_of("threads", optarg, 1, 1024); break;
        case 'P': options.run.cpu = is_cpu(optarg); break;
        case 'V': options.run.save = optarg; break;
        case 'F': options.run.reference = optarg; break;
        case 'h': fputs(usage, stdout); exit(EXIT_PASS);
        default: options_wrong("unknown option");
        }
    }
    if (optind < count)
        options_wrong(text("unexpected word: %s", words[optind]));
    bool bench = options.bench.wanted;
    check_bench_wish(&options, of_bench, tier_given);
    if (bench)
        options.tier = TIER_LOAD;
    if (options.seconds == 0)
        options.seconds = bench ? 3600 : options.tier == TIER_RUN ? 600 : 120;
    if (options.run.warmup < 0)
        options.run.warmup = bench ? 20 : 5;
    if (options.run.runs < 0)
        options.run.runs = bench ? 200 : 20;
    check_shapes(&options);
    check_together(&options, of_tier_run);
    return options;
}

struct names options_words(const struct options *options) {
    const struct run_wish *run = &options->run;
    struct names words = {0};
    names_add(&words, "ort-verify");
    names_add(&words, options->bench.wanted ? "--bench" : text("--tier=%s", tier_names[options->tier]));
    names_add(&words, text("--timeout=%d", options->seconds));
    if (options->json)
        names_add(&words, "--json");
    if (options->tier != TIER_RUN && !options->bench.wanted)
        return words;
    if (options->bench.batch.count > 0)
        names_add(&words, text("--batch=%s", steps_words(&options->bench.batch)));
    if (options->bench.concurrency.count > 0)
        names_add(&words, text("--concurrency=%s", steps_words(&options->bench.concurrency)));
    if (options->bench.threads > 0)
        names_add(&words, text("--threads=%d", options->bench.threads));
    for (size_t i = 0; i < run->shapes; i++)
        names_add(&words, text("--shape=%s=%s", run->shape[i].name, shape_words(&run->shape[i])));
    for (size_t i = 0; i < run->cuda.key.count; i++)
        names_add(&words, text("--option=%s=%s", run->cuda.key.item[i], run->cuda.value.item[i]));
    for (size_t i = 0; i < run->allow_cpu.count; i++)
        names_add(&words, text("--allow-cpu=%s", run->allow_cpu.item[i]));
    names_add(&words, text("--warmup=%d", run->warmup));
    names_add(&words, text("--runs=%d", run->runs));
    if (run->cpu)
        names_add(&words, "--provider=cpu");
    return words;
}
