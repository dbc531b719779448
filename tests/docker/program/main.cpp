#include <onnxruntime_cxx_api.h>

#include <iostream>

int main(int, char **words) {
    Ort::Env env;
    Ort::SessionOptions options;
    options.AppendExecutionProvider_CUDA(OrtCUDAProviderOptions{});
    try {
        Ort::Session session(env, words[1], options);
        std::cout << "a session with CUDA\n";
    } catch (const Ort::Exception &error) {
        std::cout << error.what() << "\n";
    }
}
