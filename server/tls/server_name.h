/*
 * server_name: parses the server name that a client requests in its ClientHello (SNI: RFC 6066, 3).
 */
#ifndef SERVER_TLS_SERVER_NAME_H
#define SERVER_TLS_SERVER_NAME_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Reads the name from the extension, which is a list with one name of type host_name.  Writes the
 * name with a NUL.  Returns false if the extension is malformed or the name does not fit.
 */
bool server_name_parse(
    const unsigned char *ext, size_t len, char *name, size_t size);

#endif
