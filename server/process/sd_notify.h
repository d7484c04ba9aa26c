/*
 * sd_notify: tells the service manager how we are: the protocol of sd_notify(3), a
 * datagram to the socket that NOTIFY_SOCKET names.  Without one nothing happens.
 */
#ifndef SERVER_PROCESS_SD_NOTIFY_H
#define SERVER_PROCESS_SD_NOTIFY_H

#include <stdint.h>

/* printf-like; lines such as "READY=1\nSTATUS=serving".  Never waits. */
void sd_notify_send(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* STATUS: one line; what is not printable in the text is replaced. */
void sd_notify_status(const char *text);

/* "RELOADING=1", with the time that has to be with it. */
void sd_notify_reloading(void);

/* WATCHDOG_USEC, if it is for this process: microseconds, else 0. */
uint64_t sd_notify_watchdog(void);

#endif
