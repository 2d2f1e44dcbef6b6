/* viz.c: `tg viz FILE.onnx|PROGRAM ARGS..|FOLDER`: a page that shows every graph, kernel, pass and rewrite.
 * In: a program, which is run with TG_VIZ, or a folder that such a run left. Out: a page that libmicrohttpd
 * serves only to this machine. Its address has a token that nobody can guess, requests that name another host
 * or come from another site are refused, and only files such as c0/graphs.json and c0/k003.json are
 * served. */
#define _GNU_SOURCE
#include "cli.h"
#include "program.h"
#include "viz.h"
#include "emu/fragments.h"
#include <errno.h>
#include <fcntl.h>
#ifdef TG_HAVE_JANSSON
#include <jansson.h>
#endif
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct VizOptions {
  const char *keep;
  int64_t port;
  bool no_page, tour;
} VizOptions;

enum { MOST_CONTEXTS = 1000 };

#ifdef TG_HAVE_MICROHTTPD
#include <arpa/inet.h>
#include <dirent.h>
#include <microhttpd.h>
#include <netinet/in.h>

extern const unsigned char viz_page[];
extern const size_t viz_page_bytes;
extern const char rules_text[]; /* for each file of rules: a form feed, its name, its lines */

enum { TOKEN_BYTES = 16, MOST_FILE = 256 << 20 };

typedef struct Viz {
  int folder; /* a file descriptor */
  char token[2 * TOKEN_BYTES + 1];
  int port;
} Viz;

static enum MHD_Result answer(struct MHD_Connection *c, unsigned status, const char *type,
                              struct MHD_Response *r) {
  if (!r) return MHD_NO;
  MHD_add_response_header(r, "Content-Type", type);
  MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
  MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
  MHD_add_response_header(r, "Cache-Control", "no-store");
  MHD_add_response_header(r, "Content-Security-Policy",
                          "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' blob:; "
                          "worker-src blob:; connect-src 'self'; img-src data:; base-uri 'none'; "
                          "form-action 'none'; frame-ancestors 'none'");
  enum MHD_Result ok = MHD_queue_response(c, status, r);
  MHD_destroy_response(r);
  return ok;
}

static enum MHD_Result refuse(struct MHD_Connection *c, unsigned status, const char *why) {
  return answer(c, status, "text/plain; charset=utf-8",
                MHD_create_response_from_buffer(strlen(why), (void *)(uintptr_t)why, MHD_RESPMEM_PERSISTENT));
}

/* ---- which requests are allowed */
static bool is_ours(const Viz *v, struct MHD_Connection *c) {
  const char *host = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Host");
  const char *origin = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Origin");
  char number[40], name[40];
  snprintf(number, sizeof number, "127.0.0.1:%d", v->port);
  snprintf(name, sizeof name, "localhost:%d", v->port);
  if (!host || (strcasecmp(host, number) && strcasecmp(host, name))) return false;
  return !origin || (!strncasecmp(origin, "http://", 7) && !strcasecmp(origin + 7, host));
}

/* Returns the URL after the token; NULL: a wrong token. It takes the same time for each, so that the time
 * reveals nothing. */
static const char *behind_token(const Viz *v, const char *url) {
  size_t n = strlen(v->token);
  unsigned char differ = 0;
  if (*url != '/' || strlen(url) < n + 2) return NULL;
  for (size_t i = 0; i < n; i++)
    differ |= (unsigned char)(url[1 + i] ^ v->token[i]);
  return differ || url[n + 1] != '/' ? NULL : url + n + 2;
}

/* ---- files: names such as "c0/k003.json", and no other form */
static bool is_file_name(const char *s) {
  size_t context = strspn(s + (*s == 'c'), "0123456789");
  if (*s != 'c' || !context || context > 3 || s[1 + context] != '/') return false;
  s += context + 2;
  if (!strcmp(s, "graphs.json") || !strcmp(s, "assembly.json") || !strcmp(s, "tour.json")) return true;
  size_t number = *s == 's' || *s == 'k' ? strspn(s + 1, "0123456789") : 0;
  return number >= 3 && number <= 9 && !strcmp(s + 1 + number, ".json");
}

