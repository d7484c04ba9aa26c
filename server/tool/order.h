/*
 * order: "pagewise drain" and "pagewise undrain": a word to the server that runs, by the Unix
 * socket of its key admin.  Who may connect to that may give orders.
 */
#ifndef SERVER_TOOL_ORDER_H
#define SERVER_TOOL_ORDER_H

#define ORDER_SOCKET "/run/pagewise/admin" /* unless one is given */

/*
 * Sends POST /NAME and prints what it says.  Returns the exit status: 0; 1 after a message that
 * begins with "pagewise NAME: ".
 */
int order_send(const char *name, const char *socket_path);

#endif
