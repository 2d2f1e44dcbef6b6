/* hub.c: models by name. In: hf:OWNER/REPO[:QUANT]. Out: a path on this disk. The repository's listing is
 * kept beside the files: later calls choose by it, so they need no network and get the same file. Both the
 * listing and the files come from a server that is not trusted: a name that could lead out of the folder is
 * left out of the listing. */
#define _DEFAULT_SOURCE
#include "hub.h"
#include <stdlib.h>
#include <string.h>

static const char prefix[] = "hf:";

bool hub_is(const char *text) { return !strncmp(text, prefix, strlen(prefix)); }

#ifdef TG_HAVE_JANSSON
#include "hub_private.h"
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

/* ---- names and places */
bool hub_is_plain(const char *path, int most) {
  size_t n = strlen(path);
  int parts = 0;
  if (!n || n > HUB_LONGEST) return false;
  for (const char *p = path;; p++) {
    size_t k = strcspn(p, "/");
    if (!k || k > HUB_LONGEST_PART || *p == '.' || ++parts > most) return false;
    for (const char *end = p + k; p < end; p++)
      if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
        return false;
      else if ((unsigned char)*p > 127)
        return false;
    if (!*p) return true;
  }
}

/* hf:OWNER/REPO[:QUANT] */
static bool name_read(Hub *h) {
  const char *name = h->ask->name + strlen(prefix), *colon = strchr(name, ':');
  size_t n = colon ? (size_t)(colon - name) : strlen(name);
  bool fits = n < sizeof h->repo && (!colon || strlen(colon + 1) < sizeof h->quant);
  if (fits) {
    snprintf(h->repo, sizeof h->repo, "%.*s", (int)n, name);
    snprintf(h->quant, sizeof h->quant, "%s", colon ? colon + 1 : "");
  }
  bool good = fits && hub_is_plain(h->repo, 2) && strchr(h->repo, '/') &&
              (!colon || hub_is_plain(h->quant, HUB_MOST_PARTS));
  return good ||
         cli_refuse(0, cli_running(),
                    "%.200s: a model's name is hf:OWNER/REPO or hf:OWNER/REPO:QUANT, of letters, digits "
                    "and . _ -",
                    h->ask->name);
}