/* Answers with the elements of a matrix unit's operands that each thread of a warp has, in this tg. */
static enum MHD_Result say_fragments(struct MHD_Connection *c) {
  char *text = NULL;
  size_t n = 0;
  FILE *f = open_memstream(&text, &n);
  if (f) fragments_json(f);
  if (!f || fclose(f)) return refuse(c, 500, "out of memory\n");
  return answer(c, 200, "application/json", MHD_create_response_from_buffer(n, text, MHD_RESPMEM_MUST_FREE));
}

/* Answers with the rules of this tg. */
static enum MHD_Result say_rules(struct MHD_Connection *c) {
  return answer(c, 200, "text/plain; charset=utf-8",
                MHD_create_response_from_buffer(strlen(rules_text), (void *)(uintptr_t)rules_text,
                                                MHD_RESPMEM_PERSISTENT));
}

static enum MHD_Result say_file(const Viz *v, struct MHD_Connection *c, const char *name) {
  struct stat s;
  char context[8] = "";
  if (is_file_name(name)) snprintf(context, sizeof context, "%.*s", (int)strcspn(name, "/"), name);
  int at = *context ? openat(v->folder, context, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_DIRECTORY) : -1;
  const char *file = name + strlen(context) + 1;
  int fd = at < 0
               ? -1
               : openat(at, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); /* no link is followed */
  if (at >= 0) close(at);
  if (fd >= 0 && (fstat(fd, &s) || !S_ISREG(s.st_mode) || s.st_size > MOST_FILE)) {
    close(fd);
    fd = -1;
  }
  bool may_lack = is_file_name(name) && (!strcmp(file, "assembly.json") || !strcmp(file, "tour.json"));
  if (fd < 0 && may_lack) /* not every run has this file */
    return answer(c, 200, "application/json",
                  MHD_create_response_from_buffer(4, (void *)(uintptr_t) "null", MHD_RESPMEM_PERSISTENT));
  if (fd < 0) return refuse(c, 404, "there is no such file\n");
  return answer(c, 200, "application/json", MHD_create_response_from_fd64((uint64_t)s.st_size, fd));
}

/* Answers with the contexts of the folder: ["c0", "c1"]. */
static enum MHD_Result say_list(const Viz *v, struct MHD_Connection *c) {
  char *text = malloc(MOST_CONTEXTS * 8 + 8), path[40];
  size_t n = 0;
  if (!text) return MHD_NO;
  text[n++] = '[';
  for (int i = 0; i < MOST_CONTEXTS; i++) {
    snprintf(path, sizeof path, "c%d/graphs.json", i);
    if (faccessat(v->folder, path, R_OK, 0)) continue;
    n += (size_t)sprintf(text + n, "%s\"c%d\"", n > 1 ? "," : "", i);
  }
  text[n++] = ']';
  return answer(c, 200, "application/json", MHD_create_response_from_buffer(n, text, MHD_RESPMEM_MUST_FREE));
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *c, const char *url, const char *method,
                                  const char *version, const char *data, size_t *n, void **seen) {
  const Viz *v = user;
  static int first;
  (void)version, (void)data;
  if (!*seen) {
    *seen = &first;
    return MHD_YES;
  }
  if (*n) return MHD_NO; /* no request of the page has a body */
  const char *what = behind_token(v, url);
  if (!is_ours(v, c)) return refuse(c, 403, "this page is for its own machine alone\n");
  if (!what) return refuse(c, 404, "there is no such place\n");
  if (strcmp(method, "GET") && strcmp(method, "HEAD")) return refuse(c, 405, "not by this method\n");
  if (!strcmp(what, "list")) return say_list(v, c);
  if (!strcmp(what, "fragments")) return say_fragments(c);
  if (!strcmp(what, "rules")) return say_rules(c);
  if (!strncmp(what, "data/", 5)) return say_file(v, c, what + 5);
  if (*what) return refuse(c, 404, "there is no such place\n");
  return answer(
      c, 200, "text/html; charset=utf-8",
      MHD_create_response_from_buffer(viz_page_bytes, (void *)(uintptr_t)viz_page, MHD_RESPMEM_PERSISTENT));
}

