/* serve_http.c: HTTP for `tg serve`, by libmicrohttpd, in a thread of its own. In: requests from anyone. Out:
 * valid requests, as jobs of a queue; what the main thread writes to a job is sent to its client at once. A
 * connection that waits for text is suspended, so that slow clients and models do not hold up other
 * connections.
 *
 * Without a key, only this machine may send requests, and only to one of its own names. A page of another
 * site in a browser here is refused, by its Origin or because its host name is not ours. */
#define _POSIX_C_SOURCE 200809L
#ifdef TG_HAVE_MICROHTTPD
#include "serve.h"
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

enum {
  MOST_BODY = 16 << 20,
  MOST_CONNECTIONS = 1000,
  IDLE_SECONDS = 30, /* after which a client that neither sends nor reads is dropped */
  PIECE = 16 << 10
};

/* ---- jobs */
/* Ends one thread's use of a job; the last of its holders frees it. Called with the lock held, which is
 * unlocked. */
static void job_release(Job *j) {
  pthread_mutex_t *lock = &j->server->lock;
  bool last = !--j->holders;
  pthread_mutex_unlock(lock);
  if (!last) return;
  ask_free(&j->ask);
  free(j->body), free(j->out), free(j);
}

/* Resumes the job's connection if it waits. */
static void job_wake(Job *j) {
  if (j->waits && !j->gone) MHD_resume_connection(j->connection);
  j->waits = false;
}

static bool append(char **to, size_t *n, size_t *cap, const char *text, size_t more) {
  if (*n + more > *cap) {
    size_t room = 2 * (*n + more);
    char *grown = realloc(*to, room);
    if (!grown) return false;
    *to = grown;
    *cap = room;
  }
  if (more) memcpy(*to + *n, text, more);
  *n += more;
  return true;
}

void job_put(Job *j, const char *text, size_t n) {
  pthread_mutex_lock(&j->server->lock);
  if (!j->gone && append(&j->out, &j->nout, &j->out_cap, text, n) && j->status) job_wake(j);
  pthread_mutex_unlock(&j->server->lock);
}

void job_begin(Job *j, int status) {
  pthread_mutex_lock(&j->server->lock);
  j->status = status;
  job_wake(j);
  pthread_mutex_unlock(&j->server->lock);
}

void job_end(Job *j, int status) {
  pthread_mutex_lock(&j->server->lock);
  if (!j->status) j->status = status;
  j->done = true;
  job_wake(j);
  job_release(j);
}

/* The message may end within a character, because it may have been cut. */
static json_t *error_of(const char *type, const char *param, const char *message) {
  json_t *p = param && *param ? serve_text(param, strlen(param)) : json_null();
  return json_pack("{s:{s:o, s:s, s:o, s:n}}", "error", "message", serve_text(message, strlen(message)),
                   "type", type, "param", p, "code");
}

void job_fail(Job *j, int status, const char *type, const char *message) {
  char *text = NULL;
  json_t *e = error_of(type, NULL, message);
  if (e) text = json_dumps(e, JSON_COMPACT);
  if (j->status) job_put(j, "data: ", 6); /* if a stream has begun, the error is an event of it */
  if (text) job_put(j, text, strlen(text));
  job_put(j, "\n\n", j->status ? 2 : 1);
  free(text);
  json_decref(e);
  job_end(j, status);
}

/* The library does not watch a suspended connection, so its socket is examined here. A client that only ended
 * its sending (shutdown) looks like one that has left until something is written to it. A stream writes soon
 * and then finds out, so the end of sending is ignored for it. */
bool job_gone(Job *j) {
  char byte;
  pthread_mutex_lock(&j->server->lock);
  bool gone = j->gone;
  if (!gone && j->waits && j->fd >= 0) {
    ssize_t n = recv(j->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    gone = n == 0 ? !j->ask.stream : n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR;
  }
  pthread_mutex_unlock(&j->server->lock);
  return gone;
}

/* ---- the queue */
Job *http_next(Server *s, bool (*can)(const Job *j, void *user), void *user) {
  pthread_mutex_lock(&s->lock);
  Job **at = &s->first, *before = NULL;
  while (*at && !can(*at, user)) {
    before = *at;
    at = &(*at)->next;
  }
  Job *j = *at;
  if (j) {
    *at = j->next;
    if (s->last == j) s->last = before;
    j->next = NULL;
    s->queued--;
    s->active++;
  }
  pthread_mutex_unlock(&s->lock);
  return j;
}

void http_wait(Server *s, double seconds) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  int64_t ns = t.tv_nsec + (int64_t)(seconds * 1e9);
  t.tv_sec += ns / 1000000000;
  t.tv_nsec = ns % 1000000000;
  pthread_mutex_lock(&s->lock);
  if (!s->first) pthread_cond_timedwait(&s->wake, &s->lock, &t);
  pthread_mutex_unlock(&s->lock);
}

