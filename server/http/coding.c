/*
 * coding: see coding.h.
 */
#include "server/http/coding.h"
#include "server/http/accept.h"

#define BITS 16 /* bits of one weight among the packed weights */

static const struct {
	const char *name;
	const char *suffix;
} codings[] = {
    [CODING_NONE] = {"", ""},
    [CODING_ZSTD] = {"zstd", ".zst"},
    [CODING_BR] = {"br", ".br"},
    [CODING_GZIP] = {"gzip", ".gz"},
};

const char *
coding_name(enum coding coding)
{
	return codings[coding].name;
}

const char *
coding_suffix(enum coding coding)
{
	return codings[coding].suffix;
}

enum coding
coding_of_suffix(const char *text)
{
	for (enum coding c = CODING_ZSTD; c <= CODINGS; c++)
		if (strcmp(codings[c].suffix + 1, text) == 0)
			return c;
	return CODING_NONE;
}

enum coding
coding_of_name(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot == NULL || dot == name ? CODING_NONE
					  : coding_of_suffix(dot + 1);
}

enum coding
coding_of_format(const char *name, const char *type)
{
	static const char svg[] = "image/svg+xml";
	const char *dot = strrchr(name, '.');

	return dot != NULL && strcasecmp(dot, ".svgz") == 0 &&
		       strncmp(type, svg, sizeof(svg) - 1) == 0
		   ? CODING_GZIP
		   : CODING_NONE;
}

uint64_t
coding_weights(struct str accept_encoding)
{
	int plain, weight;
	uint64_t weights = 0;

	/* Without the field all codings are acceptable, but few such clients can decode them. */
	if (accept_encoding.s_ptr == NULL)
		return 0;
	plain = accept_weight(accept_encoding, STR("identity"));
	for (enum coding c = CODING_ZSTD; c <= CODINGS; c++) {
		const char *name = codings[c].name;

		weight = accept_weight(
		    accept_encoding, (struct str){name, strlen(name)});
		if (weight > 0 && weight >= plain)
			weights |= (uint64_t)weight << BITS * c;
	}
	return weights;
}

bool
coding_takes_identity(struct str accept_encoding)
{
	return accept_weight(accept_encoding, STR("identity")) != ACCEPT_NOT;
}

uint64_t
coding_only(uint64_t weights, enum coding coding)
{
	return (uint64_t)coding_weight(weights, coding) << BITS * coding;
}

unsigned
coding_weight(uint64_t weights, enum coding coding)
{
	return (unsigned)(weights >> BITS * coding & ((1u << BITS) - 1));
}
