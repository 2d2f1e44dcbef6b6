/* hub_files.c: the files of a model on this disk. In: a listing, and the files that are wanted. Out: those
 * files, downloaded if they are not there, with the sizes and sums of the listing. */
#define _DEFAULT_SOURCE
#ifdef TG_HAVE_JANSSON
#include "fetch.h"
#include "hub_private.h"
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What is wanted of a repository without a gguf file, besides config.json and the weights: the files that
 * llm/hf*.c reads, and those that describe them. No star stands for a slash. */
static const char *const folder_files[] = {
    "tokenizer*.json", "generation_config.json",   "special_tokens_map.json",
    "chat_template.*", "preprocessor_config.json", "processor_config.json",
    "modules.json",    "[0-9]_*/config.json",      "sentence_*.json"};
static const char weights_file[] = "model.safetensors", weights_index[] = "model.safetensors.index.json";

int hub_want(Hub *h, const char *path) {
  if (!json_object_get(h->list, path))
    return cli_refuse(CLI_FAILED, cli_running(), "hf:%s: %s is missing", h->repo, path);
  return json_array_append_new(h->want, json_string(path)) ? hub_no_memory() : CLI_OK;
}

/* A part's name has the beginning of the sum, so that a file that the hub has replaced does not go on from
 * what was there before. */
static int file_fetch(const Hub *h, const char *path) {
  char url[HUB_PATH], place[HUB_PATH], part[HUB_PATH + 40], sum[65];
  const char *sha256 = hub_text(h, path, "sha256"), *oid = hub_text(h, path, "oid");
  hub_place(h, path, place);
  snprintf(part, sizeof part, "%s.%.12s.part", place, sha256 ? sha256 : oid ? oid : "whole");
  snprintf(url, sizeof url, "%.*s/%s/resolve/main/%s", h->nendpoint, h->endpoint, h->repo, path);
  FetchAsk ask = {.url = url,
                  .name = hub_base(path),
                  .bearer = h->token,
                  .sha256 = sha256,
                  .nbytes = hub_size(h, path),
                  .hub = true,
                  .advice = hub_advice};
  if (!hub_folders_make(place)) return CLI_FAILED;
  int rc = fetch_file(&ask, part, place, sum);
  if (rc == CLI_FAILED && !h->ask->anew)
    fprintf(stderr, "if the model has changed: tg fetch %s asks the hub for its files anew\n", h->ask->name);
  return rc;
}

/* Removes a file whose sum is not the listing's. */
static int file_check(const Hub *h, const char *path) {
  const char *sha256 = hub_text(h, path, "sha256");
  char place[HUB_PATH], sum[65];
  if (!sha256 || hub_size_there(h, path) != hub_size(h, path)) return CLI_OK;
  hub_place(h, path, place);
  CliWait *wait = cli_wait_begin("checking the sum");
  bool ok = fetch_sum(place, sum);
  cli_wait_end(wait);
  if (!ok) return cli_refuse(CLI_FAILED, cli_running(), "%s: %s", place, strerror(errno));
  if (!strcasecmp(sum, sha256)) return CLI_OK;
  fprintf(stderr, "%s has the sum %s, not %s, and is downloaded again\n", place, sum, sha256);
  return remove(place) ? cli_refuse(CLI_FAILED, cli_running(), "%s: %s", place, strerror(errno)) : CLI_OK;
}

