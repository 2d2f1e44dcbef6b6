/* fetch.c: `tg fetch`: downloads a file from a URL, by libcurl if that was found when this was built; or a
 * model by its name (hub.c). In: a URL, and perhaps the checksum that the file must have; or a name. Out: the
 * file, moved into place once it is complete. Until then it is FILE.part, which the next call continues. */
#define _DEFAULT_SOURCE
#include "fetch.h"
#include "hub.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>
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

/* Eight rounds use each of the eight values once in each role, so that none has to be moved. */
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
#define V(n) v[((n)-r) & 7]
#define ROUND(turn)                                                                                          \
  {                                                                                                          \
    enum { r = turn };                                                                                       \
    uint32_t e = V(4), a = V(0);                                                                             \
    uint32_t t = V(7) + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & V(5)) ^ (~e & V(6))) +        \
                 s->k[i + r] + w[i + r];                                                                     \
    V(3) += t;                                                                                               \
    V(7) = t + (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & V(1)) ^ (a & V(2)) ^ (V(1) & V(2)));   \
  }
  for (int i = 0; i < 64; i += 8) {
    ROUND(0)
    ROUND(1)
    ROUND(2)
    ROUND(3)
    ROUND(4)
    ROUND(5)
    ROUND(6)
    ROUND(7)
  }
#undef ROUND
#undef V
  for (int i = 0; i < 8; i++)
    s->state[i] += v[i];
}

static void sha_add(Sha *s, const void *data, size_t n) {
  for (const uint8_t *p = data; n;) {
    size_t at = s->nbytes % 64, k = n < 64 - at ? n : 64 - at;
    if (k < 64) memcpy(s->block + at, p, k);
    if (at + k == 64) sha_block(s, k < 64 ? s->block : p);
    s->nbytes += k;
    p += k;
    n -= k;
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

bool fetch_sum(const char *path, char hex[65]) {
  Sha s;
  static char room[1 << 16];
  FILE *f = fopen(path, "rb");
  if (!f) return false;
  sha_begin(&s);
  for (size_t n; !cli_interrupted() && (n = fread(room, 1, sizeof room, f)) > 0;)
    sha_add(&s, room, n);
  bool ok = !ferror(f) && !cli_interrupted();
  if (cli_interrupted()) errno = EINTR;
  fclose(f);
  sha_end(&s, hex);
  return ok;
}

/* ---- transfers */
#ifdef TG_HAVE_CURL
enum { TEXT_FIRST = 1 << 14, TRIES = 50 };

/* Where received bytes go: into a file, or into memory of at most `most` bytes. */
typedef struct Fetch {
  const FetchAsk *ask;
  FILE *to;
  char *text;
  size_t n, cap, most;
  char *next; /* of fetch_text */
  size_t next_cap;
  int64_t had; /* bytes that an earlier call had received */
  int64_t got;
  CliProgress progress;
  bool in_file, begun, too_long;
  int error; /* errno of a write that failed */
  char why[CURL_ERROR_SIZE];
} Fetch;

/* Returns less than it was given in order to stop the transfer. */
static size_t received(char *data, size_t size, size_t n, void *user) {
  Fetch *f = user;
  (void)size; /* libcurl says: always 1 */
  f->too_long = f->ask->nbytes >= 0 && f->had + f->got + (int64_t)n > f->ask->nbytes;
  if (f->too_long) return 0;
  size_t wrote = fwrite(data, 1, n, f->to);
  if (wrote < n) f->error = errno;
  f->got += (int64_t)wrote;
  return wrote;
}

static size_t kept(char *data, size_t size, size_t n, void *user) {
  Fetch *f = user;
  (void)size;
  f->too_long = n > f->most - f->n;
  if (f->too_long) return 0;
  if (f->n + n + 1 > f->cap) {
    size_t cap = 2 * (f->n + n) + TEXT_FIRST;
    char *more = realloc(f->text, cap);
    if (!more) return f->error = ENOMEM, 0;
    f->text = more;
    f->cap = cap;
  }
  memcpy(f->text + f->n, data, n);
  f->text[f->n += n] = 0;
  f->got += (int64_t)n;
  return n;
}

/* Reads the query of `<URL>; rel="next"` from a Link header. In a chain of redirects the last response
 * counts. */
static size_t header_read(char *data, size_t size, size_t n, void *user) {
  Fetch *f = user;
  char line[4096];
  (void)size;
  snprintf(line, sizeof line, "%.*s", (int)(n < sizeof line ? n : sizeof line - 1), data);
  if (!strncasecmp(line, "HTTP/", 5)) f->next[0] = 0;
  if (strncasecmp(line, "link:", 5)) return n;
  const char *rel = strstr(line, "rel=\"next\"");
  if (!rel) return n;
  const char *end = rel, *query;
  while (end > line && *end != '>')
    end--;
  for (query = end; query > line && *query != '<';)
    query--;
  size_t head = strcspn(query, "?>");
  query += head;
  if (query >= end || (size_t)(end - query) >= f->next_cap) return n;
  snprintf(f->next, f->next_cap, "%.*s", (int)(end - query), query);
  for (char *p = f->next; *p; p++)
    if (*p <= ' ' || *p > '~') f->next[0] = 0;
  return n;
}

static int moved_on(void *user, curl_off_t total, curl_off_t now, curl_off_t up, curl_off_t uploaded) {
  Fetch *f = user;
  (void)up, (void)uploaded;
  if (total > 0 && !f->begun && f->in_file) {
    cli_progress_begin(&f->progress, f->had, f->had + total, true);
    f->begun = true;
  }
  if (total > 0 && f->begun) cli_progress(&f->progress, f->had + now, f->ask->name, "B");
  return cli_interrupted();
}

/* A token goes out as a header: libcurl leaves this header out as soon as a redirect leads to another host,
 * port or protocol. Returns false if there is no memory. */
static bool set_up(CURL *curl, Fetch *f, struct curl_slist **headers) {
  const FetchAsk *a = f->ask;
  char line[1100], agent[64];
  snprintf(agent, sizeof agent, "tinygrad-c/%s", tg_version());
  curl_easy_setopt(curl, CURLOPT_URL, a->url);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, agent);
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 10L);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, a->hub ? "http,https" : "http,https,file");
  if (a->hub && !strncmp(a->url, "https:", 6)) curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "https");
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 30L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, 60L);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, moved_on);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, f);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, f->why);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, f->in_file ? received : kept);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, f);
  curl_easy_setopt(curl, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)f->had);
  if (f->next) {
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, header_read);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, f);
  }
  if (!a->bearer || *headers) return true;
  snprintf(line, sizeof line, "Authorization: Bearer %s", a->bearer);
  *headers = curl_slist_append(NULL, line);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, *headers);
  return *headers != NULL;
}