/* ---- answers that need no model */
static struct MHD_Response *response_of(const char *type, const char *text, size_t n, bool copied) {
  struct MHD_Response *r = MHD_create_response_from_buffer(
      n, (void *)(uintptr_t)text, copied ? MHD_RESPMEM_MUST_COPY : MHD_RESPMEM_PERSISTENT);
  if (!r) return NULL;
  MHD_add_response_header(r, "Content-Type", type);
  MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
  MHD_add_response_header(r, "Content-Security-Policy",
                          "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
                          "connect-src 'self'; img-src data:; base-uri 'none'; frame-ancestors 'none'");
  return r;
}

static enum MHD_Result answer_with(struct MHD_Connection *c, int status, struct MHD_Response *r) {
  if (!r) return MHD_NO;
  if (status == 429 || status == 503) MHD_add_response_header(r, "Retry-After", "1");
  if (status == 401) MHD_add_response_header(r, "WWW-Authenticate", "Bearer");
  enum MHD_Result ok = MHD_queue_response(c, (unsigned)status, r);
  MHD_destroy_response(r);
  return ok;
}

static enum MHD_Result answer(struct MHD_Connection *c, int status, const char *type, const char *text,
                              size_t n, bool copied) {
  return answer_with(c, status, response_of(type, text, n, copied));
}

static struct MHD_Response *json_response(json_t *v) {
  char *text = v ? json_dumps(v, JSON_COMPACT) : NULL;
  json_decref(v);
  struct MHD_Response *r = text ? response_of("application/json", text, strlen(text), true) : NULL;
  free(text);
  return r;
}

static enum MHD_Result answer_json(struct MHD_Connection *c, int status, json_t *v) {
  return answer_with(c, status, json_response(v));
}

static void count_refused(Server *s) {
  pthread_mutex_lock(&s->lock);
  s->counts.refused++;
  pthread_mutex_unlock(&s->lock);
}

static enum MHD_Result refuse(Server *s, struct MHD_Connection *c, int status, const char *type,
                              const char *param, const char *message) {
  count_refused(s);
  return answer_json(c, status, error_of(type, param, message));
}

static enum MHD_Result say_health(Server *s, struct MHD_Connection *c, const char *rest) {
  (void)rest;
  pthread_mutex_lock(&s->lock);
  json_t *v = json_pack("{s:s, s:I, s:I}", "status", s->closing ? "closing" : "ok", "active",
                        (json_int_t)s->active, "queued", (json_int_t)s->queued);
  pthread_mutex_unlock(&s->lock);
  return answer_json(c, 200, v);
}

static enum MHD_Result say_models(Server *s, struct MHD_Connection *c, const char *rest) {
  (void)rest;
  return answer_json(c, 200, json_pack("{s:s, s:o}", "object", "list", "data", json_deep_copy(s->names)));
}

/* Returns the model as /v1/models lists it; NULL: no model has this name. */
static json_t *model_named(const Server *s, const char *name) {
  json_t *m;
  size_t i;
  json_array_foreach(s->names, i, m) {
    if (!strcmp(json_string_value(json_object_get(m, "id")), name)) return m;
  }
  return NULL;
}

static enum MHD_Result no_model(Server *s, struct MHD_Connection *c) {
  return refuse(s, c, 404, "invalid_request_error", "model",
                "there is no model of this name: see /v1/models");
}

static enum MHD_Result say_model(Server *s, struct MHD_Connection *c, const char *name) {
  json_t *m = model_named(s, name);
  return m ? answer_json(c, 200, json_deep_copy(m)) : no_model(s, c);
}

