/* hub_models.c: `tg info --models`. In: the folder of models by name. Out: a line for each model that is
 * whole there, with the name by which commands take it. */
#define _DEFAULT_SOURCE
#include "hub.h"
#ifdef TG_HAVE_JANSSON
#include "hub_private.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static void line_say(const char *repo, const char *file, int64_t nbytes, bool json) {
  char bytes[32];
  if (json) {
    printf("{\"model\":\"hf:%s%s%s\",\"bytes\":%lld}\n", repo, *file ? ":" : "", file, (long long)nbytes);
    return;
  }
  printf("%-10s  hf:%s%s%s\n", cli_bytes((double)nbytes, bytes), repo, *file ? ":" : "", file);
}

/* Each gguf file is a model. In a repository without one all files together are; config.json comes last. */
static void repo_say(Hub *h, bool json) {
  const char *path;
  json_t *file;
  int64_t folder = 0;
  bool gguf = hub_candidates(h, false) > 0;
  json_object_foreach(h->list, path, file) {
    int64_t nbytes = gguf ? hub_size_whole(h, path) : hub_size_there(h, path);
    if (!gguf && nbytes > 0) folder += nbytes;
    if (gguf && nbytes > 0) line_say(h->repo, path, nbytes, json);
  }
  if (folder && hub_size_there(h, "config.json") >= 0) line_say(h->repo, "", folder, json);
}

static int entries_of(const char *path, struct dirent ***at) {
  int n = scandir(path, at, NULL, alphasort);
  return n < 0 ? 0 : n;
}

static void owner_say(const char *root, const char *owner, bool json) {
  char path[HUB_PATH + 260];
  struct dirent **repo = NULL;
  snprintf(path, sizeof path, "%s/%s", root, owner);
  int n = hub_is_plain(owner, 1) ? entries_of(path, &repo) : 0;
  for (int i = 0; i < n; i++) {
    Hub h = {.list = NULL};
    int used = snprintf(h.repo, sizeof h.repo, "%s/%s", owner, repo[i]->d_name);
    bool known = used < (int)sizeof h.repo && hub_is_plain(h.repo, 2) && hub_folder_set(&h);
    if (known && (h.list = hub_listing_kept(&h))) repo_say(&h, json);
    json_decref(h.list);
    free(repo[i]);
  }
  free(repo);
}

int hub_models(bool json) {
  char root[HUB_PATH];
  struct dirent **owner = NULL;
  if (!hub_root(root, sizeof root)) return CLI_FAILED;
  int n = entries_of(root, &owner);
  if (!json) printf("models by name, in %s:\n", root);
  for (int i = 0; i < n; i++) {
    owner_say(root, owner[i]->d_name, json);
    free(owner[i]);
  }
  free(owner);
  return CLI_OK;
}
#else
int hub_models(bool json) {
  (void)json;
  return cli_refuse(CLI_FAILED, cli_running(),
                    "this build reads no JSON (jansson), as the hub's listings are");
}
#endif
