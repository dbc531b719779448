// Options of the CUDA execution provider, as a user gives them: read, checked and put into ONNX Runtime's own words.
#ifndef ORT_VERIFY_CUDA_OPTIONS_H
#define ORT_VERIFY_CUDA_OPTIONS_H

#include "text.h"

struct cuda_options {
    struct names key, value; // of one place each
    struct names warnings;   // what is allowed and probably not meant
};

// Adds "key=value". NULL, or what is wrong with it.
const char *cuda_option_add(struct cuda_options *options, const char *word);
// The value of a key, NULL: not given.
const char *cuda_option_value(const struct cuda_options *options, const char *key);
// Does this ONNX Runtime ("1.16.2") know a key?
bool cuda_option_known(const char *key, const char *version);
// Does this ONNX Runtime know all of them? NULL, or which not.
const char *cuda_options_fit(const struct cuda_options *options, const char *version);

// "8 KiB", "139.8 GiB".
char *bytes_words(unsigned long long bytes);

#endif