static bool token_made(Viz *v) {
  unsigned char bytes[TOKEN_BYTES];
  int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  bool ok = fd >= 0 && read(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes;
  if (fd >= 0) close(fd);
  for (size_t i = 0; ok && i < sizeof bytes; i++)
    snprintf(v->token + 2 * i, 3, "%02x", bytes[i]);
  return ok;
}

static int serve(const char *folder, int64_t port) {
  Viz v = {.folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (v.folder < 0) return cli_refuse(CLI_FAILED, "viz", "%s: %s", folder, strerror(errno));
  struct MHD_Daemon *d = NULL;
  if (token_made(&v))
    d = MHD_start_daemon(MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, on_request, &v,
                         MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&at, MHD_OPTION_CONNECTION_LIMIT, 64u,
                         MHD_OPTION_CONNECTION_TIMEOUT, 30u, MHD_OPTION_END);
  const union MHD_DaemonInfo *info = d ? MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT) : NULL;
  int rc = CLI_OK;
  if (info) {
    v.port = info->port;
    printf("viz: %s  http://127.0.0.1:%d/%s/  (Ctrl-C ends)\n", folder, v.port, v.token);
    fflush(stdout);
    cli_catch_interrupt();
    while (!cli_interrupted())
      usleep(100000);
  } else
    rc = cli_refuse(CLI_FAILED, "viz", "127.0.0.1:%lld: %s", (long long)port, strerror(errno));
  if (d) MHD_stop_daemon(d);
  close(v.folder);
  return rc;
}
#else
static int serve(const char *folder, int64_t port) {
  (void)port;
  return cli_refuse(CLI_FAILED, "viz", "%s: this build serves no pages (libmicrohttpd)", folder);
}
#endif

#ifdef TG_HAVE_JANSSON
enum { MOST_KERNELS = 256 };

typedef struct Kernels {
  const char *source[MOST_KERNELS], *name[MOST_KERNELS];
  char number[MOST_KERNELS][44], *assembly[MOST_KERNELS];
  int n;
} Kernels;

/* Lists the kernels in C, each source once; `number` is where it occurs first, "0.2": graph 0, kernel 2. */
static void kernels_listed(Kernels *to, json_t *all) {
  json_t *graph, *kernel;
  size_t g, k;
  json_array_foreach(json_object_get(all, "graphs"), g, graph) {
    json_array_foreach(json_object_get(graph, "kernels"), k, kernel) {
      const char *source = json_string_value(json_object_get(kernel, "source"));
      const char *name = json_string_value(json_object_get(kernel, "name"));
      bool seen = !source || !name || !strstr(source, ", C, ") || to->n == MOST_KERNELS;
      for (int i = 0; i < to->n && !seen; i++)
        seen = !strcmp(to->source[i], source);
      if (seen) continue;
      to->source[to->n] = source;
      to->name[to->n] = name;
      snprintf(to->number[to->n++], sizeof to->number[0], "%zu.%zu", g, k);
    }
  }
}

/* Writes c0/assembly.json next to c0/graphs.json, for a run of our own: sources from elsewhere are not
 * compiled. Returns false if there is no such context. */
static bool assembly_put(const char *folder, int context) {
  char path[400];
  json_error_t e;
  snprintf(path, sizeof path, "%s/c%d/graphs.json", folder, context);
  json_t *all = json_load_file(path, 0, &e);
  Kernels *k = all ? calloc(1, sizeof *k) : NULL;
  if (k) kernels_listed(k, all);
  snprintf(path, sizeof path, "%s/c%d/assembly.json", folder, context);
  FILE *f = k && assembly_of(k->source, k->name, k->n, k->assembly) ? fopen(path, "w") : NULL;
  for (int i = 0; f && i < k->n; i++) {
    fprintf(f, "%s\"%s\":", i ? ",\n" : "{", k->number[i]);
    cli_json_text(f, k->assembly[i] ? k->assembly[i] : "");
  }
  if (f) fputs("}\n", f), fclose(f);
  for (int i = 0; k && i < k->n; i++)
    free(k->assembly[i]);
  free(k);
  json_decref(all);
  return all != NULL;
}
#else
static bool assembly_put(const char *folder, int context) {
  (void)folder, (void)context;
  return false;
}
#endif

/* Removes a folder that was made for a run. */
static void folder_removed(const char *folder) {
  char command[400];
  if (strchr(folder, '\'')) return;
  snprintf(command, sizeof command, "rm -rf -- '%s'", folder);
  if (system(command)) fprintf(stderr, "tg viz: %s stays\n", folder);
}

static bool any_recorded(const char *folder) {
  char context[400];
  struct stat s;
  snprintf(context, sizeof context, "%.380s/c0", folder);
  return !stat(context, &s);
}

static int folder_shown(const char *folder, int64_t port) {
  if (!any_recorded(folder))
    return cli_refuse(CLI_FAILED, "viz", "%s: a folder without a run; tg viz --keep FOLDER PROGRAM makes one",
                      folder);
  return serve(folder, port);
}

static int run_viz(const void *options, char **argument, int n) {
  const VizOptions *o = options;
  const char *tmp = getenv("TMPDIR");
  char made[260] = "";
  struct stat s;
  if (!n && !o->tour) return cli_refuse(CLI_USAGE, "viz", "a program, a folder, or --tour");
  if (n && !stat(argument[0], &s) && S_ISDIR(s.st_mode)) return folder_shown(argument[0], o->port);
  snprintf(made, sizeof made, "%.200s/tg-viz-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (!o->keep && !mkdtemp(made)) return cli_refuse(CLI_FAILED, "viz", "%s: %s", made, strerror(errno));
  const char *folder = o->keep ? o->keep : made;
  int rc =
      o->tour ? (tour_record(folder) ? CLI_OK : CLI_FAILED) : program_with(argument, "viz", "TG_VIZ", folder);
  if (!o->tour) program_ended("viz", argument[0], rc);
  for (int i = 0; i < MOST_CONTEXTS && assembly_put(folder, i);)
    i++;
  bool recorded = any_recorded(folder);
  if (!recorded && !rc)
    rc = cli_refuse(CLI_FAILED, "viz", "%s ran nothing in a context of this library", argument[0]);
  if (program_asked()) rc = CLI_INTERRUPTED;
  if (recorded && !o->no_page && program_asked() != ASKED_BY_PROCESS) rc = serve(folder, o->port);
  if (!o->keep) folder_removed(folder);
  return rc;
}

static const VizOptions defaults = {0};
static const CliOption options[] = {
    CLI_TEXT_OF(VizOptions, keep, "keep", "FOLDER", "where the run is kept, to be shown again or sent"),
    CLI_WHOLE_OF(VizOptions, port, "port", 0, 65535, "of the page; 0: one that is free"),
    CLI_FLAG_OF(VizOptions, tour, "tour", "no program: relu(a @ b) through every stage, explained"),
    CLI_FLAG_OF(VizOptions, no_page, "no-page", "run the program and end (with --keep)")};

const CliCommand command_viz = {.name = "viz",
                                .summary = "show a program's graphs, kernels and rewrites in a browser",
                                .arguments = "[FILE.onnx|PROGRAM ARGS..|FOLDER]",
                                .least = 0,
                                .most = -1,
                                CLI_TAKES(VizOptions, options),
                                .defaults = &defaults,
                                .run = run_viz,
                                .more = "PROGRAM is any that links the library; options of its own follow "
                                        "--. FOLDER is what such a run left, or "
                                        "TG_VIZ=FOLDER. The page is served to this machine alone, at an "
                                        "address that has a token in it, and asks "
                                        "for nothing from elsewhere. ? in the page lists its keys."};
