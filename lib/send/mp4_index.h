/*
 * mp4_index: finds the index of an MP4 or QuickTime file (the box moov of ISO/IEC 14496-12) that is
 * behind the media data.  Pure.
 */
#ifndef LIB_SEND_MP4_INDEX_H
#define LIB_SEND_MP4_INDEX_H

#include <stdbool.h>
#include <sys/types.h>

#define MP4_HEADER 16 /* length of the longest box header, bytes */

/* Reads MP4_HEADER bytes at the offset.  Returns false if it cannot. */
typedef bool mp4_read_f(void *arg, off_t, unsigned char header[MP4_HEADER]);

/*
 * Returns the offset of the box behind the media data (mdat) of a file of `size` bytes, of which the first
 * `known` bytes can be read.  Returns -1 if the index is before the media data or among these bytes, if no box
 * is behind the media data, or if the file is damaged or has another format.
 */
off_t mp4_index_find(mp4_read_f *read, void *arg, off_t known, off_t size);

#endif
