/* tool-dice: throws a die that the user chooses, and keeps the last throws.
 *
 * Shows services from C, with nothing but the header: `ask` shows the user a form, `store` keeps a value.
 * A poll never blocks: it continues as far as it can, then reports that it waits or that it is done. */
#include "jaato_plugin.h"

#include <stdio.h>
#include <sys/random.h>

JAATO_MANIFEST("{\"v\":1,\"name\":\"tool-dice\",\"version\":\"0.1.0\",\"api\":\"1.0.0\",\"kinds\":[\"tool\"]}");

/* The most throws that are kept. */
#define THROWS_MAX 10
/* The longest text that this file writes or reads: ten throws and the JSON around them. */
#define TEXT_BYTES_MAX 512

static const struct jaato_host_c1 *host;

/* What a call does next. */
enum step { ASK, READ, WRITE, ANSWER, NOTHING, UNKNOWN, NO_TOOL, BAD_ARGUMENTS };

struct call {
    const struct jaato_context *context;
    enum step step;
    /* The request that the host has not answered yet. */
    struct jaato_request *request;
    /* The number of sides; 0 if nothing is thrown. */
    int sides;
    int was_chosen;
    /* The newest first. */
    int throws[THROWS_MAX];
    size_t count;
};

static int32_t fail(struct jaato_buffer *out, const char *kind, const char *message)
{
    char json[TEXT_BYTES_MAX];
    snprintf(json, sizeof json, "{\"kind\":\"%s\",\"message\":\"%s\"}", kind, message);
    jaato_put_json(out, json);
    return JAATO_FAILED;
}

/* Sends a request to a service: JSON, followed by bytes if there are any. */
static struct jaato_request *service(struct call *call, const char *name, const char *json, const char *bytes)
{
    uint8_t frame[4 + 2 * TEXT_BYTES_MAX];
    size_t json_length = strlen(json), length = strlen(bytes);
    if (json_length > TEXT_BYTES_MAX || length > TEXT_BYTES_MAX)
        return NULL;
    frame[0] = (uint8_t)json_length;
    frame[1] = (uint8_t)(json_length >> 8);
    frame[2] = frame[3] = 0;
    memcpy(frame + 4, json, json_length);
    memcpy(frame + 4 + json_length, bytes, length);
    return host->service(call->context, name, strlen(name), frame, 4 + json_length + length);
}

/* Writes the throws as `[6,2]`. */
static void list(const struct call *call, char *text)
{
    size_t at, length = 0;
    length += (size_t)sprintf(text, "[");
    for (at = 0; at < call->count; at++)
        length += (size_t)sprintf(text + length, "%s%d", at == 0 ? "" : ",", call->throws[at]);
    sprintf(text + length, "]");
}

static struct jaato_request *begin_step(struct call *call)
{
    char text[TEXT_BYTES_MAX];
    switch (call->step) {
    case ASK:
        return service(call, "ask", "{\"title\":\"A throw\",\"fields\":[{\"name\":\"die\",\"text\":\"Which die?\","
            "\"kind\":\"choice\",\"options\":[{\"value\":\"d6\"},{\"value\":\"d20\"},{\"value\":\"d100\"}]}]}", "");
    case READ:
        return service(call, "store.get", "{\"key\":\"throws\"}", "");
    default:
        list(call, text);
        return service(call, "store.set", "{\"key\":\"throws\"}", text);
    }
}

/* The die in `{"outcome":"answered","values":{"die":"d20"}}`; 0 if the user chose none. */
static int chosen(const char *json, size_t length)
{
    static const struct { const char *word; int sides; } dice[] = { { "\"d6\"", 6 }, { "\"d20\"", 20 }, { "\"d100\"", 100 } };
    size_t at, die;
    for (at = 0; json != NULL && at < length; at++)
        for (die = 0; die < sizeof dice / sizeof dice[0]; die++) {
            size_t wide = strlen(dice[die].word);
            if (wide <= length - at && memcmp(json + at, dice[die].word, wide) == 0)
                return dice[die].sides;
        }
    return 0;
}

/* Reads `[6,2]`, the bytes after the JSON. Any other content counts as no throws. */
static void remember(struct call *call, const struct jaato_buffer *answer)
{
    char text[TEXT_BYTES_MAX];
    char *rest = text;
    size_t json = 0, length;
    if (jaato_json(answer->bytes, answer->length, &json) == NULL)
        return;
    length = answer->length - 4 - json;
    if (length >= sizeof text)
        return;
    memcpy(text, answer->bytes + 4 + json, length);
    text[length] = 0;
    while (call->count < THROWS_MAX && (*rest == '[' || *rest == ',')) {
        char *end;
        long number = strtol(rest + 1, &end, 10);
        if (end == rest + 1 || number < 1 || number > 100)
            return;
        call->throws[call->count++] = (int)number;
        rest = end;
    }
}

static int throw_die(int sides)
{
    uint32_t number;
    if (getentropy(&number, sizeof number) != 0)
        return 0;
    return (int)(number % (uint32_t)sides) + 1;
}

