/*
 * server/util/sockaddr_text.h against inet_ntop(3) and inet_pton(3).
 * Input: a byte for the family, then the address, or its text.
 */
#include <arpa/inet.h>
#include <sys/un.h>

#include "fuzz.h"
#include "server/util/sockaddr_text.h"

/* Room that has just the size that is asked for. */
static void
check(const void *sa, const char *expected)
{
	char *buf = malloc(INET6_ADDRSTRLEN), *end;

	CHECK(buf != NULL);
	end = sockaddr_text(buf, sa);
	CHECK((size_t)(end - buf) == strlen(expected));
	CHECK(memcmp(buf, expected, strlen(expected)) == 0);
	free(buf);
}

static void
check_in6(const uint8_t *octets)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	char text[INET6_ADDRSTRLEN];

	memcpy(&in6.sin6_addr, octets, 16);
	if (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr))
		inet_ntop(AF_INET, octets + 12, text, sizeof(text));
	else
		inet_ntop(AF_INET6, octets, text, sizeof(text));
	check(&in6, text);
}

static void
check_in(const uint8_t *octets)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	char text[INET6_ADDRSTRLEN];

	memcpy(&in.sin_addr, octets, 4);
	inet_ntop(AF_INET, octets, text, sizeof(text));
	check(&in, text);
}

static void
check_parse(struct str text)
{
	char *copy = fuzz_copy(text), *terminated = fuzz_text(text);
	bool whole = strlen(terminated) == text.s_len;
	union sockaddr_any out;
	uint8_t octets[16];

	if (!sockaddr_parse((struct str){copy, text.s_len}, &out)) {
		CHECK(!whole || inet_pton(AF_INET, terminated, octets) != 1);
		CHECK(!whole || inet_pton(AF_INET6, terminated, octets) != 1);
	} else if (out.sa.sa_family == AF_INET) {
		CHECK(whole && inet_pton(AF_INET, terminated, octets) == 1);
		CHECK(memcmp(octets, &out.in.sin_addr, 4) == 0);
	} else {
		CHECK(whole && inet_pton(AF_INET6, terminated, octets) == 1);
		CHECK(memcmp(octets, &out.in6.sin6_addr, 16) == 0);
	}
	free(terminated);
	free(copy);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	uint8_t octets[16] = {0};

	if (size == 0)
		return 0;
	check_parse(fuzz_input(data + 1, size - 1));
	memcpy(octets, data + 1, size - 1 < 16 ? size - 1 : 16);
	switch (data[0] % 4) {
	case 0:
		check_in6(octets);
		break;
	case 1:
		check_in(octets);
		break;
	case 2:
		check(&un, "unix:");
		break;
	default:
		check(NULL, "-");
	}
	return 0;
}
