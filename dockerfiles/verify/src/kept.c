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

void kept_merge(cJSON *into, cJSON *from) {
    while (from != NULL && from->child != NULL) {
        cJSON *item = cJSON_DetachItemViaPointer(from, from->child);
        cJSON *there = cJSON_GetObjectItemCaseSensitive(into, item->string);
        if (there == NULL)
            cJSON_AddItemToObject(into, item->string, item);
        else if (cJSON_IsArray(there) && cJSON_IsArray(item))
            while (item->child != NULL)
                cJSON_AddItemToArray(there, cJSON_DetachItemViaPointer(item, item->child));
        else if (cJSON_IsObject(there) && cJSON_IsObject(item))
            kept_merge(there, item);
    }
}