/* Handles the host's answer and sets the next step. Returns 0 if the call fails with `out`. */
static int finish_step(struct call *call, int32_t status, struct jaato_buffer *answer, struct jaato_buffer *out)
{
    if (call->step == ASK) {
        size_t length = 0;
        const char *json = jaato_json(answer->bytes, answer->length, &length);
        int sides = status == JAATO_READY ? chosen(json, length) : 0;
        /* Without a grant, or if no user can answer, use an ordinary die. */
        call->was_chosen = sides != 0;
        call->sides = sides != 0 ? sides : 6;
        call->step = READ;
    } else if (status != JAATO_READY) {
        /* The call fails with the host's error. */
        *out = *answer;
        memset(answer, 0, sizeof *answer);
        return 0;
    } else if (call->step == READ) {
        remember(call, answer);
        call->step = call->sides == 0 ? ANSWER : WRITE;
        if (call->sides != 0) {
            int number = throw_die(call->sides);
            if (number == 0) {
                fail(out, "io", "this machine has no random numbers");
                return 0;
            }
            if (call->count == THROWS_MAX)
                call->count--;
            memmove(call->throws + 1, call->throws, call->count * sizeof call->throws[0]);
            call->throws[0] = number;
            call->count++;
        }
    } else {
        call->step = ANSWER;
    }
    return 1;
}

static int32_t poll_call(void *begun, const struct jaato_waker *waker, struct jaato_buffer *out)
{
    struct call *call = begun;
    char throws[TEXT_BYTES_MAX / 2], json[TEXT_BYTES_MAX];
    if (call->step == NOTHING)
        return JAATO_READY;
    if (call->step == UNKNOWN)
        return fail(out, "unknown_operation", "the dice do not know that");
    if (call->step == NO_TOOL)
        return fail(out, "unknown_tool", "there is no such tool");
    if (call->step == BAD_ARGUMENTS)
        return fail(out, "invalid_arguments", "the dice take no arguments");
    while (call->step != ANSWER) {
        struct jaato_buffer answer = { 0 };
        int32_t status, continues;
        if (call->request == NULL)
            call->request = begin_step(call);
        status = host->request_poll(call->request, waker, &answer);
        if (status == JAATO_PENDING)
            return JAATO_PENDING;
        host->request_drop(call->request);
        call->request = NULL;
        continues = finish_step(call, status, &answer, out);
        jaato_release(&answer);
        if (!continues)
            return JAATO_FAILED;
    }
    list(call, throws);
    if (call->sides == 0)
        snprintf(json, sizeof json, "{\"last\":%s}", throws);
    else
        snprintf(json, sizeof json, "{\"die\":\"d%d\",\"chosen_by\":\"%s\",\"thrown\":%d,\"last\":%s}", call->sides,
            call->was_chosen ? "person" : "nobody", call->throws[0], throws);
    return jaato_put_json(out, json) ? JAATO_READY : JAATO_FAILED;
}

#define TOOL(name, does, read_only, phrase) \
    "{\"name\":\"" name "\",\"description\":\"" does "\",\"parameters\":{\"type\":\"object\",\"properties\":{}," \
    "\"additionalProperties\":false},\"annotations\":{\"read_only\":" read_only ",\"destructive\":false," \
    "\"open_world\":false},\"examples\":[{\"phrase\":\"" phrase "\",\"arguments\":{}}]}"

static int32_t describe(struct jaato_buffer *out)
{
    return jaato_put_json(out, "{\"v\":1,\"services\":[\"ask\"],\"tools\":["
        TOOL("last_throws", "Lists the last ten throws of all sessions, the newest first.", "true", "what did I throw?") ","
        TOOL("throw_die", "Asks the user which die to throw, throws it and returns the number.", "false", "throw a die")
        "]}") ? JAATO_READY : JAATO_FAILED;
}

static int32_t start(const struct jaato_host_c1 *lent, struct jaato_buffer *out)
{
    if (lent->size < sizeof *lent)
        return fail(out, "unavailable", "the host is too old");
    host = lent;
    return JAATO_READY;
}

/* The calls of a session share nothing, but a null pointer would report that memory ran out. */
static void *create(const struct jaato_context *context)
{
    (void)context;
    return malloc(1);
}

static enum step first_step(uint32_t kind, const char *name, size_t length)
{
    if (kind == JAATO_CALL_OPEN || kind == JAATO_CALL_SAVE || kind == JAATO_CALL_CLOSE)
        return NOTHING;
    if (kind != JAATO_CALL_TOOL)
        return UNKNOWN;
    if (length == strlen("throw_die") && memcmp(name, "throw_die", length) == 0)
        return ASK;
    return length == strlen("last_throws") && memcmp(name, "last_throws", length) == 0 ? READ : NO_TOOL;
}

static void *begin(void *made, uint32_t kind, const char *name, size_t name_length,
    const struct jaato_context *context, const uint8_t *frame, size_t length)
{
    struct call *call = calloc(1, sizeof *call);
    size_t json_length = 0;
    const char *json = jaato_json(frame, length, &json_length);
    (void)made;
    if (call == NULL)
        return NULL;
    call->context = context;
    call->step = first_step(kind, name, name_length);
    /* The schema allows nothing but an empty object. */
    if ((call->step == ASK || call->step == READ) && (json == NULL || json_length != 2 || memcmp(json, "{}", 2) != 0))
        call->step = BAD_ARGUMENTS;
    return call;
}

/* The call is done or cancelled. Drops a request that still waits. */
static void end(void *begun)
{
    struct call *call = begun;
    host->request_drop(call->request);
    free(call);
}

static void destroy(void *made)
{
    free(made);
}

JAATO_EXPORT const struct jaato_plugin_c1 JAATO_PLUGIN_C1 = {
    sizeof(struct jaato_plugin_c1), JAATO_C1_VERSION, describe, start, create, begin, poll_call, end, destroy,
};
