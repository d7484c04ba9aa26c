/*
 * ready: finds the response of an exchange in response_cache.h, and offers new responses to that
 * cache.
 */
#ifndef SERVER_CONTENT_READY_H
#define SERVER_CONTENT_READY_H

struct cached_response;
struct exchange;
struct pw_file;
struct representation;

/* Returns the cached response for the file of the exchange's request, or NULL. */
struct cached_response *ready_find(struct exchange *, const struct pw_file *);

/*
 * Caches the response if possible.  Its head must be complete, and ready_find must have returned
 * NULL for it.
 */
void ready_offer(struct exchange *, struct pw_file *, struct representation *);

#endif
