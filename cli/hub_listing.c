/* hub_listing.c: which files a repository has. In: the hub's pages, or what an earlier call kept of them.
 * Out: a JSON object of paths, sizes and sums. Entries that are not as they should be are left out. */
#define _DEFAULT_SOURCE
#ifdef TG_HAVE_JANSSON
#include "fetch.h"
#include "hub_private.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_FILES = 50000, MOST_PAGES = 200 };

#define MOST_BYTES (INT64_C(1) << 40) /* of a file */

static const char listing_name[] = ".listing.json"; /* no file of a repository begins with a dot here */

int64_t hub_size(const Hub *h, const char *path) {
  return json_integer_value(json_object_get(json_object_get(h->list, path), "size"));
}

const char *hub_text(const Hub *h, const char *path, const char *key) {
  return json_string_value(json_object_get(json_object_get(h->list, path), key));
}

static bool is_hex(const char *text, size_t least, size_t most) {
  size_t n = text ? strlen(text) : 0;
  return n >= least && n <= most && strspn(text, "0123456789abcdefABCDEF") == n;
}

/* Adds a file, unless something about it is not as it should be. Returns false if there is no memory. */
static bool file_put(json_t *list, const char *path, const json_t *size, const char *sha256,
                     const char *oid) {
  json_int_t n = json_is_integer(size) ? json_integer_value(size) : -1;
  if (!path || !hub_is_plain(path, HUB_MOST_PARTS) || n < 0 || n > MOST_BYTES) return true;
  if (sha256 && !is_hex(sha256, 64, 64)) return true;
  if (json_object_size(list) >= MOST_FILES || json_object_get(list, path)) return true;
  json_t *file = json_pack("{s:I}", "size", n);
  bool ok = file && (!sha256 || !json_object_set_new(file, "sha256", json_string(sha256))) &&
            (!is_hex(oid, 8, 64) || !json_object_set_new(file, "oid", json_string(oid)));
  return ok ? !json_object_set_new(list, path, file) : (json_decref(file), false);
}

/* A page of the hub: [{"type": "file", "path", "size", "oid", "lfs": {"oid": the sha256, "size"}}] */
static bool page_put(json_t *list, const json_t *page) {
  const json_t *entry;
  size_t i;
  json_array_foreach(page, i, entry) {
    const char *type = json_string_value(json_object_get(entry, "type"));
    const json_t *lfs = json_object_get(entry, "lfs");
    const char *sha256 = json_string_value(json_object_get(lfs, "oid"));
    if (!type || strcmp(type, "file") || (json_is_object(lfs) && !sha256)) continue;
    if (!file_put(list, json_string_value(json_object_get(entry, "path")),
                  json_object_get(json_is_object(lfs) ? lfs : entry, "size"), sha256,
                  json_string_value(json_object_get(entry, "oid"))))
      return false;
  }
  return true;
}

/* The rules are the same as for the hub's pages. */
json_t *hub_listing_kept(const Hub *h) {
  char place[HUB_PATH];
  size_t n = 0;
  hub_place(h, listing_name, place);
  if (hub_size_there(h, listing_name) < 0 || hub_size_there(h, listing_name) > HUB_MOST_TEXT) return NULL;
  char *text = cli_read_file(place, &n);
  json_t *kept = text ? json_loadb(text, n, 0, NULL) : NULL, *list = json_object(), *file;
  const char *path;
  bool ok = list && json_is_object(kept);
  json_object_foreach(kept, path, file) {
    ok = ok && file_put(list, path, json_object_get(file, "size"),
                        json_string_value(json_object_get(file, "sha256")),
                        json_string_value(json_object_get(file, "oid")));
  }
  free(text), json_decref(kept);
  return ok ? list : (json_decref(list), NULL);
}

/* It appears whole or not at all, because another process may read it. */
static bool listing_keep(const Hub *h) {
  char place[HUB_PATH], made[HUB_PATH + 32];
  hub_place(h, listing_name, place);
  snprintf(made, sizeof made, "%s.%ld", place, (long)getpid());
  if (!hub_folders_make(place)) return false;
  if (!json_dump_file(h->list, made, JSON_COMPACT) && !rename(made, place)) return true;
  cli_refuse(0, cli_running(), "%s: %s", place, strerror(errno));
  remove(made);
  return false;
}

static int page_read(Hub *h, json_t *list, char *query, size_t cap) {
  char url[4 * HUB_LONGEST + 3000], *text;
  size_t n;
  json_error_t e;
  snprintf(url, sizeof url, "%.*s/api/models/%s/tree/main%s", h->nendpoint, h->endpoint, h->repo, query);
  FetchAsk ask = {
      .url = url, .name = h->repo, .bearer = h->token, .nbytes = -1, .hub = true, .advice = hub_advice};
  int rc = fetch_text(&ask, HUB_MOST_TEXT, &text, &n, query, cap);
  if (rc) return rc;
  json_t *page = json_loadb(text, n, 0, &e);
  free(text);
  if (!json_is_array(page)) {
    json_decref(page);
    return cli_refuse(CLI_FAILED, cli_running(), "%s: this is no listing of files: %s", url,
                      page ? "no list" : e.text);
  }
  bool ok = page_put(list, page);
  json_decref(page);
  return ok ? CLI_OK : hub_no_memory();
}

/* Of the next page only the query is taken, so that no answer leads the token to another host. */
static int listing_read(Hub *h, json_t **list) {
  char query[2000] = "?recursive=true";
  int rc = (*list = json_object()) ? CLI_OK : hub_no_memory();
  for (int page = 0; !rc && *query; page++)
    rc = page < MOST_PAGES && json_object_size(*list) < MOST_FILES
             ? page_read(h, *list, query, sizeof query)
             : cli_refuse(CLI_FAILED, cli_running(), "%s: the listing does not end", h->repo);
  if (!rc) return CLI_OK;
  json_decref(*list);
  *list = NULL;
  return rc;
}

static bool same(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

/* Removes the files that the hub has replaced, because a file that has the size is taken as it is. This comes
 * before the new listing is kept, so that an interrupted call leaves no file that the listing does not
 * mean. */
static void replaced_remove(const Hub *h, const Hub *old) {
  const char *path;
  json_t *file;
  char place[HUB_PATH];
  json_object_foreach(old->list, path, file) {
    bool alike = json_object_get(h->list, path) && hub_size(h, path) == hub_size(old, path) &&
                 same(hub_text(h, path, "sha256"), hub_text(old, path, "sha256")) &&
                 same(hub_text(h, path, "oid"), hub_text(old, path, "oid"));
    hub_place(h, path, place);
    if (!alike && hub_size_there(h, path) >= 0) remove(place);
  }
}

int hub_listing_open(Hub *h) {
  Hub old = *h;
  old.list = hub_listing_kept(h);
  if (old.list && !h->ask->anew) {
    h->list = old.list;
    return CLI_OK;
  }
  int rc = listing_read(h, &h->list);
  if (!rc) replaced_remove(h, &old);
  if (!rc && !listing_keep(h)) rc = CLI_FAILED;
  json_decref(old.list);
  return rc;
}

#endif
