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