/* Prometheus' text format, version 0.0.4. */
static enum MHD_Result say_metrics(Server *s, struct MHD_Connection *c, const char *rest) {
  (void)rest;
  char text[2048];
  pthread_mutex_lock(&s->lock);
  const Counts *k = &s->counts;
  int n = snprintf(text, sizeof text,
                   "# TYPE tg_requests_total counter\ntg_requests_total %lld\n"
                   "# TYPE tg_requests_refused_total counter\ntg_requests_refused_total %lld\n"
                   "# TYPE tg_requests_failed_total counter\ntg_requests_failed_total %lld\n"
                   "# TYPE tg_prompt_tokens_total counter\ntg_prompt_tokens_total %lld\n"
                   "# TYPE tg_cached_tokens_total counter\ntg_cached_tokens_total %lld\n"
                   "# TYPE tg_prompt_seconds_total counter\ntg_prompt_seconds_total %.6f\n"
                   "# TYPE tg_tokens_total counter\ntg_tokens_total %lld\n"
                   "# TYPE tg_tokens_seconds_total counter\ntg_tokens_seconds_total %.6f\n"
                   "# TYPE tg_guessed_tokens_total counter\ntg_guessed_tokens_total %lld\n"
                   "# TYPE tg_accepted_tokens_total counter\ntg_accepted_tokens_total %lld\n"
                   "# TYPE tg_requests_active gauge\ntg_requests_active %lld\n"
                   "# TYPE tg_requests_queued gauge\ntg_requests_queued %lld\n",
                   (long long)k->requests, (long long)k->refused, (long long)k->failed,
                   (long long)k->prompt_tokens, (long long)k->cached_tokens, k->prompt_s,
                   (long long)k->tokens, k->tokens_s, (long long)k->guessed, (long long)k->right,
                   (long long)s->active, (long long)s->queued);
  pthread_mutex_unlock(&s->lock);
  return answer(c, 200, "text/plain; version=0.0.4", text, (size_t)n, true);
}

/* ---- who may send requests */
static const char *header(struct MHD_Connection *c, const char *name) {
  return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

/* Takes the same time for a wrong key as for the right one, so that the time reveals nothing. */
static bool same_key(const char *a, const char *b) {
  size_t n = strlen(b);
  unsigned char differ = strlen(a) != n;
  for (size_t i = 0; i < n; i++)
    differ |= (unsigned char)(b[i] ^ a[i < strlen(a) ? i : strlen(a)]);
  return !differ;
}

static bool has_key(const Server *s, struct MHD_Connection *c) {
  const char *given = header(c, "Authorization");
  return !s->o->key || (given && !strncasecmp(given, "Bearer ", 7) && same_key(given + 7, s->o->key));
}

/* Returns whether a Host header has this name, ignoring a port. */
static bool is_host(const char *host, const char *name) {
  size_t n = strlen(name);
  return !strncasecmp(host, name, n) &&
         (!host[n] || (host[n] == ':' && strspn(host + n + 1, "0123456789") == strlen(host + n + 1)));
}

static bool is_ours(const Server *s, struct MHD_Connection *c) {
  const char *host = header(c, "Host"), *origin = header(c, "Origin");
  if (!s->o->key && (!host || !(is_host(host, "localhost") || is_host(host, "127.0.0.1") ||
                                is_host(host, "[::1]") || is_host(host, s->o->host))))
    return false;
  if (!origin || s->o->key) return true;
  const char *at = strstr(origin, "://");
  return at && host && !strcasecmp(at + 3, host);
}

/* ---- a job and its connection */
/* Called for the next bytes of a stream. If there are none yet, the connection is suspended. */
static ssize_t more_of(void *user, uint64_t pos, char *to, size_t most) {
  Job *j = user;
  (void)pos;
  pthread_mutex_lock(&j->server->lock);
  size_t n = j->nout - j->sent;
  ssize_t r = n ? (ssize_t)(n < most ? n : most) : 0;
  if (r) {
    memcpy(to, j->out + j->sent, (size_t)r);
    j->sent += (size_t)r;
    if (j->sent == j->nout) j->sent = j->nout = 0;
  } else if (j->done)
    r = MHD_CONTENT_READER_END_OF_STREAM;
  else {
    MHD_suspend_connection(j->connection);
    j->waits = true;
  }
  pthread_mutex_unlock(&j->server->lock);
  return r;
}

/* Sends the reply, or suspends the connection. Called again each time the job has news: its status, or its
 * end. */
static enum MHD_Result job_answer(Job *j, struct MHD_Connection *c) {
  Server *s = j->server;
  pthread_mutex_lock(&s->lock);
  bool ready = j->done || (j->ask.stream && j->status), stream = j->ask.stream && j->status == 200;
  int status = j->status;
  if (!ready) {
    MHD_suspend_connection(c);
    j->waits = true;
  }
  pthread_mutex_unlock(&s->lock);
  if (!ready) return MHD_YES;
  if (!stream) return answer(c, status, "application/json", j->out ? j->out : "", j->nout, true);
  struct MHD_Response *r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, PIECE, more_of, j, NULL);
  if (!r) return MHD_NO;
  MHD_add_response_header(r, "Content-Type", "text/event-stream");
  MHD_add_response_header(r, "Cache-Control", "no-cache");
  enum MHD_Result ok = MHD_queue_response(c, 200, r);
  MHD_destroy_response(r);
  return ok;
}