/* Makes one try. resumed: continues after the bytes that are in the file. */
static CURLcode transfer(CURL *curl, Fetch *f, const char *part, bool resumed, struct curl_slist **headers) {
  f->to = fopen(part, resumed ? "ab" : "wb");
  if (!f->to) return f->error = errno, CURLE_WRITE_ERROR;
  fseek(f->to, 0, SEEK_END);
  f->had = ftell(f->to);
  f->in_file = true;
  f->got = 0;
  f->begun = false;
  CURLcode rc = set_up(curl, f, headers) ? curl_easy_perform(curl) : CURLE_OUT_OF_MEMORY;
  if (fclose(f->to) && !rc) f->error = errno, rc = CURLE_WRITE_ERROR;
  cli_progress_clear(&f->progress);
  return rc;
}

/* Prints why a transfer failed. */
static int failed(CURL *curl, const Fetch *f, CURLcode rc, const char *to) {
  const FetchAsk *a = f->ask;
  char bytes[32];
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  const char *advice = a->advice && rc == CURLE_HTTP_RETURNED_ERROR ? a->advice(status) : NULL;
  if (f->too_long)
    return cli_refuse(CLI_FAILED, cli_running(), "%s: the server sends more than %s", a->url,
                      cli_bytes(f->in_file ? (double)a->nbytes : (double)f->most, bytes));
  if (f->error) return cli_refuse(CLI_FAILED, cli_running(), "%s: %s", to, strerror(f->error));
  return cli_refuse(CLI_FAILED, cli_running(), "%s: %s%s%s", a->url,
                    *f->why ? f->why : curl_easy_strerror(rc), advice ? ": " : "", advice ? advice : "");
}

/* Returns whether a transfer that brought some bytes was cut off, so that another try may bring the rest. */
static bool was_cut(const Fetch *f, CURLcode rc) {
  bool cut = rc == CURLE_PARTIAL_FILE || rc == CURLE_RECV_ERROR || rc == CURLE_OPERATION_TIMEDOUT ||
             rc == CURLE_HTTP2 || rc == CURLE_HTTP2_STREAM;
  return cut && f->got > 0 && !cli_interrupted();
}

