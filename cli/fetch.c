/* fetch.c: `tg fetch`: downloads a file from a URL, by libcurl if that was found when this was built. In: a
 * URL, and perhaps the checksum that the file must have. Out: the file, moved into place once it is complete.
 * Until then it is FILE.part, from which the next call continues. */
#define _XOPEN_SOURCE 700
#include "cli.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#ifdef TG_HAVE_CURL
#include <curl/curl.h>
#endif

typedef struct Options {
  const char *out, *sha256;
  bool json;
} Options;

/* ---- SHA-256 (FIPS 180-4). Its constants are the first bits of the fractional parts of square and cube
 * roots of primes. */
typedef struct Sha {
  uint32_t state[8], k[64];
  uint64_t nbytes;
  uint8_t block[64];
} Sha;

/* Returns the first 32 bits of the fractional part of the square or cube root of p, found by bisection in
 * integers. */
static uint32_t root_bits(uint64_t p, bool cube) {
  uint64_t lo = 0, hi = UINT64_C(1) << 36; /* the root times 2^32 */
  while (hi - lo > 1) {
    uint64_t mid = (lo + hi) / 2;
    unsigned __int128 v = (unsigned __int128)mid * mid; /* times 2^64 */
    bool above = cube ? v * mid > (unsigned __int128)p << 96 : v > (unsigned __int128)p << 64;
    *(above ? &hi : &lo) = mid;
  }
  return (uint32_t)lo;
}

static void sha_begin(Sha *s) {
  int n = 0;
  *s = (Sha){.nbytes = 0};
  for (uint64_t p = 2; n < 64; p++) {
    bool prime = true;
    for (uint64_t d = 2; d * d <= p; d++)
      prime = prime && p % d;
    if (!prime) continue;
    if (n < 8) s->state[n] = root_bits(p, false);
    s->k[n++] = root_bits(p, true);
  }
}

static uint32_t turned(uint32_t x, int by) { return x >> by | x << (32 - by); }

static void sha_block(Sha *s, const uint8_t *p) {
  uint32_t w[64], v[8];
  for (int i = 0; i < 16; i++)
    w[i] =
        (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
  for (int i = 16; i < 64; i++) {
    uint32_t a = turned(w[i - 15], 7) ^ turned(w[i - 15], 18) ^ w[i - 15] >> 3;
    uint32_t b = turned(w[i - 2], 17) ^ turned(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + a + w[i - 7] + b;
  }
  memcpy(v, s->state, sizeof v);
  for (int i = 0; i < 64; i++) {
    uint32_t e = v[4], a = v[0];
    uint32_t t1 =
        v[7] + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & v[5]) ^ (~e & v[6])) + s->k[i] + w[i];
    uint32_t t2 = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
    memmove(v + 1, v, 7 * sizeof *v);
    v[4] += t1;
    v[0] = t1 + t2;
  }
  for (int i = 0; i < 8; i++)
    s->state[i] += v[i];
}

static void sha_add(Sha *s, const void *data, size_t n) {
  for (const uint8_t *p = data; n--; p++) {
    s->block[s->nbytes++ % 64] = *p;
    if (s->nbytes % 64 == 0) sha_block(s, s->block);
  }
}

static void sha_end(Sha *s, char hex[65]) {
  uint64_t bits = s->nbytes * 8;
  sha_add(s, "\x80", 1);
  while (s->nbytes % 64 != 56)
    sha_add(s, "", 1);
  for (int i = 7; i >= 0; i--)
    sha_add(s, &(uint8_t){(uint8_t)(bits >> 8 * i)}, 1);
  for (int i = 0; i < 8; i++)
    snprintf(hex + 8 * i, 9, "%08x", s->state[i]);
}

static bool sha_file(const char *path, char hex[65]) {
  Sha s;
  static char room[1 << 16];
  FILE *f = fopen(path, "rb");
  if (!f) return false;
  sha_begin(&s);
  for (size_t n; (n = fread(room, 1, sizeof room, f)) > 0;)
    sha_add(&s, room, n);
  bool ok = !ferror(f);
  fclose(f);
  sha_end(&s, hex);
  return ok;
}

#ifdef TG_HAVE_CURL
typedef struct Fetch {
  FILE *to;
  const char *name;
  int64_t had; /* bytes that an earlier call had received */
  CliProgress progress;
  bool begun, any; /* any: some bytes were received */
} Fetch;

static size_t received(char *data, size_t size, size_t n, void *user) {
  Fetch *f = user;
  f->any = true;
  return fwrite(data, size, n, f->to);
}

static int moved_on(void *user, curl_off_t total, curl_off_t now, curl_off_t up, curl_off_t uploaded) {
  Fetch *f = user;
  (void)up, (void)uploaded;
  if (total > 0 && !f->begun) {
    cli_progress_begin(&f->progress, f->had, f->had + total, true);
    f->begun = true;
  }
  if (total > 0) cli_progress(&f->progress, f->had + now, f->name, "B");
  return cli_interrupted();
}

