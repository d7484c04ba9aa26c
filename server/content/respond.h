/*
 * respond: makes the response for an admitted client: a refusal, OPTIONS, a health check, or a
 * file.
 */
#ifndef SERVER_CONTENT_RESPOND_H
#define SERVER_CONTENT_RESPOND_H

#include <stdbool.h>

struct exchange;

/* Makes the response.  Returns as exchange_respond does. */
bool respond_admitted(struct exchange *);

#endif