/* Downloads the wanted files that are not there, and forgets them. */
int hub_wanted_fetch(Hub *h) {
  char bytes[32];
  const char *path = "";
  int missing = 0, rc = CLI_OK;
  int64_t nbytes = 0;
  size_t n = json_array_size(h->want);
  for (size_t i = 0; i < n && !rc; i++) {
    const char *at = json_string_value(json_array_get(h->want, i));
    if (h->ask->anew) rc = file_check(h, at);
    if (hub_size_there(h, at) == hub_size(h, at)) continue;
    missing++;
    nbytes += hub_size(h, at);
    path = at;
  }
  if (missing && !rc && missing > 1)
    fprintf(stderr, "downloading %d files (%s) of %s from %.*s to %s\n", missing,
            cli_bytes((double)nbytes, bytes), h->repo, h->nendpoint, h->endpoint, h->folder);
  else if (missing && !rc)
    fprintf(stderr, "downloading %s (%s) of %s from %.*s to %s\n", path, cli_bytes((double)nbytes, bytes),
            h->repo, h->nendpoint, h->endpoint, h->folder);
  for (size_t i = 0; i < n && !rc; i++) {
    const char *at = json_string_value(json_array_get(h->want, i));
    if (hub_size_there(h, at) != hub_size(h, at)) rc = file_fetch(h, at);
  }
  json_array_clear(h->want);
  return rc;
}

/* Wants the files that an index of weights lists: {"weight_map": {tensor: file}}. */
static int index_wanted(Hub *h) {
  char place[HUB_PATH];
  size_t n = 0;
  const char *tensor;
  json_t *file, *seen = json_object();
  int rc = hub_want(h, weights_index);
  if (!rc && hub_size(h, weights_index) > HUB_MOST_TEXT)
    rc = cli_refuse(CLI_FAILED, cli_running(), "hf:%s: %s is too large", h->repo, weights_index);
  if (!rc) rc = hub_wanted_fetch(h);
  hub_place(h, weights_index, place);
  char *text = rc ? NULL : cli_read_file(place, &n);
  json_t *index = text ? json_loadb(text, n, 0, NULL) : NULL, *map = json_object_get(index, "weight_map");
  if (!rc && !json_object_size(map))
    rc = cli_refuse(CLI_FAILED, cli_running(), "%s: this is no index of weights", place);
  json_object_foreach(map, tensor, file) {
    const char *path = json_string_value(file);
    if (rc || (path && json_object_get(seen, path))) continue;
    if (!path || !hub_is_plain(path, 1))
      rc =
          cli_refuse(CLI_FAILED, cli_running(), "%s: %.60s is in a file without a plain name", place, tensor);
    if (!rc) rc = hub_want(h, path);
    if (!rc && json_object_set_new(seen, path, json_true())) rc = hub_no_memory();
  }
  free(text), json_decref(index), json_decref(seen);
  return rc;
}

/* Wants the folder form, whose path is the folder. config.json comes last: with it the folder is whole. */
int hub_want_folder(Hub *h) {
  const char *path;
  json_t *file;
  bool index = json_object_get(h->list, weights_index) != NULL;
  if (!json_object_get(h->list, "config.json") || !(index || json_object_get(h->list, weights_file))) {
    cli_refuse(0, cli_running(),
               "hf:%s has neither a gguf file nor config.json with %s or its index; it has:", h->repo,
               weights_file);
    hub_listing_say(h);
    return CLI_FAILED;
  }
  if (*h->quant)
    return cli_refuse(CLI_FAILED, cli_running(), "hf:%s has no gguf file, of which :%s would choose one",
                      h->repo, h->quant);
  int rc = index ? index_wanted(h) : hub_want(h, weights_file);
  json_object_foreach(h->list, path, file) {
    for (size_t i = 0; !rc && i < sizeof folder_files / sizeof *folder_files; i++)
      if (!fnmatch(folder_files[i], path, FNM_PATHNAME)) {
        rc = hub_want(h, path);
        break;
      }
  }
  return rc ? rc : hub_want(h, "config.json");
}

/* Wants a gguf file, with all pieces of it. */
int hub_want_pieces(Hub *h, const char *path) {
  char other[HUB_LONGEST + 1];
  int piece, n = hub_pieces(path, &piece), rc = hub_want(h, path);
  for (int i = 2; i <= n && !rc; i++) {
    hub_piece_put(other, path, i, n);
    rc = hub_want(h, other);
  }
  return rc;
}

#endif
