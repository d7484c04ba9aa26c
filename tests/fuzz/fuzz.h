/*
 * fuzz: what the harnesses have in common.  Each is one fuzz_NAME.c with
 * LLVMFuzzerTestOneInput, for libFuzzer (make fuzz), AFL++, or fuzz_main.c, which
 * runs it over tests/fuzz/corpus/NAME and tests/fuzz/cases/NAME (make test).
 *
 * An input is text where that is possible: its first line has parameters, the rest
 * is what the code under test is given.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/util/str.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Stays in every flavour, unlike assert(3). */
#define CHECK(condition) \
	((condition) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #condition))

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static inline _Noreturn void
fuzz_fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
	abort();
}

static inline struct str
fuzz_input(const uint8_t *data, size_t size)
{
	/* An empty input may be NULL, which a slice must not be. */
	return (struct str){size == 0 ? "" : (const char *)data, size};
}

/* Takes what is before the next such byte, and that byte; else all there is. */
static inline struct str
fuzz_until(struct str *in, char end)
{
	const char *at = memchr(in->s_ptr, end, in->s_len);
	struct str part = *in;

	if (at != NULL)
		part.s_len = (size_t)(at - in->s_ptr);
	in->s_ptr += part.s_len + (at != NULL);
	in->s_len -= part.s_len + (at != NULL);
	return part;
}

static inline struct str
fuzz_line(struct str *in)
{
	return fuzz_until(in, '\n');
}

/* Takes the next number of a line, which wraps around; otherwise: there is none. */
static inline int64_t
fuzz_number(struct str *line, int64_t otherwise)
{
	struct str word = fuzz_until(line, ' ');
	bool minus = word.s_len > 0 && word.s_ptr[0] == '-';
	uint64_t n = 0;
	size_t i;

	for (i = minus; i < word.s_len; i++) {
		if (word.s_ptr[i] < '0' || word.s_ptr[i] > '9')
			return otherwise;
		n = n * 10 + (uint64_t)(word.s_ptr[i] - '0');
	}
	return i == minus ? otherwise : (int64_t)(minus ? -n : n);
}

/* The same, brought into a range. */
static inline size_t
fuzz_size(struct str *line, size_t otherwise, size_t least, size_t most)
{
	uint64_t n = (uint64_t)fuzz_number(line, (int64_t)otherwise);

	return n >= least && n <= most ? (size_t)n
				       : least + n % (most - least + 1);
}

/* In memory of just this size, so that a byte behind it is noticed. */
static inline char *
fuzz_copy(struct str s)
{
	char *copy = malloc(s.s_len > 0 ? s.s_len : 1);

	CHECK(copy != NULL);
	memcpy(copy, s.s_ptr, s.s_len);
	return copy;
}

/* With a NUL behind it. */
static inline char *
fuzz_text(struct str s)
{
	char *copy = malloc(s.s_len + 1);

	CHECK(copy != NULL);
	memcpy(copy, s.s_ptr, s.s_len);
	copy[s.s_len] = '\0';
	return copy;
}

static inline struct str
fuzz_str(const char *text)
{
	return (struct str){text, strlen(text)};
}

/* Both absent, or the same bytes. */
static inline bool
fuzz_same(struct str a, struct str b)
{
	if (a.s_ptr == NULL || b.s_ptr == NULL)
		return a.s_ptr == b.s_ptr;
	return str_eq(a, b);
}

static inline bool
fuzz_inside(struct str s, const char *begin, size_t len)
{
	return s.s_ptr >= begin && s.s_ptr + s.s_len <= begin + len;
}

#endif