/* If there is only one model, any name is accepted. */
static bool has_model(const Server *s, const char *name) {
  return !name || json_array_size(s->names) == 1 || model_named(s, name);
}

/* The body is complete: puts the job into the queue, or answers with an error. */
static enum MHD_Result job_queue(Job *j, struct MHD_Connection *c) {
  Server *s = j->server;
  char why[200] = "", param[40] = "";
  if (j->refused) return refuse(s, c, 413, "invalid_request_error", NULL, "the body is more than 16 MiB");
  if (!ask_read(&j->ask, j->route, j->body, j->nbody, &s->o->llm, why, param))
    return refuse(s, c, 400, "invalid_request_error", param, why);
  if (!has_model(s, j->ask.model)) return no_model(s, c);
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
  j->fd = info ? info->connect_fd : -1;
  pthread_mutex_lock(&s->lock);
  bool full = s->queued >= s->o->queue, closing = s->closing;
  if (!full && !closing) {
    if (s->last)
      s->last->next = j;
    else
      s->first = j;
    s->last = j;
    s->queued++;
    s->counts.requests++;
    j->queued = true;
    j->holders++;
    pthread_cond_signal(&s->wake);
  }
  pthread_mutex_unlock(&s->lock);
  if (closing) return refuse(s, c, 503, "server_error", NULL, "the server is closing");
  if (full) return refuse(s, c, 429, "rate_limit_error", NULL, "too many requests wait already");
  return job_answer(j, c);
}

static Job *job_new(Server *s, struct MHD_Connection *c, Route route) {
  Job *j = calloc(1, sizeof *j);
  if (!j) return NULL;
  j->server = s;
  j->connection = c;
  j->route = route;
  j->holders = 1;
  j->fd = -1;
  pthread_mutex_lock(&s->lock);
  s->open++;
  pthread_mutex_unlock(&s->lock);
  return j;
}

/* ---- the places of the API */
static enum MHD_Result say_page(Server *s, struct MHD_Connection *c, const char *rest) {
  (void)s, (void)rest;
  return answer(c, 200, "text/html; charset=utf-8", (const char *)serve_page, serve_page_bytes, false);
}

typedef struct Place {
  const char *method, *path;
  bool open; /* allowed without a key */
  bool more; /* the path continues, and `say` receives the rest */
  enum MHD_Result (*say)(Server *s, struct MHD_Connection *c, const char *rest);
  Route route; /* if say is NULL */
} Place;

static const Place places[] = {{"GET", "/", .open = true, .say = say_page},
                               {"GET", "/health", .open = true, .say = say_health},
                               {"GET", "/metrics", .say = say_metrics},
                               {"GET", "/v1/models", .say = say_models},
                               {"GET", "/v1/models/", .more = true, .say = say_model},
                               {"POST", "/v1/chat/completions", .route = ROUTE_CHAT},
                               {"POST", "/v1/completions", .route = ROUTE_TEXT},
                               {"POST", "/v1/embeddings", .route = ROUTE_EMBED},
                               {"POST", "/v1/rerank", .route = ROUTE_RANK}};

static bool is_at(const Place *p, const char *url) {
  size_t n = strlen(p->path);
  return p->more ? !strncmp(url, p->path, n) && url[n] : !strcmp(url, p->path);
}

/* Returns the place for a method and a URL. NULL: there is none, and `allow` lists the methods that this URL
 * takes ("": nothing is there). */
static const Place *place_of(const char *method, const char *url, char allow[64]) {
  allow[0] = 0;
  if (!strcmp(method, "HEAD")) method = "GET";
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    if (!is_at(&places[i], url)) continue;
    if (!strcmp(places[i].method, method)) return &places[i];
    size_t n = strlen(allow);
    snprintf(allow + n, 64 - n, "%s%s%s", n ? ", " : "", places[i].method,
             strcmp(places[i].method, "GET") ? "" : ", HEAD");
  }
  return NULL;
}

