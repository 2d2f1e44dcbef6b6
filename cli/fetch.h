/* fetch.h: downloads by libcurl, which `tg fetch` and models by name (hub.c) share. Each function prints why
 * it failed and returns an exit code. */
#ifndef TG_CLI_FETCH_H
#define TG_CLI_FETCH_H
#include "cli.h"

typedef struct FetchAsk {
  const char *url;
  const char *name;   /* what the progress line calls it */
  const char *bearer; /* a token that is sent to the URL's host and port alone; NULL: none */
  const char *sha256; /* what the file's sum must be, 64 hex digits; NULL: any */
  int64_t nbytes;     /* the file's size; -1: unknown */
  bool hub; /* a file in place that has the size is taken as it is; no file: URL; https stays https */
  /* Returns what is to be done about this HTTP status, NULL: nothing is known. May be NULL. */
  const char *(*advice)(long status);
} FetchAsk;

/* Downloads to `part`, from where an earlier call stopped, and renames it to `place` once it is whole. Two
 * processes that use the same part take turns. sum receives the SHA-256, "" if nothing was downloaded. */
int fetch_file(const FetchAsk *a, const char *part, const char *place, char sum[65]);

/* Downloads a text of at most `most` bytes, to be freed, with a 0 byte behind it. next (may be NULL) receives
 * the query, beginning with '?', of the next page that the server's Link header names; "": there is none. */
int fetch_text(const FetchAsk *a, size_t most, char **text, size_t *n, char *next, size_t cap);

/* Writes the SHA-256 of a file. Returns false, with errno set, if it cannot be read. */
bool fetch_sum(const char *path, char sum[65]);
#endif
