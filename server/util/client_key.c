/*
 * client_key: see client_key.h.
 */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "server/util/client_key.h"

static uint64_t
client_key_inet(const void *octets)
{
	uint32_t addr;

	memcpy(&addr, octets, sizeof(addr));
	return UINT64_C(0xffff) << 32 | ntohl(addr);
}

/*
 * Returns unique keys for IPv4, because no allocated IPv6 prefix begins with the first 32 bits of
 * such a key.
 */
uint64_t
client_key(const struct sockaddr *sa)
{
	const struct sockaddr_in6 *in6 = (const void *)sa;
	const struct sockaddr_in *in = (const void *)sa;
	uint64_t key = 0;
	int i;

	if (sa->sa_family == AF_INET)
		return client_key_inet(&in->sin_addr);
	if (sa->sa_family != AF_INET6)
		return 0;
	if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
		return client_key_inet(&in6->sin6_addr.s6_addr[12]);
	for (i = 0; i < 8; i++)
		key = key << 8 | in6->sin6_addr.s6_addr[i];
	return key;
}
