/*
 * server/util/sockaddr_text.h against inet_ntop(3).
 * Input: a byte for the family, then the address.
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

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	uint8_t octets[16] = {0};

	if (size == 0)
		return 0;
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
