/*
 * The media type table: its format, its error messages, look-up by the last
 * extension, and the table that is compiled in.
 */
#include "test.h"

#include "server/http/mime.h"

#define UNKNOWN "application/octet-stream"

extern const char mime_table[];

struct type_case {
	const char *tc_path;
	const char *tc_type;
};

static void
expect_types(const struct mime *m, const struct type_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *type =
		    mime_type(m, cases[i].tc_path, "application/octet-stream");

		if (strcmp(type, cases[i].tc_type) != 0)
			fail_msg("%s: %s", cases[i].tc_path, type);
	}
}

static struct mime *
parse(const char *text)
{
	char err[128] = "";
	struct mime *m = mime_parse(text, "t", err, sizeof(err));

	if (m == NULL)
		fail_msg("%s", err);
	return m;
}

TEST(type_is_found_by_the_last_extension)
{
	static const struct type_case cases[] = {
	    {"/a.html", "text/html"},
	    {"a.html", "text/html"},
	    {"/a.b.html", "text/html"},
	    {"/a.html.gz", "application/gzip"},
	    {"/dir.gz/a.html", "text/html"},
	    {"/.html/a.gz", "application/gzip"},
	    {"/..html", "text/html"},
	    {"/.a.html", "text/html"},
	    {"/a..html", "text/html"},
	    {"/ .html", "text/html"},
	    /* case */
	    {"/A.HTML", "text/html"},
	    {"/a.HtM", "text/html"},
	    {"/a.mixed", "text/x-mixed"},
	    {"/a.MIXED", "text/x-mixed"},
	    /* no extension, or none that is known */
	    {"", UNKNOWN},
	    {"/", UNKNOWN},
	    {"/a", UNKNOWN},
	    {"/html", UNKNOWN},
	    {"/.html", UNKNOWN},
	    {".html", UNKNOWN},
	    {"/a.", UNKNOWN},
	    {"/a.html.", UNKNOWN},
	    {"/a.html/", UNKNOWN},
	    {"/a.html/b", UNKNOWN},
	    {"/a.htm ", UNKNOWN},
	    {"/a.ht", UNKNOWN},
	    {"/a.htmlx", UNKNOWN},
	    {"/.", UNKNOWN},
	    {"/..", UNKNOWN},
	};
	SCOPED(mime_destroy)
	struct mime *m = parse("text/html html htm\n"
			       "application/gzip gz\n"
			       "text/x-mixed MiXeD\n");

	expect_types(m, cases, COUNT(cases));
}

TEST(first_type_of_an_extension_stays)
{
	static const struct type_case cases[] = {{"a.x", "a/first"},
	    {"a.y", "a/first"}, {"a.z", "a/second"}, {"a.w", "a/third"}};
	SCOPED(mime_destroy)
	struct mime *m = parse("a/first x Y\n"
			       "a/second z X y\n"
			       "a/third x y z w w\n");

	expect_types(m, cases, COUNT(cases));
}

TEST(comments_and_white_space_are_skipped)
{
	static const struct type_case cases[] = {{"a.a", "t/a"}, {"a.b", "t/a"},
	    {"a.c", "t/c"}, {"a.d", "t/d;charset=utf-8"}, {"a.e", "t/e"},
	    {"a.f", UNKNOWN}, {"a.x", UNKNOWN}, {"a.g", UNKNOWN}};
	struct mime *m = parse("# t/x x\n"
			       "\n"
			       "  \t \n"
			       "   # not a type\n"
			       " t/a\ta \t b  # f\n"
			       "t/c c\r\n"
			       "\r\n"
			       "t/without-extension\n"
			       "t/d;charset=utf-8 d#g\n"
			       "t/e e");

	expect_types(m, cases, COUNT(cases));
	mime_destroy(&m);
}

TEST(empty_table_knows_nothing)
{
	static const char *const texts[] = {"", "\n", "# only\n", "a/b\n"};

	for (size_t i = 0; i < COUNT(texts); i++) {
		struct mime *m = parse(texts[i]);

		assert_string_equal(
		    mime_type(m, "/a.html", "application/octet-stream"),
		    UNKNOWN);
		mime_destroy(&m);
		assert_null(m);
	}
}

