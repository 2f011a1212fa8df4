/* Exports the table: JAATO_EXPORT const struct jaato_plugin_c1 JAATO_PLUGIN_C1 = { sizeof(struct jaato_plugin_c1), ... }; */
#ifdef __cplusplus
#define JAATO_EXPORT extern "C" __attribute__((visibility("default")))
#else
#define JAATO_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __APPLE__
#define JAATO_MANIFEST_SECTION "__DATA,__jaato"
#else
#define JAATO_MANIFEST_SECTION ".jaato_manifest"
#endif

/* Embeds the manifest. Use it once, outside of functions. The text is JSON:
   {"v":1,"name":"tool-moon","version":"0.1.0","api":"1.0.0","kinds":["tool"]} */
#define JAATO_MANIFEST(json) \
    __attribute__((used, section(JAATO_MANIFEST_SECTION))) static const char jaato_manifest[] = json

/* Returns the JSON of a frame. Null if the bytes are not a frame; length 0 if the frame has no JSON. */
static inline const char *jaato_json(const uint8_t *frame, size_t length, size_t *json_length)
{
    size_t json;
    if (frame == NULL || length < 4)
        return NULL;
    json = (size_t)frame[0] | (size_t)frame[1] << 8 | (size_t)frame[2] << 16 | (size_t)frame[3] << 24;
    if (json > length - 4)
        return NULL;
    *json_length = json;
    return (const char *)(frame + 4);
}

/* Releases a buffer that the other side created. */
static inline void jaato_release(struct jaato_buffer *buffer)
{
    if (buffer->release != NULL)
        buffer->release(buffer);
    memset(buffer, 0, sizeof *buffer);
}

static inline void jaato_free_buffer(struct jaato_buffer *buffer)
{
    free(buffer->owner);
}

/* Copies a whole frame into a buffer. Returns 0 if there is not enough memory. */
static inline int32_t jaato_put_frame(struct jaato_buffer *out, const uint8_t *frame, size_t length)
{
    uint8_t *bytes = (uint8_t *)malloc(length == 0 ? 1 : length);
    if (bytes == NULL)
        return 0;
    if (length != 0)
        memcpy(bytes, frame, length);
    out->bytes = bytes;
    out->length = length;
    out->owner = bytes;
    out->release = jaato_free_buffer;
    return 1;
}

/* Creates a frame from a zero-terminated JSON text. Returns 0 if there is not enough memory. */
static inline int32_t jaato_put_json(struct jaato_buffer *out, const char *json)
{
    size_t length = strlen(json);
    uint8_t *bytes = (uint8_t *)malloc(length + 4);
    if (bytes == NULL)
        return 0;
    bytes[0] = (uint8_t)length;
    bytes[1] = (uint8_t)(length >> 8);
    bytes[2] = (uint8_t)(length >> 16);
    bytes[3] = (uint8_t)(length >> 24);
    memcpy(bytes + 4, json, length);
    out->bytes = bytes;
    out->length = length + 4;
    out->owner = bytes;
    out->release = jaato_free_buffer;
    return 1;
}

#ifdef __cplusplus
}
#endif

#endif
