#include "kept.h"

#include "text.h"

const cJSON *kept_item(const cJSON *kept, const char *place) {
    struct names keys = split(place, '.');
    for (size_t i = 0; i < keys.count; i++)
        kept = cJSON_GetObjectItemCaseSensitive(kept, keys.item[i]);
    return kept;
}

const char *kept_words(const cJSON *kept, const char *place) {
    const char *words = cJSON_GetStringValue(kept_item(kept, place));
    return words ? words : "unknown";
}

double kept_number(const cJSON *kept, const char *place) {
    const cJSON *item = kept_item(kept, place);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}
