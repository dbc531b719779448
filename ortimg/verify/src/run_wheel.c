#define _GNU_SOURCE
#include "run_wheel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cJSON.h"
#include "cuda_settings.h"
#include "device.h"
#include "kept.h"
#include "model.h"
#include "profile_place.h"
#include "run.h"
#include "saved.h"
#include "talk.h"

struct wheel_attempt {
    const struct scene *scene;
    const struct run_wish *wish;
    const char *profile;       // folder and start of the name
    const char *got, *on_cpu;  // folders for what comes out
};

// The steps are those of run.c, by the same names. The numbers that go in are those of tensor.c.
static const char script[] =
    "import json, os, re, sys, time\n"
    "report, wish = int(sys.argv[1]), json.loads(sys.argv[2])\n"
    "CUDA, CPU = 'CUDAExecutionProvider', 'CPUExecutionProvider'\n"
    "KINDS = {'float32': 'float', 'float64': 'double'}\n"
    "KINDS.update({kind: kind for kind in ('float16', 'int8', 'uint8', 'int32', 'int64', 'bool')})\n"
    "class Stop(Exception): pass\n"
    "def say(*words):\n"
    "    os.write(report, (' '.join(' '.join(words).split())[:2000] + '\\n').encode())\n"
    "def put(place, value):\n"
    "    say('put', place, json.dumps(value))\n"
    "def step(name, work):\n"
    "    say('at', name)\n"
    "    try:\n"
    "        return work()\n"
    "    except BaseException as error:\n"
    "        texts = []\n"
    "        while error is not None:\n"
    "            texts.append(str(error) or type(error).__name__)\n"
    "            error = error.__cause__ or error.__context__\n"
    "        text = ', since: '.join(dict.fromkeys(texts))\n"
    "        say('error', text)\n"
    "    raise Stop(text)\n"
    "def load():\n"
    "    import numpy, onnxruntime\n"
    "    say('version', onnxruntime.__version__)\n"
    "    onnxruntime.set_default_logger_severity(3)\n"
    "    return numpy, onnxruntime\n"
    "def make(cuda, strict=False, profile=None):\n"
    "    class Strict(ort.InferenceSession):\n" // takes no other provider by itself: attempt_python.c
    "        _enable_fallback = property(lambda self: False, lambda self, value: None)\n"
    "    options = ort.SessionOptions()\n"
    "    options.intra_op_num_threads, options.log_severity_level = wish['threads'], 3\n"
    "    if strict:\n"
    "        options.add_session_config_entry('session.disable_cpu_ep_fallback', '1')\n"
    "    if profile:\n"
    "        options.enable_profiling, options.profile_file_prefix = True, profile\n"
    "    model = wish['model'] or bytes.fromhex(wish['bytes'])\n"
    "    made = Strict(model, options, providers=[(CUDA, wish['cuda'])] if cuda else [CPU])\n"
    "    if cuda and made.get_providers()[0] != CUDA:\n"
    "        raise RuntimeError('the session has ' + ', '.join(made.get_providers()) + ' alone')\n"
    "    return made\n"
    "def numbers(kind, shape):\n"
    "    count = int(np.prod(shape, dtype=np.int64))\n"
    "    if kind.startswith('float'):\n"
    "        mixed = np.arange(1, count + 1).astype(np.uint32) * np.uint32(2654435761)\n"
    "        made = ((mixed >> np.uint32(22)).astype(np.int64) - 512) / 512.0\n"
    "    else:\n"
    "        made = np.arange(count) & 1\n"
    "    return made.astype(kind).reshape(shape)\n"
    "def words(shape):\n"
    "    return 'x'.join('?' if size is None else str(size) for size in shape) or 'scalar'\n"
    "def inputs(session):\n"
    "    made, given = {}, dict(wish['shapes'])\n"
    "    for one in session.get_inputs():\n"
    "        kind = re.sub(r'tensor\\((.*)\\)', r'\\1', one.type).replace('double', 'float64')\n"
    "        kind = 'float32' if kind == 'float' else kind\n"
    "        if kind not in KINDS:\n"
    "            raise RuntimeError(f'input {one.name} is of {one.type}: inputs of this kind are not made')\n"
    "        wanted = [size if isinstance(size, int) and size >= 0 else None for size in one.shape]\n"
    "        shape = given.pop(one.name, [size if size is not None else 1 for size in wanted])\n"
    "        if len(shape) != len(wanted) or any(w not in (None, s) for w, s in zip(wanted, shape)):\n"
    "            raise RuntimeError(f'--shape {one.name}={words(shape)}: the model wants {words(wanted)}')\n"
    "        made[one.name] = numbers(kind, shape)\n"
    "        put('inputs+', {'name': one.name, 'type': KINDS[kind], 'shape': words(shape)})\n"
    "    if given:\n"
    "        raise RuntimeError(f'--shape {min(given)}: the model has no such input; it has ' + ', '.join(made))\n"
    "    return made\n"
    "def run(session, feed):\n"
    "    start = time.perf_counter()\n"
    "    out = session.run(None, feed)\n"
    "    return out, time.perf_counter() - start\n"
    "def timed(session, feed):\n"
    "    out, first = step('run for the first time', lambda: run(session, feed))\n"
    "    put('seconds.first_run', round(first, 6))\n"
    "    took = []\n"
    "    def again():\n"
    "        for _ in range(wish['warmup'] + wish['runs']):\n"
    "            out, seconds = run(session, feed)\n"
    "            took.append(1e3 * seconds)\n"
    "        return out\n"
    "    out = step('run again', again)\n"
    "    took = took[wish['warmup']:]\n"
    "    took.sort()\n"
    "    count = len(took)\n"
    "    shown = {'warmup': wish['warmup'], 'count': count, 'median_ms': took[count // 2],\n"
    "             'p95_ms': took[(count * 95 + 99) // 100 - 1], 'max_ms': took[-1]}\n"
    "    put('runs', {key: round(value, 6) for key, value in shown.items()})\n"
    "    return out\n"
    "def save(folder, provider, feed, session, out):\n"
    "    index = {'schema': 1, 'ort': ort.__version__, 'provider': provider, 'model': wish['name'],\n"
    "             'tf32': wish['tf32'], 'inputs': [], 'outputs': []}\n"
    "    tensors = [('input', i, *pair) for i, pair in enumerate(feed.items())]\n"
    "    names = [one.name for one in session.get_outputs()]\n"
    "    tensors += [('output', i, *pair) for i, pair in enumerate(zip(names, out))]\n"
    "    for role, number, name, value in tensors:\n"
    "        row = {'name': name}\n"
    "        index[role + 's'].append(row)\n"
    "        if not isinstance(value, np.ndarray) or value.dtype.name not in KINDS:\n"
    "            row['skipped'] = 'no tensor of numbers'\n"
    "            continue\n"
    "        row['type'], row['shape'] = KINDS[value.dtype.name], list(value.shape)\n"
    "        row['file'] = re.sub(r'[^A-Za-z0-9._-]', '_', f'{role}-{number:03}-{name[:80]}.npy')\n"
    "        np.save(os.path.join(folder, row['file']), np.ascontiguousarray(value).reshape(value.shape))\n"
    "    with open(os.path.join(folder, 'tensors.json.part'), 'w') as file:\n"
    "        json.dump(index, file)\n"
    "    os.replace(file.name, os.path.join(folder, 'tensors.json'))\n"
    "def profiled(feed=None):\n"
    "    session = step('create the session with a profile', lambda: make(True, profile=wish['profile']))\n"
    "    feed = feed or step('make the inputs', lambda: inputs(session))\n"
    "    step('run with a profile', lambda: run(session, feed))\n"
    "    step('write the profile', session.end_profiling)\n"
    "def on_cuda():\n"
    "    try:\n"
    "        start = time.perf_counter()\n"
    "        session = step('create the CUDA session', lambda: make(True, strict=wish['strict']))\n"
    "    except Stop as stop:\n"
    "        if wish['refusal'] not in str(stop):\n"
    "            raise\n"
    "        return profiled()\n"
    "    put('seconds.session', round(time.perf_counter() - start, 6))\n"
    "    feed = step('make the inputs', lambda: inputs(session))\n"
    "    out = timed(session, feed)\n"
    "    step('save the outputs', lambda: save(wish['got'], 'cuda', feed, session, out))\n"
    "    cpu = step('create the CPU session', lambda: make(False))\n"
    "    out, seconds = step('run on the CPU', lambda: run(cpu, feed))\n"
    "    put('seconds.cpu_run', round(seconds, 6))\n"
    "    step('save the outputs', lambda: save(wish['on_cpu'], 'cpu', feed, cpu, out))\n"
    "    profiled(feed)\n"
    "def on_cpu():\n"
    "    start = time.perf_counter()\n"
    "    session = step('create the CPU session', lambda: make(False))\n"
    "    put('seconds.session', round(time.perf_counter() - start, 6))\n"
    "    feed = step('make the inputs', lambda: inputs(session))\n"
    "    out = timed(session, feed)\n"
    "    step('save the outputs', lambda: save(wish['got'], 'cpu', feed, session, out))\n"
    "try:\n"
    "    np, ort = step('import onnxruntime', load)\n"
    "    put('ort', ort.__version__)\n"
    "    on_cuda() if wish['cuda'] else on_cpu()\n"
    "except Stop:\n"
    "    pass\n"
    "say('end')\n"
    "os._exit(0)\n";

