/*
 * size_text: writes a number of bytes for people to read, such as "12.3 MiB".
 */
#ifndef SERVER_TOOL_SIZE_TEXT_H
#define SERVER_TOOL_SIZE_TEXT_H

#include <stddef.h>
#include <stdint.h>

void size_text(uint64_t bytes, char *text, size_t size);

#endif