/* Makes one try. resumed: continues after the bytes that are in the file. */
static CURLcode transfer(CURL *curl, Fetch *f, const char *url, const char *part, bool resumed, char *why) {
  f->to = fopen(part, resumed ? "ab" : "wb");
  if (!f->to) return CURLE_WRITE_ERROR;
  fseek(f->to, 0, SEEK_END);
  f->had = ftell(f->to);
  f->begun = false;
  curl_easy_setopt(curl, CURLOPT_URL, url);
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 10L);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https,file");
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 30L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, 60L);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, received);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, f);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, moved_on);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, f);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
  curl_easy_setopt(curl, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)f->had);
  CURLcode rc = curl_easy_perform(curl);
  if (fclose(f->to)) rc = rc ? rc : CURLE_WRITE_ERROR;
  cli_progress_clear(&f->progress);
  return rc;
}

/* If the server cannot continue, or has no bytes left, the whole file is requested. */
static int fetched(const char *url, const char *name, const char *part) {
  char why[CURL_ERROR_SIZE] = "";
  Fetch f = {.name = name};
  CURL *curl = curl_easy_init();
  if (!curl) return cli_refuse(CLI_FAILED, "fetch", "libcurl does not start");
  CURLcode rc = transfer(curl, &f, url, part, true, why);
  long code = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
  if (f.had > 0 && (rc == CURLE_RANGE_ERROR || code == 416)) rc = transfer(curl, &f, url, part, false, why);
  curl_easy_cleanup(curl);
  if (rc == CURLE_ABORTED_BY_CALLBACK && cli_interrupted()) {
    fprintf(stderr, "interrupted; the next call goes on from %s\n", part);
    return CLI_INTERRUPTED;
  }
  if (!rc) return CLI_OK;
  if (f.to && !f.had && !f.any) remove(part); /* no bytes to continue from */
  return cli_refuse(CLI_FAILED, "fetch", "%s: %s", url, *why ? why : curl_easy_strerror(rc));
}
#else
static int fetched(const char *url, const char *name, const char *part) {
  (void)name, (void)part;
  return cli_refuse(CLI_FAILED, "fetch",
                    "%s: this tg was built without libcurl (install libcurl4-openssl-dev, build again)", url);
}
#endif

/* Writes the last part of a URL's path, without the query that may follow it. */
static void name_of(const char *url, char *to, size_t cap) {
  size_t n = strcspn(url, "?#"), begin = n;
  while (begin && url[begin - 1] != '/')
    begin--;
  snprintf(to, cap, "%.*s", (int)(n - begin), url + begin);
}

/* Finds the file to replace, following links. Only a regular file is replaced: a device would be lost. */
static bool place_of(const char *name, char *to, size_t cap) {
  struct stat s;
  bool there = !stat(name, &s);
  if (!cli_will_write_file("fetch", name)) return false;
  if (there && !S_ISREG(s.st_mode))
    return cli_refuse(0, "fetch", "%s is no file: what is downloaded becomes one, and would replace it",
                      name);
  char *real = there ? realpath(name, NULL) : NULL;
  size_t n = (size_t)snprintf(to, cap, "%s", real ? real : name);
  free(real);
  return n < cap || cli_refuse(0, "fetch", "too long a name");
}

static bool is_sum(const char *text) {
  return strlen(text) == 64 && strspn(text, "0123456789abcdefABCDEF") == 64;
}

static int run_fetch(const void *options, char **argument, int n) {
  const Options *o = options;
  char part[4106], place[4100], made[4000], sum[65] = "";
  const char *name = o->out ? o->out : made;
  (void)n;
  name_of(argument[0], made, sizeof made);
  if (o->sha256 && !is_sum(o->sha256))
    return cli_refuse(CLI_USAGE, "fetch", "--sha256 %s: a sum has 64 digits, 0-9 and a-f", o->sha256);
  if (!*name) return cli_refuse(CLI_USAGE, "fetch", "%s names no file: give --out FILE", argument[0]);
  if (!place_of(name, place, sizeof place)) return CLI_FAILED;
  snprintf(part, sizeof part, "%s.part", place);
  cli_catch_interrupt();
  int rc = fetched(argument[0], name, part);
  if (rc) return rc;
  if (!sha_file(part, sum)) return cli_refuse(CLI_FAILED, "fetch", "%s: %s", part, strerror(errno));
  if (o->sha256 && strcasecmp(o->sha256, sum)) {
    remove(part);
    return cli_refuse(CLI_FAILED, "fetch", "%s has the sum %s, not %s", argument[0], sum, o->sha256);
  }
  if (rename(part, place)) return cli_refuse(CLI_FAILED, "fetch", "%s: %s", place, strerror(errno));
  if (o->json) {
    printf("{\"file\":"), cli_json_text(stdout, name);
    printf(",\"sha256\":\"%s\"}\n", sum);
  } else
    printf("%s  %s\n", sum, name);
  return CLI_OK;
}

static const CliOption options[] = {
    CLI_TEXT_OF(Options, out, "out", "FILE", "where it goes (the last part of the URL)"),
    CLI_TEXT_OF(Options, sha256, "sha256", "HEX",
                "what its sum must be; another one, and the file is not kept"),
    CLI_FLAG_OF(Options, json, "json", "the result as an object")};

const CliCommand command_fetch = {.name = "fetch",
                                  .summary = "download a file, going on where an earlier call was cut off",
                                  .arguments = "URL",
                                  .least = 1,
                                  .most = 1,
                                  CLI_TAKES(Options, options),
                                  .run = run_fetch};
