/*
 * sd_notify: reports the state to the service manager by the protocol of sd_notify(3): a datagram
 * to the socket that the variable NOTIFY_SOCKET names.  Without this variable nothing is sent.
 */
#ifndef SERVER_PROCESS_SD_NOTIFY_H
#define SERVER_PROCESS_SD_NOTIFY_H

#include <stdint.h>

/* Sends lines such as "READY=1\nSTATUS=serving", formatted as by printf.  Never blocks. */
void sd_notify_send(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Sends a line "STATUS=" with the text.  Replaces characters that are not printable. */
void sd_notify_status(const char *text);

/* Sends "RELOADING=1" with the current time, which the protocol requires. */
void sd_notify_reloading(void);

/*
 * Returns the variable WATCHDOG_USEC, which is in microseconds, if it is for this process, else 0.
 */
uint64_t sd_notify_watchdog(void);

#endif