/* If the server cannot continue, or has no bytes left, the whole file is requested. */
static int fetched(const FetchAsk *a, const char *part) {
  Fetch f = {.ask = a};
  struct curl_slist *headers = NULL;
  CURL *curl = curl_easy_init();
  if (!curl) return cli_refuse(CLI_FAILED, cli_running(), "libcurl does not start");
  CURLcode rc = transfer(curl, &f, part, true, &headers);
  long code = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
  if (f.had > 0 && (rc == CURLE_RANGE_ERROR || code == 416)) rc = transfer(curl, &f, part, false, &headers);
  for (int i = 0; i < TRIES && was_cut(&f, rc); i++) {
    fprintf(stderr, "%s: the connection ended; going on\n", a->name);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    rc = transfer(curl, &f, part, true, &headers);
  }
  int result = CLI_OK;
  if (rc == CURLE_ABORTED_BY_CALLBACK && cli_interrupted()) {
    fprintf(stderr, "interrupted; the next call goes on from %s\n", part);
    result = CLI_INTERRUPTED;
  } else if (rc)
    result = failed(curl, &f, rc, part);
  curl_slist_free_all(headers);
  curl_easy_cleanup(curl);
  return result;
}

int fetch_text(const FetchAsk *a, size_t most, char **text, size_t *n, char *next, size_t cap) {
  Fetch f = {.ask = a, .most = most, .next = next, .next_cap = cap};
  struct curl_slist *headers = NULL;
  CURL *curl = curl_easy_init();
  *text = NULL;
  *n = 0;
  if (next) next[0] = 0;
  if (!curl) return cli_refuse(CLI_FAILED, cli_running(), "libcurl does not start");
  CURLcode rc = set_up(curl, &f, &headers) ? curl_easy_perform(curl) : CURLE_OUT_OF_MEMORY;
  int result = !rc ? CLI_OK : cli_interrupted() ? CLI_INTERRUPTED : failed(curl, &f, rc, "memory");
  if (!result && !f.text && !(f.text = calloc(1, 1)))
    result = cli_refuse(CLI_FAILED, cli_running(), "out of memory");
  curl_slist_free_all(headers);
  curl_easy_cleanup(curl);
  if (result) return free(f.text), result;
  *text = f.text;
  *n = f.n;
  return CLI_OK;
}
#else
static int fetched(const FetchAsk *a, const char *part) {
  (void)part;
  return cli_refuse(CLI_FAILED, cli_running(),
                    "%s: this tg was built without libcurl (install libcurl4-openssl-dev, build again)",
                    a->url);
}

int fetch_text(const FetchAsk *a, size_t most, char **text, size_t *n, char *next, size_t cap) {
  (void)most, (void)text, (void)n, (void)next, (void)cap;
  return fetched(a, NULL);
}
#endif

/* ---- files */
/* Opens the part and locks it. If another process has the lock, this waits until that one has moved the part
 * into place or left it, and then opens the part anew. -1: it cannot be opened; -2: interrupted. */