static enum MHD_Result refuse_method(Server *s, struct MHD_Connection *c, const char *allow) {
  struct MHD_Response *r = json_response(error_of("invalid_request_error", NULL, "not by this method"));
  count_refused(s);
  if (r) MHD_add_response_header(r, "Allow", allow);
  return answer_with(c, 405, r);
}

static bool too_long(struct MHD_Connection *c) {
  const char *n = header(c, "Content-Length");
  int64_t bytes;
  return n && (!cli_whole(n, 0, INT64_MAX, &bytes) || bytes > MOST_BODY);
}

/* The first call for a request, when its headers are known. */
static enum MHD_Result begin(Server *s, struct MHD_Connection *c, const char *url, const char *method,
                             void **job) {
  char allow[64];
  const Place *p = place_of(method, url, allow);
  if (!is_ours(s, c))
    return refuse(s, c, 403, "permission_error", NULL, "this server answers its own machine alone");
  if (!p && *allow) return refuse_method(s, c, allow);
  if (!p) return refuse(s, c, 404, "invalid_request_error", NULL, "there is no such place");
  if (!p->open && !has_key(s, c)) return refuse(s, c, 401, "authentication_error", NULL, "a key is wanted");
  if (p->say) return p->say(s, c, url + strlen(p->path));
  if (too_long(c)) return refuse(s, c, 413, "invalid_request_error", NULL, "the body is more than 16 MiB");
  *job = job_new(s, c, p->route);
  return *job ? MHD_YES : MHD_NO;
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *c, const char *url, const char *method,
                                  const char *version, const char *data, size_t *n, void **job) {
  (void)version;
  if (!*job) return begin(user, c, url, method, job);
  Job *j = *job;
  if (*n) {
    j->refused |= j->nbody + *n > MOST_BODY;
    if (j->refused) return MHD_NO; /* its body has no end */
    if (!append(&j->body, &j->nbody, &j->body_cap, data, *n)) return MHD_NO;
    *n = 0;
    return MHD_YES;
  }
  if (j->begun) return job_answer(j, c);
  j->begun = true;
  return job_queue(j, c);
}

static void on_end(void *user, struct MHD_Connection *c, void **job, enum MHD_RequestTerminationCode code) {
  Job *j = *job;
  (void)user, (void)c, (void)code;
  if (!j) return;
  pthread_mutex_lock(&j->server->lock);
  j->server->open--;
  j->gone = true;
  j->waits = false;
  *job = NULL;
  job_release(j);
}

/* ---- beginning and end */
bool http_begin(Server *s, int *port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->o->port)};
  if (inet_pton(AF_INET, s->o->host, &at.sin_addr) != 1) {
    cli_refuse(0, "serve", "--host %s: an address such as 127.0.0.1 or 0.0.0.0", s->o->host);
    return false;
  }
  unsigned flags = MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME;
  s->daemon =
      MHD_start_daemon(flags, 0, NULL, NULL, on_request, s, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&at,
                       MHD_OPTION_CONNECTION_LIMIT, (unsigned)MOST_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
                       (unsigned)IDLE_SECONDS, MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL, MHD_OPTION_END);
  if (!s->daemon) {
    cli_refuse(0, "serve", "%s:%lld: %s", s->o->host, (long long)s->o->port, strerror(errno));
    return false;
  }
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
  *port = info ? info->port : (int)s->o->port;
  return true;
}

/* Waits until all replies have been sent, for at most five seconds. */
static void drain(Server *s) {
  for (int i = 0; i < 250; i++) {
    pthread_mutex_lock(&s->lock);
    bool empty = !s->open;
    pthread_mutex_unlock(&s->lock);
    if (empty) break;
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
  }
}

/* Requests that wait in the queue are told that the server closes, so that no connection stays suspended. */
void http_end(Server *s) {
  pthread_mutex_lock(&s->lock);
  Job *j = s->first, *next;
  s->closing = true;
  s->first = s->last = NULL;
  pthread_mutex_unlock(&s->lock);
  for (; j; j = next) {
    next = j->next;
    job_fail(j, 503, "server_error", "the server is closing");
  }
  drain(s);
  MHD_stop_daemon(s->daemon);
}
#endif
