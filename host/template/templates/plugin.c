/* template-name: tells a model the time. */
#include "jaato_plugin.h"

#include <stdio.h>
#include <time.h>

JAATO_MANIFEST("{\"v\":1,\"name\":\"template-name\",\"version\":\"0.1.0\",\"api\":\"1.0.0\",\"kinds\":[\"tool\"]}");

#define TOOL "template_short"
/* Longest answer, in bytes. */
#define ANSWER_BYTES_MAX 128

/* The tools. The texts are for the model. */
static int32_t describe(struct jaato_buffer *out)
{
    return jaato_put_json(out,
        "{\"v\":1,\"tools\":[{\"name\":\"" TOOL "\",\"description\":\"Gets the current date and time in UTC.\","
        "\"parameters\":{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false},"
        "\"annotations\":{\"read_only\":true,\"destructive\":false,\"open_world\":false},"
        "\"examples\":[{\"phrase\":\"What time is it?\",\"arguments\":{}}]}]}")
        ? JAATO_READY : JAATO_FAILED;
}

/* Keep `host` to call services of the host, such as `ask` or `store.get`. */
static int32_t start(const struct jaato_host_c1 *host, struct jaato_buffer *out)
{
    (void)host, (void)out;
    return JAATO_READY;
}

/* The state of a session. This plugin has none. */
static void *create(const struct jaato_context *context)
{
    (void)context;
    return malloc(1);
}

/* What a call does. */
enum step { TELL_TIME, NOTHING, UNKNOWN_TOOL, UNKNOWN_OPERATION, BAD_FRAME };

/* The host has checked the arguments against the schema, but a frame may be broken. */
static enum step step_of(uint32_t kind, const char *name, size_t name_length, const uint8_t *frame, size_t length)
{
    size_t json_length = 0;
    switch (kind) {
    case JAATO_CALL_OPEN:
    case JAATO_CALL_SAVE:
    case JAATO_CALL_CLOSE:
        return NOTHING;
    case JAATO_CALL_TOOL:
        if (name_length != strlen(TOOL) || memcmp(name, TOOL, name_length) != 0)
            return UNKNOWN_TOOL;
        if (jaato_json(frame, length, &json_length) == NULL || json_length != 2 || memcmp(frame + 4, "{}", 2) != 0)
            return BAD_FRAME;
        return TELL_TIME;
    default:
        return UNKNOWN_OPERATION;
    }
}

static void *begin(void *instance, uint32_t kind, const char *name, size_t name_length,
    const struct jaato_context *context, const uint8_t *frame, size_t length)
{
    enum step *call = malloc(sizeof *call);
    (void)instance, (void)context;
    if (call != NULL)
        *call = step_of(kind, name, name_length, frame, length);
    return call;
}

static int32_t fail(struct jaato_buffer *out, const char *error)
{
    jaato_put_json(out, error);
    return JAATO_FAILED;
}

static int32_t tell_time(struct jaato_buffer *out)
{
    char json[ANSWER_BYTES_MAX];
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc) == NULL || strftime(json, sizeof json, "{\"utc\":\"%Y-%m-%d %H:%M:%S\"}", &utc) == 0)
        return fail(out, "{\"kind\":\"failed\",\"message\":\"the clock has no time\"}");
    return jaato_put_json(out, json) ? JAATO_READY : JAATO_FAILED;
}

/* Must not block: to wait, return JAATO_PENDING and let the waker wake the call. */
static int32_t poll_call(void *call, const struct jaato_waker *waker, struct jaato_buffer *out)
{
    (void)waker;
    switch (*(enum step *)call) {
    case TELL_TIME:
        return tell_time(out);
    case NOTHING:
        return JAATO_READY;
    case UNKNOWN_TOOL:
        return fail(out, "{\"kind\":\"unknown_tool\",\"message\":\"the only tool is `" TOOL "`\"}");
    case BAD_FRAME:
        return fail(out, "{\"kind\":\"invalid_arguments\",\"message\":\"`" TOOL "` takes no arguments\"}");
    case UNKNOWN_OPERATION:
        break;
    }
    return fail(out, "{\"kind\":\"unknown_operation\",\"message\":\"this plugin has only a tool\"}");
}

JAATO_EXPORT const struct jaato_plugin_c1 JAATO_PLUGIN_C1 = {
    sizeof(struct jaato_plugin_c1), JAATO_C1_VERSION, describe, start, create, begin, poll_call, free, free,
};
