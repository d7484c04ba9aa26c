/*
 * sd_notify: reports the state of the server to the service manager, as described in sd_notify(3):
 * sends datagrams to the socket that the variable NOTIFY_SOCKET names.  Sends nothing without this
 * variable.
 */
#ifndef SERVER_PROCESS_SD_NOTIFY_H
#define SERVER_PROCESS_SD_NOTIFY_H

#include <stdint.h>

/* Sends lines such as "READY=1\nSTATUS=serving", with a format as for printf.  Never blocks. */
void sd_notify_send(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Sends the line "STATUS=" with the text.  Replaces characters of the text that are not printable.
 */
void sd_notify_status(const char *text);

/* Sends "RELOADING=1" and the current time, which the protocol requires. */
void sd_notify_reloading(void);

/*
 * Returns WATCHDOG_USEC from the environment, in microseconds, or 0 if it is unset or for another
 * process.
 */
uint64_t sd_notify_watchdog(void);

#endif
