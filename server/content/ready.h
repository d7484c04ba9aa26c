/*
 * ready: finds the response of an exchange in response_cache.h, and decides whether a new one may be
 * kept there.
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
 * Offers the response to the cache.  Its head must be complete and the file whole, and the response
 * must not be cached yet.
 */
void ready_offer(struct exchange *, struct pw_file *, struct representation *);

#endif
