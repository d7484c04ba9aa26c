/*
 * server/tls/server_name.h against a naive reading.
 * Input: "SIZE\n" of the memory for the name, and the extension.
 */
#include "fuzz.h"
#include "server/tls/server_name.h"

#define SIZE_MAX_NAME 300

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = fuzz_input(data, size);
	struct str line = fuzz_line(&in);
	size_t room = fuzz_size(&line, 256, 1, SIZE_MAX_NAME), n;
	unsigned char *ext = (unsigned char *)fuzz_copy(in);
	char *name = malloc(room);
	bool found;

	CHECK(name != NULL);
	found = server_name_parse(ext, in.s_len, name, room);
	if (found) {
		n = strlen(name);
		CHECK(n > 0 && n < room && in.s_len >= 5 + n);
		CHECK(ext[2] == 0 && ext[3] * 256u + ext[4] == n);
		CHECK(memcmp(name, ext + 5, n) == 0);
	} else if (in.s_len >= 5 && ext[2] == 0) {
		n = ext[3] * 256u + ext[4];
		CHECK(n == 0 || n + 5 > in.s_len || n >= room ||
		      memchr(ext + 5, 0, n) != NULL);
	}
	free(name);
	free(ext);
	return 0;
}
