// What an attempt put aside (reading.h), looked up by place: "device.name".
#ifndef ORT_VERIFY_KEPT_H
#define ORT_VERIFY_KEPT_H

#include "cJSON.h"

const cJSON *kept_item(const cJSON *kept, const char *place); // NULL: not there
const char *kept_words(const cJSON *kept, const char *place); // "unknown": not there
double kept_number(const cJSON *kept, const char *place);     // 0: not there

// Moves the items of `from` into `into`: lists and objects grow, other items go where there is none yet.
void kept_merge(cJSON *into, cJSON *from);

#endif

