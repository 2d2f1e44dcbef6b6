/* hub_private.h: what the files hub*.c share. A call of hub_path has one Hub: a repository, its listing, and
 * the files of it that are wanted. Functions that can fail have printed the reason; int is an exit code. */
#ifndef TG_CLI_HUB_PRIVATE_H
#define TG_CLI_HUB_PRIVATE_H
#include "hub.h"
#include <jansson.h>

enum {
  HUB_LONGEST = 400,      /* bytes of a path within a repository */
  HUB_LONGEST_PART = 128, /* of a part of it between slashes */
  HUB_MOST_PARTS = 8,
  HUB_MOST_TEXT = 1 << 25, /* bytes of a page, of a kept listing, of an index of weights */
  HUB_PATH = 4096
};

typedef struct Hub {
  const HubAsk *ask;
  char repo[2 * HUB_LONGEST_PART + 2], quant[HUB_LONGEST + 1], folder[HUB_PATH];
  const char *endpoint, *token;
  int nendpoint; /* bytes of the endpoint without the slashes that end it */
  json_t *list;  /* {path: {"size": bytes, "sha256": hex, "oid": what git calls it}} */
  json_t *want;  /* paths to download */
} Hub;

/* ---- hub.c */
/* Whether a path consists of plain parts: none begins with a dot, so that none is "..". most: parts. */
bool hub_is_plain(const char *path, int most);
void hub_place(const Hub *h, const char *path, char to[HUB_PATH]); /* where a file goes */
bool hub_root(char *to, size_t cap);                               /* the folder of models */
bool hub_folder_set(Hub *h);                                       /* by h->repo */
int64_t hub_size_there(const Hub *h, const char *path);            /* of the file on this disk; -1: none */
int hub_no_memory(void);
const char *hub_advice(long status); /* for FetchAsk */
bool hub_folders_make(const char *path);

/* ---- hub_listing.c: what there is */
int hub_listing_open(Hub *h);
json_t *hub_listing_kept(const Hub *h); /* what an earlier call has kept; NULL: nothing that can be read */
int64_t hub_size(const Hub *h, const char *path);                      /* 0: not listed */
const char *hub_text(const Hub *h, const char *path, const char *key); /* "sha256", "oid"; NULL: not listed */

/* ---- hub_choice.c: which file is meant */
int hub_pieces(const char *path, int *piece); /* of how many files it is which; 1 of 1 */
void hub_piece_put(char to[HUB_LONGEST + 1], const char *first, int piece, int count);
int hub_candidates(const Hub *h, bool projector); /* how many gguf files there are to choose from */
int64_t hub_size_whole(const Hub *h,
                       const char *path); /* of a gguf file, with all pieces; 0: not all is there */
const char *hub_base(const char *path);   /* what follows the last slash */
/* Returns the file that is meant; NULL: it is not clear. by_name: the name's QUANT chooses. */
const char *hub_choose(const Hub *h, bool projector, bool by_name);
void hub_listing_say(const Hub *h); /* prints all files */

/* ---- hub_files.c: downloads */
int hub_want(Hub *h, const char *path);
int hub_want_pieces(Hub *h, const char *path); /* a gguf file, with all pieces of it */
int hub_want_folder(Hub *h);
int hub_wanted_fetch(Hub *h); /* downloads the wanted files that are not there, and forgets them */
#endif
