/* jaato_plugin.h: plugins for jaato in C, and in what speaks C.
 *
 * Written by the tests of jaato-plugin-api (UPDATE_EXPECT=1 cargo test -p jaato-plugin-api); do not edit.
 *
 * A plugin is a shared library with two things in it: its manifest, JSON in a section that is read
 * without running the file (JAATO_MANIFEST), and JAATO_PLUGIN_C1, a table of functions.
 *
 * Every payload is a frame: the length of the JSON (32 bits, little-endian), the JSON in UTF-8, then
 * raw bytes (usually none). A frame has at most 8 MiB. An error is a frame too:
 * {"kind":"invalid_arguments","message":"..."}.
 *
 * A call is begun, then polled until it is ready or has failed, then ended. A poll must not block: it
 * polls what it has asked of the host with the waker that it was given, or keeps the waker and wakes it
 * from a thread of its own. A call that is ended before it is ready is cancelled.
 *
 * What the host lends is asked for by name. The JSON of every service, and of all that a plugin is
 * asked, with an example each: docs/authors/c.md.
 */
#ifndef JAATO_PLUGIN_H
#define JAATO_PLUGIN_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define JAATO_C1_VERSION 1

/* What a poll answers. */
enum {
    /* It is not done; the waker will be woken. */
    JAATO_PENDING = 0,
    /* It is done; where there is an answer, the buffer holds its frame. */
    JAATO_READY = 1,
    /* It failed; the buffer holds a frame with an error. */
    JAATO_FAILED = 2,
    /* A stream has ended. */
    JAATO_END = 3
};

/* What a plugin is asked. */
enum {
    /* The first call of an instance. The frame is what an earlier one saved, or has no bytes at
       all. */
    JAATO_CALL_OPEN = 0,
    /* A tool, by name. The frame's JSON are arguments that match its schema. */
    JAATO_CALL_TOOL = 1,
    /* The gc: GcRequest in, GcPlan out. */
    JAATO_CALL_GC = 2,
    /* The provider: Request in, Delta frames emitted, Completion out. */
    JAATO_CALL_COMPLETE = 3,
    /* The provider's models: a frame without JSON in, [ModelInfo] out. */
    JAATO_CALL_MODELS = 4,
    /* An operation, by name (command). One that is not known fails with unknown_operation. */
    JAATO_CALL_OPERATION = 5,
    /* What the next instance is to be given; ready without bytes when there is nothing to keep. */
    JAATO_CALL_SAVE = 6,
    /* The last call of an instance: it ends what it has going on. */
    JAATO_CALL_CLOSE = 7,
    /* The execution environment: an operation, by name. */
    JAATO_CALL_ENVIRONMENT = 8
};

struct jaato_context;
struct jaato_waker;
struct jaato_request;

/* A frame on its way out. Whoever takes it calls release where there is one, once. */
struct jaato_buffer {
    /* The first byte; null when there is none. */
    const uint8_t *bytes;
    /* How many. */
    size_t length;
    /* For the maker's own use. */
    void *owner;
    /* Gives the buffer back to its maker; null for bytes that live for ever. */
    void (*release)(struct jaato_buffer *buffer);
};

/* What the host lends. Every function may be called from any thread and never blocks for long.
   After the end of a call its context refuses everything; what waited fails. */