static int part_lock(const char *part) {
  for (bool said = false;;) {
    int fd = open(part, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) return -1;
    while (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
      if (!said) fprintf(stderr, "%s: another process downloads it; waiting\n", part);
      said = true;
      if (cli_interrupted()) return close(fd), -2;
      nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    struct stat mine, there;
    if (!fstat(fd, &mine) && !stat(part, &there) && mine.st_ino == there.st_ino &&
        mine.st_dev == there.st_dev)
      return fd;
    close(fd);
  }
}

static int64_t size_of(const char *path) {
  struct stat s;
  return !stat(path, &s) && S_ISREG(s.st_mode) ? (int64_t)s.st_size : -1;
}

/* Returns whether the file system has room for the bytes that are missing. If not, prints this. */
static bool has_room(const FetchAsk *a, const char *part) {
  struct statvfs v;
  char wanted[32], there[32];
  int64_t had = size_of(part), missing = a->nbytes - (had > 0 ? had : 0);
  if (a->nbytes < 0 || statvfs(part, &v)) return true;
  double room = (double)v.f_bavail * (double)v.f_frsize;
  return (double)missing <= room ||
         cli_refuse(0, cli_running(), "%s: %s are missing, and there is room for %s", part,
                    cli_bytes((double)missing, wanted), cli_bytes(room, there));
}

/* Downloads what is missing of the part, and holds it against what is known of it. */
static int part_filled(const FetchAsk *a, const char *part, char sum[65]) {
  char wanted[32], there[32];
  if (!has_room(a, part)) return CLI_FAILED;
  if (a->nbytes >= 0 && size_of(part) > a->nbytes && truncate(part, 0))
    return cli_refuse(CLI_FAILED, cli_running(), "%s: %s", part, strerror(errno));
  int rc = a->nbytes >= 0 && size_of(part) == a->nbytes ? CLI_OK : fetched(a, part);
  if (rc) return rc;
  if (a->nbytes >= 0 && size_of(part) != a->nbytes)
    return cli_refuse(CLI_FAILED, cli_running(), "%s ended after %s of %s; the next call goes on", a->url,
                      cli_bytes((double)size_of(part), there), cli_bytes((double)a->nbytes, wanted));
  CliWait *wait = cli_wait_begin("checking the sum");
  bool read = fetch_sum(part, sum);
  cli_wait_end(wait);
  if (!read) return cli_refuse(CLI_FAILED, cli_running(), "%s: %s", part, strerror(errno));
  if (!a->sha256 || !strcasecmp(a->sha256, sum)) return CLI_OK;
  remove(part);
  return cli_refuse(CLI_FAILED, cli_running(), "%s has the sum %s, not %s", a->url, sum, a->sha256);
}

int fetch_file(const FetchAsk *a, const char *part, const char *place, char sum[65]) {
  sum[0] = 0;
  int lock = part_lock(part);
  if (lock == -2) return CLI_INTERRUPTED;
  if (lock < 0) return cli_refuse(CLI_FAILED, cli_running(), "%s: %s", part, strerror(errno));
  int rc = CLI_OK;
  if (a->hub && a->nbytes >= 0 && size_of(place) == a->nbytes)
    remove(part); /* another process has just made it */
  else {
    rc = part_filled(a, part, sum);
    if (!rc && rename(part, place))
      rc = cli_refuse(CLI_FAILED, cli_running(), "%s: %s", place, strerror(errno));
  }
  if (rc && size_of(part) == 0) remove(part); /* no bytes to continue from */
  close(lock);
  return rc;
}

/* ---- the command */
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

static int model_fetched(const Options *o, const char *name) {
  HubAsk ask = {.name = name, .anew = true, .sight = true};
  HubPaths p;
  if (o->out || o->sha256)
    return cli_refuse(CLI_USAGE, "fetch", "--%s is for a URL: the place and the sums of a model are known",
                      o->out ? "out" : "sha256");
  int rc = hub_path(&ask, &p);
  if (!rc && o->json) {
    printf("{\"path\":"), cli_json_text(stdout, p.model);
    if (p.sight) printf(",\"mmproj\":"), cli_json_text(stdout, p.sight);
    puts("}");
  } else if (!rc)
    puts(p.model);
  free(p.model), free(p.sight);
  return rc;
}

static int run_fetch(const void *options, char **argument, int n) {
  const Options *o = options;
  char part[4106], place[4100], made[4000], sum[65] = "";
  const char *name = o->out ? o->out : made;
  (void)n;
  if (hub_is(argument[0])) return model_fetched(o, argument[0]);
  name_of(argument[0], made, sizeof made);
  if (o->sha256 && !is_sum(o->sha256))
    return cli_refuse(CLI_USAGE, "fetch", "--sha256 %s: a sum has 64 digits, 0-9 and a-f", o->sha256);
  if (!*name) return cli_refuse(CLI_USAGE, "fetch", "%s names no file: give --out FILE", argument[0]);
  if (!place_of(name, place, sizeof place)) return CLI_FAILED;
  snprintf(part, sizeof part, "%s.part", place);
  cli_catch_interrupt();
  FetchAsk ask = {.url = argument[0], .name = name, .sha256 = o->sha256, .nbytes = -1};
  int rc = fetch_file(&ask, part, place, sum);
  if (rc) return rc;
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

const CliCommand command_fetch = {
    .name = "fetch",
    .summary = "download a file or a model, going on where an earlier call was "
               "cut off",
    .arguments = "URL|hf:OWNER/REPO[:QUANT]",
    .least = 1,
    .most = 1,
    CLI_TAKES(Options, options),
    .run = run_fetch,
    .more = "hf:OWNER/REPO names a model of the Hugging Face Hub: its gguf file with QUANT "
            "as a word of its name, else the one of Q4_K_M, of Q8_0, or the only one; without "
            "a gguf file its folder. It goes to $TG_MODELS, else to tinygrad-c/models "
            "in $XDG_CACHE_HOME or ~/.cache, and its path is printed; what reads pictures "
            "for it (mmproj) comes too. $HF_TOKEN opens models that are not public; "
            "$HF_ENDPOINT is another hub. Files that are there are checked, and those that "
            "the hub has changed are replaced."};
