/*
 * ready: which answer of response_cache.h is that of an exchange, and whether its own may
 * become one.
 */
#ifndef SERVER_CONTENT_READY_H
#define SERVER_CONTENT_READY_H

struct cached_response;
struct exchange;
struct pw_file;
struct representation;

/* The answer that is ready for the file of the exchange's request, or NULL. */
struct cached_response *ready_find(struct exchange *, const struct pw_file *);

/* The head of the answer is complete, the file is whole, and it was not ready. */
void ready_offer(struct exchange *, struct pw_file *, struct representation *);

#endif
