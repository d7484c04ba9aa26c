/*
 * server_name: the name that a client asks for, in its ClientHello (RFC 6066, 3).
 */
#ifndef SERVER_TLS_SERVER_NAME_H
#define SERVER_TLS_SERVER_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* ext: the text of the extension; a list with one name of the type host_name.  With a NUL. */
bool server_name_parse(
    const unsigned char *ext, size_t len, char *name, size_t size);

#endif