static void attempt_device(int report, void *argument) {
    const struct wheel_attempt *attempt = argument;
    const char *device = cuda_option_value(&attempt->wish->cuda, "device_id");
    talk_to(report);
    double start = seconds_now();
    if (device_open(device ? atoi(device) : 0, scene_cudart(attempt->scene)))
        put_time("seconds.device", seconds_now() - start);
    say("end");
    _exit(0);
}

static const char *model_hex(void) {
    static const char digits[] = "0123456789abcdef";
    char *hex = calloc(2 * model_size + 1, 1);
    if (hex == NULL)
        abort();
    for (size_t i = 0; i < model_size; i++) {
        hex[2 * i] = digits[model_bytes[i] >> 4];
        hex[2 * i + 1] = digits[model_bytes[i] & 15];
    }
    return hex;
}

static cJSON *shapes_of(const struct run_wish *wish) {
    cJSON *shapes = cJSON_CreateArray();
    for (size_t i = 0; i < wish->shapes; i++) {
        cJSON *pair = cJSON_CreateArray(), *sizes = cJSON_CreateArray();
        cJSON_AddItemToArray(shapes, pair);
        cJSON_AddItemToArray(pair, cJSON_CreateString(wish->shape[i].name));
        cJSON_AddItemToArray(pair, sizes);
        for (size_t k = 0; k < wish->shape[i].rank; k++)
            cJSON_AddItemToArray(sizes, cJSON_CreateNumber((double)wish->shape[i].size[k]));
    }
    return shapes;
}

