// As attempt.h, for an image whose ONNX Runtime is the Python wheel.
#ifndef ORT_VERIFY_ATTEMPT_PYTHON_H
#define ORT_VERIFY_ATTEMPT_PYTHON_H

struct python_attempt {
    const char *stub;        // NULL: none
    const char *interpreter; // path of python3
};
// Imports onnxruntime and brings up a session with the CUDA EP, and with nothing else.
void attempt_python(int report, void *python_attempt);

#endif
