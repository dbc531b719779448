// The same attempt through Python: what a program that imports onnxruntime meets.
#define _GNU_SOURCE
#include "attempt_python.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model.h"
#include "text.h"

// InferenceSession tries again with the CPU after any error, and takes the CPU without one where the provider's library
// cannot be opened. `Strict` does not try again, and get_providers() tells the rest.
static const char script[] =
    "import ctypes, os, sys\n"
    "report, model, stub = int(sys.argv[1]), bytes.fromhex(sys.argv[2]), sys.argv[3]\n"
    "def say(*words):\n"
    "    os.write(report, (' '.join(' '.join(words).split())[:2000] + '\\n').encode())\n"
    "def step(name, work):\n"
    "    say('at', name)\n"
    "    try:\n"
    "        return work()\n"
    "    except BaseException as error:\n"
    "        texts = []\n"
    "        while error is not None:\n" // an import may fail with empty words, and the reason behind it
    "            texts.append(str(error) or type(error).__name__)\n"
    "            error = error.__cause__ or error.__context__\n"
    "        say('error', ', since: '.join(dict.fromkeys(texts)))\n"
    "        say('end')\n"
    "        os._exit(0)\n"
    "def load():\n"
    "    import onnxruntime\n"
    "    say('version', onnxruntime.__version__)\n"
    "    onnxruntime.set_default_logger_severity(3)\n" // errors: they name the library that cannot be opened
    "    return onnxruntime\n"
    "def providers():\n"
    "    if 'CUDAExecutionProvider' not in ort.get_available_providers():\n"
    "        raise RuntimeError('this wheel was built without CUDA')\n"
    "def session():\n"
    "    class Strict(ort.InferenceSession):\n"
    "        _enable_fallback = property(lambda self: False, lambda self, value: None)\n"
    "    options = ort.SessionOptions()\n"
    "    options.intra_op_num_threads, options.log_severity_level = 1, 3\n"
    "    made = Strict(model, options, providers=['CUDAExecutionProvider'])\n"
    "    if made.get_providers()[0] != 'CUDAExecutionProvider':\n"
    "        raise RuntimeError('the session has ' + ', '.join(made.get_providers()) + ' alone')\n"
    "if stub:\n"
    // Its SONAME answers every later look-up of libcuda.so.1, also cudart's own dlopen.
    "    driver = step('open libcuda.so.1', lambda: ctypes.CDLL(stub, ctypes.RTLD_GLOBAL))\n"
    "ort = step('import onnxruntime', load)\n"
    "step('list providers', providers)\n"
    "step('create session', session)\n"
    "say('end')\n"
    "os._exit(0)\n";

void attempt_python(int report, void *argument) {
    const struct python_attempt *attempt = argument;
    char *hex = malloc(2 * model_size + 1), *number = text("%d", report);
    for (size_t i = 0; hex != NULL && i < model_size; i++)
        snprintf(hex + 2 * i, 3, "%02x", model_bytes[i]);
    // -I: neither the working directory nor the user's variables have a say; -B: nothing is written.
    execl(attempt->interpreter, attempt->interpreter, "-I", "-B", "-c", script, number, hex ? hex : "",
          attempt->stub ? attempt->stub : "", (char *)NULL);
    dprintf(report, "at start %s\nerror %s\nend\n", base_name(attempt->interpreter), strerror(errno));
}
