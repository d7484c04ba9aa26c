/*
 * ready: finds the response for an exchange in the response cache, and offers new responses to the
 * cache (response_cache.h).
 */
#ifndef SERVER_CONTENT_READY_H
#define SERVER_CONTENT_READY_H

struct cached_response;
struct exchange;
struct pw_file;
struct representation;

/* Returns the cached response if it was made from `file` for this request, or NULL. */
struct cached_response *ready_find(struct exchange *, const struct pw_file *);

/*
 * Caches the response if possible.  Call if ready_find has returned NULL and the head of the
 * response is complete.
 */
void ready_offer(struct exchange *, struct pw_file *, struct representation *);

/*
 * Does the same after a read of the file, which ready_offer may have found uncached: if another program drops
 * its pages again and again, no other moment comes.
 */
void ready_offer_read(struct exchange *);

#endif