/* The place of the cache of kernels, src/runtime/cache.c, has the same rule. */
bool hub_root(char *to, size_t cap) {
  const char *models = getenv("TG_MODELS"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  int n = models && *models        ? snprintf(to, cap, "%s", models)
          : xdg && xdg[0] == '/'   ? snprintf(to, cap, "%s/tinygrad-c/models", xdg)
          : home && home[0] == '/' ? snprintf(to, cap, "%s/.cache/tinygrad-c/models", home)
                                   : -1;
  if (n < 0)
    return cli_refuse(0, cli_running(), "where do models go? TG_MODELS, XDG_CACHE_HOME and HOME are not set");
  return (size_t)n < cap || cli_refuse(0, cli_running(), "the folder of models has too long a name");
}

bool hub_folder_set(Hub *h) {
  char root[HUB_PATH - sizeof h->repo - 2 * HUB_LONGEST]; /* the files' names follow */
  if (!hub_root(root, sizeof root)) return false;
  snprintf(h->folder, sizeof h->folder, "%s/%s", root, h->repo);
  return true;
}

/* Creates the folders before the path's last slash, for the owner alone: the cache of kernels may stand in
 * one of them, and it takes no folder that others can write to. */
bool hub_folders_make(const char *path) {
  char at[HUB_PATH];
  snprintf(at, sizeof at, "%s", path);
  for (char *p = at + 1; (p = strchr(p, '/')); *p++ = '/') {
    *p = 0;
    if (mkdir(at, 0700) && errno != EEXIST && errno != EROFS && errno != EACCES)
      return cli_refuse(0, cli_running(), "%s: %s", at, strerror(errno));
  }
  return true;
}

void hub_place(const Hub *h, const char *path, char to[HUB_PATH]) {
  snprintf(to, HUB_PATH, "%.*s/%.*s", HUB_PATH - HUB_LONGEST - 2, h->folder, HUB_LONGEST, path);
}

int64_t hub_size_there(const Hub *h, const char *path) {
  char place[HUB_PATH];
  struct stat s;
  hub_place(h, path, place);
  return !stat(place, &s) && S_ISREG(s.st_mode) ? (int64_t)s.st_size : -1;
}

int hub_no_memory(void) { return cli_refuse(CLI_FAILED, cli_running(), "out of memory"); }

const char *hub_advice(long status) {
  const char *token = getenv("HF_TOKEN");
  if (status == 404) return "there is no such model, or no such file of it";
  if (status != 401 && status != 403) return NULL;
  return token && *token
             ? "HF_TOKEN does not open it: see the model's page in a browser, which may have terms to accept"
             : "there is no such model, or it is not public: set HF_TOKEN to a token of your account";
}

/* A token that ended its header's line early could add headers of its own. */
static bool endpoint_found(Hub *h) {
  const char *at = getenv("HF_ENDPOINT"), *token = getenv("HF_TOKEN");
  h->endpoint = at && *at ? at : "https://huggingface.co";
  h->nendpoint = (int)strlen(h->endpoint);
  while (h->nendpoint && h->endpoint[h->nendpoint - 1] == '/')
    h->nendpoint--;
  if ((strncmp(h->endpoint, "https://", 8) && strncmp(h->endpoint, "http://", 7)) || h->nendpoint > 1000)
    return cli_refuse(0, cli_running(), "HF_ENDPOINT=%.200s: no address that begins with https:// or http://",
                      h->endpoint);
  h->token = token && *token ? token : NULL;
  for (const char *p = token; p && *p; p++)
    if (*p <= ' ' || *p > '~' || p - token >= 1000)
      return cli_refuse(0, cli_running(), "HF_TOKEN is no token: it has blanks or lines, or is too long");
  return true;
}

/* ---- paths */
static int place_give(const Hub *h, const char *path, char **to) {
  char place[HUB_PATH];
  hub_place(h, path, place);
  return (*to = strdup(*path ? place : h->folder)) ? CLI_OK : hub_no_memory();
}

static int paths_found(Hub *h, HubPaths *p) {
  const char *model = "", *sight = NULL;
  bool projector = h->ask->projector;
  if (projector && !hub_candidates(h, true))
    return cli_refuse(CLI_FAILED, cli_running(), "hf:%s has no mmproj file, which reads pictures", h->repo);
  bool gguf = projector || hub_candidates(h, false);
  if (gguf && !(model = hub_choose(h, projector, true))) return CLI_FAILED;
  if (gguf && h->ask->sight && hub_candidates(h, true) && !(sight = hub_choose(h, true, false)))
    return CLI_FAILED;
  int rc = gguf ? hub_want_pieces(h, model) : hub_want_folder(h);
  if (!rc && sight) rc = hub_want(h, sight);
  if (!rc) rc = hub_wanted_fetch(h);
  if (!rc) rc = place_give(h, model, &p->model);
  if (!rc && sight) rc = place_give(h, sight, &p->sight);
  return rc;
}

int hub_path(const HubAsk *ask, HubPaths *p) {
  Hub h = {.ask = ask, .want = json_array()};
  struct sigaction on_int, on_term;
  *p = (HubPaths){.model = NULL};
  sigaction(SIGINT, NULL, &on_int), sigaction(SIGTERM, NULL, &on_term);
  cli_catch_interrupt();
  int rc = h.want ? CLI_OK : hub_no_memory();
  if (!rc && !name_read(&h)) rc = CLI_USAGE;
  if (!rc && (!hub_folder_set(&h) || !endpoint_found(&h))) rc = CLI_FAILED;
  if (!rc) rc = hub_listing_open(&h);
  if (!rc) rc = paths_found(&h, p);
  if (cli_interrupted()) rc = CLI_INTERRUPTED;
  if (rc) {
    free(p->model), free(p->sight);
    *p = (HubPaths){.model = NULL};
  }
  json_decref(h.want), json_decref(h.list);
  if (!cli_interrupted()) sigaction(SIGINT, &on_int, NULL), sigaction(SIGTERM, &on_term, NULL);
  return rc;
}
#else
int hub_path(const HubAsk *ask, HubPaths *p) {
  *p = (HubPaths){.model = NULL};
  return cli_refuse(CLI_FAILED, cli_running(),
                    "%s: this build reads no JSON (jansson), as the hub's listings are", ask->name);
}
#endif

/* ---- the words of a command */
/* Returns where the value of an option stands, if the command has this option and it is one text. */
static const char **value_of(const CliCommand *c, void *options, const char *name) {
  for (int i = 0; i < c->noptions; i++) {
    const CliOption *o = &c->options[i];
    if (o->kind == CLI_TEXT && !o->many && !strcmp(o->name, name))
      return (const char **)((char *)options + o->offset);
  }
  return NULL;
}

static char *kept_path(HubNames *names, char *path) { return path ? names->at[names->n++] = path : NULL; }

/* Replaces the value of an option that names a model. */
static int option_path(const CliCommand *c, void *options, const char *name, bool projector,
                       HubNames *names) {
  const char **value = value_of(c, options, name);
  HubPaths p;
  if (!value || !*value || !hub_is(*value)) return CLI_OK;
  int rc = hub_path(&(HubAsk){.name = *value, .projector = projector}, &p);
  if (!rc) *value = kept_path(names, p.model);
  return rc;
}

/* Returns where --mmproj stands if the model's name is to set it: the command has one model, which can be
 * shown pictures, and the option was not given. (tg run has language models only with --prompt.) The value
 * `none` leaves it out. */
static const char **sight_wanted(const CliCommand *c, void *options, int n) {
  const char **value = value_of(c, options, "mmproj"), **prompt = value_of(c, options, "prompt");
  if (value && *value && !strcmp(*value, "none")) return *value = NULL, NULL;
  return value && !*value && (n == 1 || c->models == 1) && (!prompt || *prompt) ? value : NULL;
}

int hub_names(const CliCommand *c, void *options, char **argument, int n, HubNames *names) {
  const char **sight = sight_wanted(c, options, n);
  int rc = CLI_OK;
  for (int i = 0; i < n && !rc && i < CLI_MANY && (i < c->models || c->models < 0); i++) {
    HubPaths p;
    if (!hub_is(argument[i])) continue;
    rc = hub_path(&(HubAsk){.name = argument[i], .sight = sight != NULL}, &p);
    if (rc) break;
    argument[i] = kept_path(names, p.model);
    if (!sight || !p.sight) continue;
    *sight = kept_path(names, p.sight);
    fprintf(stderr, "%s reads pictures for it (--mmproj none: no pictures)\n", p.sight);
  }
  if (!rc) rc = option_path(c, options, "draft", false, names);
  return rc ? rc : option_path(c, options, "mmproj", true, names);
}

void hub_names_free(HubNames *names) {
  for (int i = 0; i < names->n; i++)
    free(names->at[i]);
}
