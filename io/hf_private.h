/* hf_private.h: a folder as Hugging Face has them while it is read: hf.c (numbers, tensors), hf_tokenizer.c. */
#ifndef TG_HF_PRIVATE_H
#define TG_HF_PRIVATE_H
#include "io_private.h"
#ifdef TG_HAVE_JANSSON
#include <jansson.h>

enum { LONGEST_PATH = 4096 };

/* Pairs of a map under construction. */
typedef struct HfPairs {
  TgValue *at; /* key, value, key, value */
  size_t n, cap;
} HfPairs;

typedef struct HfFolder {
  TgContext *ctx;
  Doc *d;
  const char *path;
  const char *arch;
  json_t *config, *tokenizer, *about; /* about: tokenizer_config.json; NULL: none */
  HfPairs kv, tensors;
  bool ones; /* weights of norms are written without the 1 that is added to them */
} HfFolder;

/* A printf with one "%s" for a; false. */
bool hf_bad(const HfFolder *f, const char *form, const char *a);

/* Key-values of the tree that a gguf file would give; false: out of memory. */
TgValue *hf_pair_put(HfFolder *f, HfPairs *p, const char *key);
bool hf_kv_int(HfFolder *f, const char *key, int64_t v);
bool hf_kv_bool(HfFolder *f, const char *key, bool v);
bool hf_kv_real(HfFolder *f, const char *key, double v);
bool hf_kv_text(HfFolder *f, const char *key, const char *v);
bool hf_kv_tensor(HfFolder *f, const char *key, const void *data, TgDType d, int64_t n);

bool hf_path_of(const HfFolder *f, const char *name, char path[LONGEST_PATH]);
bool hf_is_there(const HfFolder *f, const char *name);
/* The text of that key, or what stands in for it. */
const char *hf_text_of(const json_t *o, const char *key, const char *otherwise);

/* tokenizer.json -> tokenizer.ggml.*; nothing where there is none. */
bool hf_tokenizer_put(HfFolder *f);
#endif
#endif
