/*
 * response_cache_fixture: a response cache (server/content/response_cache.h), and files for its
 * responses, for tests.
 */
#ifndef TESTS_RESPONSE_CACHE_FIXTURE_H
#define TESTS_RESPONSE_CACHE_FIXTURE_H

#include "lib_fixture.h"

#include "server/content/response_cache.h"
#include "server/http/date.h"
#include "server/http/head_write.h"

#define SECOND UINT64_C(1000000)
#define DATE_A "Sun, 06 Nov 1994 08:49:37 GMT"
#define DATE_B "Mon, 07 Nov 1994 08:49:38 GMT"
#define FIELDS HEAD_WRITE_OK DATE_A "\r\nContent-Length: 1\r\n"
#define HEAD   FIELDS "\r\n"
#define PLENTY ((size_t)1 << 20)

/* Only their addresses matter. */
static const char places[2];
static const struct site *const here =
    (const struct site *)(const void *)places;
static const struct site *const there =
    (const struct site *)(const void *)(places + 1);

int __real_pw_file_copy(struct pw_file *, off_t, void *, size_t);
int __wrap_pw_file_copy(struct pw_file *, off_t, void *, size_t);

/* On FreeBSD only files of tmpfs are copied: here all are, wherever the directory is. */
static inline int
copy_of_any(struct pw_file *file, off_t off, void *to, size_t len)
{
	int error = __real_pw_file_copy(file, off, to, len);
	struct stat st;

	if (error != -EAGAIN || residency_can_ask(file))
		return error;
	if (pread(file->fil_fd, to, len, off) != (ssize_t)len ||
	    fstat(file->fil_fd, &st) == -1 || !file_unchanged(file, &st))
		return -ESTALE;
	return 0;
}

static inline struct str
str(const char *text)
{
	return (struct str){text, strlen(text)};
}

static inline struct cached_key
key(const struct site *site, const char *target)
{
	return (struct cached_key){.ck_site = site, .ck_target = str(target)};
}

/* The first second in which it may be taken in. */
static inline time_t
settled(const struct pw_file *file)
{
	return file->fil_ctime.tv_sec + RESPONSE_CACHE_SETTLED;
}

static inline void
offer(struct response_cache *rch, const char *target, struct pw_file *file,
    unsigned asked)
{
	response_cache_offer(rch, key(here, target), file, str(FIELDS), asked,
	    file->fil_checked, settled(file));
}

static inline struct cached_response *
find(struct response_cache *rch, const char *target, const struct pw_file *file)
{
	return response_cache_find(
	    rch, key(here, target), file->fil_checked, settled(file), DATE_A);
}

/* Returns the bytes that a cached response with HEAD as its head takes. */
static inline size_t
cost(const char *target, const struct pw_file *file)
{
	return sizeof(struct cached_response) + strlen(target) + strlen(HEAD) +
	       (size_t)file->fil_size;
}

static inline struct response_cache *
create(size_t bytes)
{
	struct response_cache *rch = response_cache_create(bytes);

	assert_non_null(rch);
	assert_int_equal(response_cache_bytes(rch), 0);
	return rch;
}

static inline void
destroy(struct response_cache **rch)
{
	response_cache_destroy(rch);
	assert_null(*rch);
}

#define SCOPED_CACHE SCOPED(destroy) struct response_cache

static inline void
assert_answer(const struct cached_response *rsp, size_t size)
{
	SCOPED(free_at) char *expected = malloc(size + 1);

	assert_non_null(rsp);
	assert_non_null(expected);
	fill(expected, 0, size);
	assert_int_equal(rsp->rsp_head, strlen(HEAD));
	assert_int_equal(rsp->rsp_len, strlen(HEAD) + size);
	assert_memory_equal(rsp->rsp_text, HEAD, strlen(HEAD));
	assert_memory_equal(rsp->rsp_text + rsp->rsp_head, expected, size);
}

#endif
