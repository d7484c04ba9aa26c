/*
 * tier_place: identifies the file system of a file in the tier's records, where st_dev does not.
 */
#include <limits.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lib/disk/tier_fetch_priv.h"
#include "lib/os/os.h"
#include "lib/pagewise.h"

bool
tier_place(const struct pw_file *file, uint64_t *place)
{
	char path[PATH_MAX];
	long len;

	*place = file->fil_dev;
	if (os_is_block_device((dev_t)file->fil_dev))
		return true;
	len = os_path(file->fil_fd, path, sizeof(path));
	if (len > 0)
		*place = XXH3_64bits(path, (size_t)len);
	return len > 0;
}