TEST(table_may_be_larger_than_any_first_guess)
{
	size_t size = 1 << 20, at = 0;
	char *text = malloc(size), path[32], type[32];
	SCOPED(mime_destroy) struct mime *m;

	assert_non_null(text);
	for (int i = 0; i < 5000; i++)
		at += (size_t)snprintf(
		    text + at, size - at, "t/%d x%d y%d\n", i, i, i);
	m = parse(text);
	free(text);
	for (int i = 0; i < 5000; i++) {
		snprintf(path, sizeof(path), "/a.%c%d", i % 2 ? 'x' : 'y', i);
		snprintf(type, sizeof(type), "t/%d", i);
		assert_string_equal(
		    mime_type(m, path, "application/octet-stream"), type);
	}
}

TEST(bad_line_is_named_by_file_and_number)
{
	static const struct {
		const char *text;
		const char *message;
	} cases[] = {
	    {"html", "t:1: not a media type (type/subtype)"},
	    {"html text/html", "t:1: not a media type (type/subtype)"},
	    {"a/b c\n\n# x\ntext html\n",
		"t:4: not a media type (type/subtype)"},
	    {"a/b c\r\ntext html\r\n", "t:2: not a media type (type/subtype)"},
	    {"/ x", "t:1: not a media type (type/subtype)"},
	    {"/html x", "t:1: not a media type (type/subtype)"},
	    {"text/ x", "t:1: not a media type (type/subtype)"},
	    {"text/a/b x", "t:1: not a media type (type/subtype)"},
	    {"text//b x", "t:1: not a media type (type/subtype)"},
	    {"text/\x01 x", "t:1: not a media type (type/subtype)"},
	    {"text/\xc3\xa9 x", "t:1: not a media type (type/subtype)"},
	    {"text/\x7f x", "t:1: not a media type (type/subtype)"},
	    {"a/b c\na/b d .e", "t:2: write the extension without its dot"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		char err[128] = "";

		if (mime_parse(cases[i].text, "t", err, sizeof(err)) != NULL)
			fail_msg("accepted: %s", cases[i].text);
		assert_string_equal(err, cases[i].message);
	}
}

TEST(message_is_cut_to_its_buffer)
{
	char err[8] = "1234567";

	assert_null(mime_parse("html", "types", err, 4));
	assert_string_equal(err, "typ");
	assert_int_equal(err[4], '5');
	assert_null(mime_parse("html", "types", NULL, 0));
}

struct temp {
	char tm_path[32];
};

static void
temp_write(struct temp *t, const char *bytes, size_t n)
{
	SCOPED(close_at) int fd;

	strcpy(t->tm_path, "/tmp/test_mime.XXXXXX");
	fd = mkstemp(t->tm_path);
	assert_true(fd >= 0);
	while (n > 0) {
		ssize_t done = write(fd, bytes, n);

		assert_true(done > 0);
		bytes += done;
		n -= (size_t)done;
	}
}

TEST(file_is_read_whole_whatever_its_size)
{
	static const size_t sizes[] = {
	    8, 16382, 16383, 16384, 32766, 32767, 32768, 200000};

	for (size_t i = 0; i < COUNT(sizes); i++) {
		size_t n = sizes[i];
		char *text = malloc(n), err[128] = "";
		struct temp t;
		struct mime *m;

		assert_non_null(text);
		memset(text, '\n', n);
		memcpy(text + n - 7, "a/b end", 7);
		temp_write(&t, text, n);
		m = mime_load(t.tm_path, err, sizeof(err));
		unlink(t.tm_path);
		free(text);
		assert_string_equal(err, "");
		assert_non_null(m);
		assert_string_equal(
		    mime_type(m, "/x.end", "application/octet-stream"), "a/b");
		mime_destroy(&m);
	}
}

static void
expect_load_error(const char *path, const char *what)
{
	char err[256] = "", want[256];

	snprintf(want, sizeof(want), "%s%s", path, what);
	assert_null(mime_load(path, err, sizeof(err)));
	assert_string_equal(err, want);
}

TEST(unusable_file_is_named)
{
	static const char nul[] = "a/b c\n\0a/c d\n";
	size_t big = (4u << 20) + 1;
	SCOPED(free_at) char *text = malloc(big);
	struct temp t;

	assert_non_null(text);
	expect_load_error(
	    "/nonexistent/mime.types", ": No such file or directory");
	expect_load_error("/tmp", ": Is a directory");

	temp_write(&t, "a/b c\nhtml x\n", 13);
	expect_load_error(t.tm_path, ":2: not a media type (type/subtype)");
	unlink(t.tm_path);

	temp_write(&t, nul, sizeof(nul) - 1);
	expect_load_error(t.tm_path, ": contains a NUL byte");
	unlink(t.tm_path);

	memset(text, '\n', big);
	temp_write(&t, text, big);
	expect_load_error(t.tm_path, ": File too large");
	unlink(t.tm_path);
}

TEST(destroy_accepts_null)
{
	struct mime *m = NULL;

	mime_destroy(&m);
	assert_null(m);
}

TEST(builtin_table_knows_the_web)
{
	static const struct type_case cases[] = {
	    {"/index.html", "text/html"},
	    {"/index.htm", "text/html"},
	    {"/a.css", "text/css"},
	    {"/a.js", "text/javascript"},
	    {"/a.mjs", "text/javascript"},
	    {"/a.json", "application/json"},
	    {"/a.wasm", "application/wasm"},
	    {"/a.webmanifest", "application/manifest+json"},
	    {"/a.xml", "application/xml"},
	    {"/a.txt", "text/plain"},
	    {"/a.md", "text/markdown"},
	    {"/a.csv", "text/csv"},
	    {"/a.ics", "text/calendar"},
	    {"/a.avif", "image/avif"},
	    {"/a.webp", "image/webp"},
	    {"/a.jxl", "image/jxl"},
	    {"/a.heic", "image/heic"},
	    {"/a.svg", "image/svg+xml"},
	    {"/a.JPG", "image/jpeg"},
	    {"/favicon.ico", "image/vnd.microsoft.icon"},
	    {"/a.mp4", "video/mp4"},
	    {"/a.webm", "video/webm"},
	    {"/a.m3u8", "application/vnd.apple.mpegurl"},
	    {"/a.mpd", "application/dash+xml"},
	    {"/a.ts", "video/mp2t"},
	    {"/a.mp3", "audio/mpeg"},
	    {"/a.flac", "audio/flac"},
	    {"/a.opus", "audio/ogg"},
	    {"/a.ogg", "audio/ogg"},
	    {"/a.woff2", "font/woff2"},
	    {"/a.pdf", "application/pdf"},
	    {"/a.epub", "application/epub+zip"},
	    {"/a.zip", "application/zip"},
	    {"/a.tar.gz", "application/gzip"},
	    {"/a.xz", "application/x-xz"},
	    {"/a.zst", "application/zstd"},
	    {"/a.iso", "application/x-iso9660-image"},
	    {"/a.deb", "application/vnd.debian.binary-package"},
	    {"/a.rpm", "application/x-rpm"},
	    {"/a.nosuchtype", UNKNOWN},
	};
	SCOPED(mime_destroy) struct mime *m = mime_builtin();

	assert_non_null(m);
	expect_types(m, cases, COUNT(cases));
}

/* The first type would win, and the second line would be a silent mistake. */
TEST(builtin_table_lists_no_extension_twice)
{
	char *text = strdup(mime_table), *lines = text, *line;
	SCOPED(mime_destroy) struct mime *m = mime_builtin();
	int extensions = 0;

	assert_non_null(text);
	assert_non_null(m);
	while ((line = strsep(&lines, "\n")) != NULL) {
		char *save, *ext, path[64];
		char *type = strtok_r(line, " \t", &save);

		if (type == NULL || type[0] == '#')
			continue;
		while ((ext = strtok_r(NULL, " \t", &save)) != NULL) {
			snprintf(path, sizeof(path), "/a.%s", ext);
			if (strcmp(
				mime_type(m, path, "application/octet-stream"),
				type) != 0)
				fail_msg("%s is listed twice", ext);
			extensions++;
		}
	}
	assert_true(extensions > 100);
	free(text);
}

/* A program that gets the wrong type does not open the file, or shows it as text. */
TEST(builtin_table_has_types_that_programs_look_for)
{
	static const struct type_case cases[] = {
	    {"a.svgz", "image/svg+xml"},
	    {"a.usdz", "model/vnd.usdz+zip"},
	    {"a.xpi", "application/x-xpinstall"},
	    {"a.crx", "application/x-chrome-extension"},
	    {"a.metalink", "application/metalink+xml"},
	    {"a.meta4", "application/metalink4+xml"},
	    {"a.crl", "application/pkix-crl"},
	    {"a.p7c", "application/pkcs7-mime"},
	    {"a.p7b", "application/x-pkcs7-certificates"},
	    {"a.jxl", "image/jxl"},
	    {"a.apk", "application/vnd.android.package-archive"},
	    {"a.deb", "application/vnd.debian.binary-package"},
	    {"a.rpm", "application/x-rpm"},
	    {"a.iso", "application/x-iso9660-image"},
	    {"a.zst", "application/zstd"},
	    {"a.parquet", "application/vnd.apache.parquet"},
	    {"a.arrow", "application/vnd.apache.arrow.file"},
	    {"a.pmtiles", "application/vnd.pmtiles"},
	};
	SCOPED(mime_destroy) struct mime *m = mime_builtin();

	expect_types(m, cases, COUNT(cases));
}

/*
 * Extensions of nginx' mime.types (but cco and pdb, which mean several things), and of those on
 * which Apache's table (Debian's media-types) and shared-mime-info agree.
 */
TEST(builtin_table_has_the_extensions_of_other_tables)
{
	static const char
	    nginx[] =
		"html htm shtml css xml gif jpeg jpg js atom rss mml txt jad "
		"wml htc avif png svg svgz tif tiff wbmp webp ico jng bmp "
		"woff woff2 jar war ear json hqx doc pdf ps eps ai rtf m3u8 "
		"kml kmz xls eot ppt odg odp ods odt pptx xlsx docx wasm wmlc "
		"7z jardiff jnlp run pl pm prc rar rpm sea swf sit tcl tk der "
		"pem crt xpi xhtml xspf zip bin exe dll deb dmg iso img msi "
		"msp msm mid midi kar mp3 ogg m4a ra 3gpp 3gp ts mp4 mpeg mpg "
		"mov webm flv m4v mng asx asf wmv avi ",
	    others[] =
		"aac ac3 adts aif aiff amr apk au azw3 cab cap cbr cbz cer "
		"cgm chm cpio cr2 crl csv dcm djv djvu dotx dtd dts dv dwg "
		"dxf emf eml epub flac geojson glb gltf gml gz heif ics iges "
		"igs jp2 jpe jpf jpg2 jpgm jpm jsonld jxl ktx ktx2 manifest "
		"markdown mbox md meta4 mj2 mjp2 mkv mpe mpga mtl mxf nc nef "
		"numbers odf oga ogv ogx opus otg otp ots ott oxps p10 p12 "
		"p7c p7m p7s p8 pages pbm pcap pfx pgm pkipath pls pnm potx "
		"ppm ppsx psd qt rdf roff sig smi smil snd sqlite3 stl tar "
		"torrent tr tsv ttc ttf ttl udeb vcard vcf vrml vsd vtt wma "
		"wmf wrl xbm xcf xht xltx xpm xps xslt xz zst ";
	SCOPED(mime_destroy) struct mime *m = mime_builtin();
	char text[sizeof(nginx) + sizeof(others)], *next = text, *ext;
	char path[64];

	snprintf(text, sizeof(text), "%s%s", nginx, others);
	while ((ext = strsep(&next, " ")) != NULL) {
		snprintf(path, sizeof(path), "a.%s", ext);
		if (ext[0] != '\0' && mime_type(m, path, NULL) == NULL)
			fail_msg("%s has no type", ext);
	}
}
