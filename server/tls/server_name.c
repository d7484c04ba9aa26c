/*
 * server_name: see server_name.h.
 */
#include <openssl/tls1.h>
#include <string.h>

#include "server/tls/server_name.h"

#define HEAD 5 /* bytes before the name: list length, type, name length */

bool
server_name_parse(const unsigned char *ext, size_t len, char *name, size_t size)
{
	size_t n;

	if (len < HEAD || ext[2] != TLSEXT_NAMETYPE_host_name)
		return false;
	n = (size_t)ext[3] << 8 | ext[4];
	if (n == 0 || n > len - HEAD || n >= size ||
	    memchr(ext + HEAD, '\0', n) != NULL)
		return false;
	memcpy(name, ext + HEAD, n);
	name[n] = '\0';
	return true;
}
