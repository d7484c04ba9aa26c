/*
 * respond: chooses what makes the response of a client that may have one: a refusal, OPTIONS, a health
 * check, or a file.
 */
#ifndef SERVER_CONTENT_RESPOND_H
#define SERVER_CONTENT_RESPOND_H

#include <stdbool.h>

struct exchange;

/* Returns as exchange_respond does. */
bool respond_admitted(struct exchange *);

#endif
