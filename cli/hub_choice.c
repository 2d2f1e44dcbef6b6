/* hub_choice.c: which gguf file a name means. In: a listing, and the word that is to be in the file's name.
 * Out: a path, or a message with the files that there are. */
#define _DEFAULT_SOURCE
#ifdef TG_HAVE_JANSSON
#include "hub_private.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { SHOWN = 60 }; /* files that a message lists */

/* Quantisations that are taken if none is named, the first that exists. */
static const char *const usual_models[] = {"Q4_K_M", "Q8_0", NULL};
static const char *const usual_projectors[] = {"F16", NULL};
/* Words of the names of gguf files that are no language models. */
static const char *const not_models[] = {"mmproj", "imatrix"};

const char *hub_base(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static bool ends(const char *text, const char *end) {
  size_t n = strlen(text), k = strlen(end);
  return n >= k && !strcasecmp(text + n - k, end);
}

/* Finds a word in a name, without regard to case. loose: more may follow after a '_', so that Q4_K finds
 * Q4_K_M. */
static bool has_word(const char *name, const char *word, bool loose) {
  size_t k = strlen(word);
  for (const char *p = name; *p; p++) {
    if (strncasecmp(p, word, k) || (p > name && isalnum((unsigned char)p[-1]))) continue;
    if (!isalnum((unsigned char)p[k]) && (loose || p[k] != '_')) return true;
  }
  return false;
}

/* Reads the end of a name such as x-00001-of-00003.gguf. Returns the number of files; 1: it is one alone. */
int hub_pieces(const char *path, int *piece) {
  static const char form[] = "-00001-of-00003.gguf";
  size_t n = strlen(path), k = strlen(form);
  int count = 0, used = 0;
  *piece = 1;
  if (n < k || sscanf(path + n - k, "-%5d-of-%5d.gguf%n", piece, &count, &used) != 2 || (size_t)used != k ||
      *piece < 1 || count < 1)
    return *piece = 1, 1;
  return count;
}

void hub_piece_put(char to[HUB_LONGEST + 1], const char *first, int piece, int count) {
  snprintf(to, HUB_LONGEST + 1, "%.*s-%05d-of-%05d.gguf", (int)(strlen(first) - 20), first, piece, count);
}

/* Returns whether a path is a gguf file that can be chosen: a model, or what reads pictures. Of a model in
 * several files the first stands for all. */
static bool is_candidate(const char *path, bool projector) {
  int piece;
  if (!ends(path, ".gguf")) return false;
  if (projector) return has_word(hub_base(path), "mmproj", true);
  for (size_t i = 0; i < sizeof not_models / sizeof *not_models; i++)
    if (has_word(hub_base(path), not_models[i], true)) return false;
  hub_pieces(path, &piece);
  return piece == 1;
}

static int64_t model_size(const Hub *h, const char *path) {
  char other[HUB_LONGEST + 1];
  int piece, n = hub_pieces(path, &piece);
  int64_t sum = hub_size(h, path);
  for (int i = 2; i <= n; i++) {
    hub_piece_put(other, path, i, n);
    if (!json_object_get(h->list, other)) break;
    sum += hub_size(h, other);
  }
  return sum;
}

int64_t hub_size_whole(const Hub *h, const char *path) {
  char other[HUB_LONGEST + 1];
  int piece, n = hub_pieces(path, &piece);
  int64_t sum = hub_size_there(h, path);
  if (!is_candidate(path, false) || sum != hub_size(h, path)) return 0;
  for (int i = 2; i <= n; i++) {
    hub_piece_put(other, path, i, n);
    if (!json_object_get(h->list, other) || hub_size_there(h, other) != hub_size(h, other)) return 0;
    sum += hub_size(h, other);
  }
  return sum;
}

/* Counts the candidates that have a word (NULL: all). *first: the first of them; *smallest: the smallest. */
static int count_of(const Hub *h, bool projector, const char *word, bool loose, const char **first,
                    const char **smallest) {
  const char *path;
  json_t *file;
  int n = 0;
  json_object_foreach(h->list, path, file) {
    if (!is_candidate(path, projector) || (word && !has_word(path, word, loose))) continue;
    if (!n++) *first = *smallest = path;
    if (model_size(h, path) < model_size(h, *smallest)) *smallest = path;
  }
  return n;
}

int hub_candidates(const Hub *h, bool projector) {
  const char *first, *smallest;
  return count_of(h, projector, NULL, false, &first, &smallest);
}

/* Prints the candidates that have a word; projector < 0: all files. */
static void listing_say(const Hub *h, int projector, const char *word) {
  const char *path;
  json_t *file;
  char bytes[32];
  int n = 0;
  json_object_foreach(h->list, path, file) {
    if (projector >= 0 && (!is_candidate(path, projector) || (word && !has_word(path, word, true)))) continue;
    if (n++ < SHOWN) fprintf(stderr, "  %-10s %s\n", cli_bytes((double)model_size(h, path), bytes), path);
  }
  if (n > SHOWN) fprintf(stderr, "  and %d more\n", n - SHOWN);
  if (!n) fprintf(stderr, "  no files\n");
}

void hub_listing_say(const Hub *h) { listing_say(h, -1, NULL); }

/* Returns the file whose name has the word QUANT. */
static const char *named(const Hub *h, bool projector) {
  const char *found = NULL, *any;
  if (json_object_get(h->list, h->quant) && is_candidate(h->quant, projector)) return h->quant;
  int n = count_of(h, projector, h->quant, false, &found, &any);
  if (!n) n = count_of(h, projector, h->quant, true, &found, &any);
  if (n == 1) return found;
  cli_refuse(0, cli_running(),
             n ? "hf:%s: %s is in the names of %d files:" : "hf:%s: no file has %s in its name%.0d:", h->repo,
             h->quant, n);
  listing_say(h, projector, n ? h->quant : NULL);
  if (!h->ask->anew)
    fprintf(stderr, "tg fetch hf:%s:%s asks the hub whether there is more by now\n", h->repo, h->quant);
  return NULL;
}

/* The smallest of several projectors is enough, because a model's are all the same network. */
const char *hub_choose(const Hub *h, bool projector, bool by_name) {
  const char *const *usual = projector ? usual_projectors : usual_models;
  const char *found = NULL, *smallest = NULL;
  if (by_name && *h->quant) return named(h, projector);
  for (; *usual; usual++) {
    int n = count_of(h, projector, *usual, false, &found, &smallest);
    if (n == 1 || (n && projector)) return smallest;
    if (n) break;
  }
  int n = *usual ? 0 : count_of(h, projector, NULL, false, &found, &smallest);
  if (n == 1 || (n && projector)) return smallest;
  cli_refuse(0, cli_running(), "hf:%s: which file? Say hf:%s:WORD with a word of its name:", h->repo,
             h->repo);
  listing_say(h, projector, *usual);
  return NULL;
}

#endif