static void attempt_wheel(int report, void *argument) {
    const struct wheel_attempt *attempt = argument;
    const struct run_wish *wish = attempt->wish;
    const struct manifest *manifest = &attempt->scene->manifest;
    cJSON *told = cJSON_CreateObject(), *cuda = NULL;
    bool tf32_on = false, strict = wish->allow_cpu.count == 0;
    run_start(report, wish);
    if (!wish->cpu) {
        put("cpu_fallback", cJSON_CreateBool(!strict));
        struct cuda_options all = cuda_settings(&wish->cuda, manifest->ort_version, &tf32_on);
        cuda = cJSON_AddObjectToObject(told, "cuda");
        for (size_t i = 0; i < all.key.count; i++)
            cJSON_AddStringToObject(cuda, all.key.item[i], all.value.item[i]);
    } else
        cJSON_AddNullToObject(told, "cuda");
    cJSON_AddStringToObject(told, "model", wish->model ? wish->model : "");
    cJSON_AddStringToObject(told, "bytes", wish->model ? "" : model_hex());
    cJSON_AddStringToObject(told, "name", wish->model ? base_name(wish->model) : own_model);
    cJSON_AddBoolToObject(told, "tf32", tf32_on);
    cJSON_AddBoolToObject(told, "strict", strict);
    cJSON_AddStringToObject(told, "refusal", needs_fallback);
    cJSON_AddItemToObject(told, "shapes", shapes_of(wish));
    cJSON_AddNumberToObject(told, "threads", session_threads());
    cJSON_AddNumberToObject(told, "warmup", wish->warmup);
    cJSON_AddNumberToObject(told, "runs", wish->runs);
    cJSON_AddStringToObject(told, "profile", attempt->profile ? attempt->profile : "");
    cJSON_AddStringToObject(told, "got", attempt->got);
    cJSON_AddStringToObject(told, "on_cpu", attempt->on_cpu);
    execl(manifest->python, manifest->python, "-I", "-B", "-c", script, text("%d", report),
          cJSON_PrintUnformatted(told), (char *)NULL);
    say("at start %s", base_name(manifest->python));
    say("error %s", strerror(errno));
    say("end");
    _exit(0);
}

static void attempt_compare(int report, void *argument) {
    const struct wheel_attempt *attempt = argument;
    struct feed feed;
    struct tensor *got, *wanted;
    const char *fault;
    talk_to(report);
    say("at read the outputs");
    if ((fault = saved_read(attempt->got, &feed, &got)) == NULL && !attempt->wish->cpu &&
        (fault = saved_read(attempt->on_cpu, &feed, &wanted)) == NULL)
        outputs_compare(&feed, got, wanted);
    if (fault == NULL && attempt->wish->reference != NULL) {
        say("at %s", step_reference);
        fault = saved_compare(attempt->wish->reference, &feed, got);
    }
    if (fault != NULL)
        say("error %s", fault);
    say("end");
    _exit(0);
}

static bool refused(const struct reading *reading) {
    const struct step *session = step_named(reading, step_cuda_session);
    return session != NULL && session->error != NULL && strstr(session->error, needs_fallback) != NULL;
}

struct reading run_wheel(struct scene *scene, const struct run_wish *wish, const char *profile,
                         struct outcome *outcome) {
    char *got = profile_folder(), *on_cpu = profile_folder();
    struct wheel_attempt attempt = {scene, wish, profile, wish->save ? wish->save : got, on_cpu};
    void (*const work[])(int, void *) = {attempt_device, attempt_wheel, attempt_compare};
    struct reading reading = {0};
    if (got == NULL || on_cpu == NULL)
        abort(); // a folder for the profile was made just now
    for (size_t i = wish->cpu ? 1 : 0; i < 3; i++) {
        cJSON *before = reading.kept;
        *outcome = child_run(work[i], &attempt, scene->seconds);
        reading = read_report(outcome);
        kept_merge(reading.kept, before);
        if (!reading.whole || first_error(&reading) != NULL || refused(&reading))
            break;
    }
    folder_clear(got);
    folder_clear(on_cpu);
    return reading;
}
