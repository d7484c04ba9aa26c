/*
 * order: the commands "pagewise drain" and "pagewise undrain", which send a request to the running
 * server through the Unix socket that the configuration key admin names.  Any user that may connect
 * to the socket may drain the server.
 */
#ifndef SERVER_TOOL_ORDER_H
#define SERVER_TOOL_ORDER_H

#include <stddef.h>

/* Writes the default path of the socket. */
void order_socket(char *path, size_t size);

/*
 * Sends POST /NAME and prints the response.  Returns the exit status: 0, or 1 after a message that
 * begins with "pagewise NAME: ".
 */
int order_send(const char *name, const char *socket_path);

#endif