struct jaato_host_c1 {
    /* Bytes of this table. A newer host has more. */
    uint32_t size;
    /* The version of this table. */
    uint32_t version;
    /* Returns a number that is unique to this call or instance within the process. */
    uint64_t (*context_id)(const struct jaato_context *context);
    /* Keeps a context beyond its call: it becomes an empty shell rather than a dangling
       pointer. */
    void (*context_keep)(const struct jaato_context *context);
    /* Lets go of a context that was kept. */
    void (*context_drop)(const struct jaato_context *context);
    /* Tells whether the call was cancelled or its context has ended. */
    int32_t (*is_cancelled)(const struct jaato_context *context);
    /* Writes one line to the host's log: 1 error, 2 warn, 3 info, 4 debug. */
    void (*log)(const struct jaato_context *context, uint8_t level, const char *text, size_t length);
    /* Hands a frame to whoever waits for the call; 0 when it is not taken. */
    int32_t (*emit)(const struct jaato_context *context, const uint8_t *frame, size_t length);
    /* Begins to sleep; ready when the time has passed. */
    struct jaato_request *(*sleep_ms)(const struct jaato_context *context, uint64_t milliseconds);
    /* Asks a service by name; ready with its frame. */
    struct jaato_request *(*service)(const struct jaato_context *context, const char *name, size_t name_length, const uint8_t *frame, size_t length);
    /* Waits for the next piece of a stream; ready with a frame, or at the end. */
    struct jaato_request *(*next)(const struct jaato_context *context, uint64_t handle);
    /* Ends a stream. */
    void (*close)(const struct jaato_context *context, uint64_t handle);
    /* Looks whether a request is done. Without a waker nobody is woken. Not after it was done. */
    int32_t (*request_poll)(struct jaato_request *request, const struct jaato_waker *waker, struct jaato_buffer *out);
    /* Gives a request up, done or not. Null is ignored. */
    void (*request_drop)(struct jaato_request *request);
    /* Keeps a waker beyond the poll that lent it. */
    struct jaato_waker *(*waker_keep)(const struct jaato_waker *waker);
    /* Wakes: the call will be polled again. */
    void (*waker_wake)(const struct jaato_waker *waker);
    /* Lets go of a waker that was kept. Null is ignored. */
    void (*waker_drop)(struct jaato_waker *waker);
};

/* What a plugin exports. No function may block, and no exception may leave one. Instances are
   used from several threads at once; a call by one thread at a time, but not always the same. */
struct jaato_plugin_c1 {
    /* Bytes of this table: sizeof(struct jaato_plugin_c1). */
    uint32_t size;
    /* The version of this table: JAATO_C1_VERSION. */
    uint32_t version;
    /* Describes the plugin: a frame with a Description. Makes no instance. Ready or failed. */
    int32_t (*describe)(struct jaato_buffer *out);
    /* Begins the plugin's life in a process, before all but describe; the host lives as
       long. Ready or failed. */
    int32_t (*start)(const struct jaato_host_c1 *host, struct jaato_buffer *out);
    /* Makes an instance; its context is lent until destroy. Null when that is not possible. */
    void *(*create)(const struct jaato_context *context);
    /* Begins a call. Name and frame are lent until this returns, the context until end. Null
       when that is not possible. */
    void *(*begin)(void *instance, uint32_t kind, const char *name, size_t name_length, const struct jaato_context *context, const uint8_t *frame, size_t length);
    /* Goes on with a call until it is pending, ready or failed. The waker is lent until this
       returns. */
    int32_t (*poll)(void *call, const struct jaato_waker *waker, struct jaato_buffer *out);
    /* Ends a call, once: done, or cancelled. */
    void (*end)(void *call);
    /* Ends an instance, after its last call. */
    void (*destroy)(void *instance);
};

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

/* Embeds the manifest; once, outside of functions. The text is JSON:
   {"v":1,"name":"tool-moon","version":"0.1.0","api":"1.0.0","kinds":["tool"]} */
#define JAATO_MANIFEST(json) \
    __attribute__((used, section(JAATO_MANIFEST_SECTION))) static const char jaato_manifest[] = json

/* Finds the JSON of a frame. Null when the bytes are no frame; no bytes when it has no JSON. */
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

/* Takes over a buffer that the other side made. */
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

/* Copies a whole frame into a buffer. 0 when there is no memory. */
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

/* Makes a frame of a JSON text, which ends with a zero byte. 0 when there is no memory. */
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
