/* hf_private.h: a folder as Hugging Face has them while it is read: hf.c (numbers, tensors),
 * hf_tokenizer.c. */
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

typedef struct HfNamed {
  const char *hf, *gguf;
} HfNamed;

/* hf_tensors.c. What kinds of models call their layers' tensors; {NULL, NULL} ends a list. */
extern const HfNamed hf_names_of_gemma[], hf_names_of_glm[], hf_names_of_oss[], hf_names_of_gpt2[],
    hf_names_of_bert[], hf_names_of_between[], hf_names_of_phi[], hf_names_of_joined[], hf_names_of_latent[],
    hf_names_of_late[];

/* What model_type says: a row of the table in hf.c. */
typedef struct HfType {
  const char *type, *arch, *act; /* arch: the name in gguf files; act: "a|b": either */
  bool encoder;                  /* of whole texts */
  bool padded;                   /* positions are counted from behind the padding token's number */
  bool unrotated;                /* positions do not rotate */
  bool joined;                   /* a group's queries, its key and its value are rows of one matrix */
  bool latent;                   /* keys and values come of a narrow product */
  bool ones;                     /* norms multiply by 1 + weight */
  bool halves;                   /* elements a half apart rotate together; else neighbours */
  bool columns;                  /* matrices are (in, out) */
  const HfNamed *names;          /* besides those of all; NULL: none */
} HfType;

/* A tensor that others are put together with: those of one name, by their numbers. */
typedef struct HfPart {
  char name[64];
  int64_t index;
  TgTensor *t;
} HfPart;

typedef struct HfFolder {
  TgContext *ctx;
  Doc *d;
  const char *path;
  const char *arch;
  json_t *config, *tokenizer, *about; /* about: tokenizer_config.json; NULL: none */
  HfPairs kv, tensors;
  const HfType *type;
  bool ranks; /* an encoder with the head of a classifier */
  HfPart *part;
  size_t nparts, parts_cap;
} HfFolder;

/* A printf with one "%s" for a; false. */
bool hf_bad(const HfFolder *f, const char *form, const char *a);

/* Key-values of the tree that a gguf file would give; false: out of memory. */
TgValue *hf_pair_put(HfFolder *f, HfPairs *p, const char *key);
bool hf_kv_int(HfFolder *f, const char *key, int64_t v);
bool hf_kv_bool(HfFolder *f, const char *key, bool v);
bool hf_kv_text(HfFolder *f, const char *key, const char *v);
bool hf_kv_tensor(HfFolder *f, const char *key, const void *data, TgDType d, int64_t n);

bool hf_tensor_put(HfFolder *f, const char *name, TgTensor *t);

/* A JSON object of the folder. *to NULL: there is none, which is an error where it must be there. flags: of
 * jansson. */
bool hf_json_read(const HfFolder *f, const char *name, bool must, size_t flags, json_t **to);
bool hf_path_of(const HfFolder *f, const char *name, char path[LONGEST_PATH]);
bool hf_is_there(const HfFolder *f, const char *name);
/* The text of that key, or what stands in for it. */
const char *hf_text_of(const json_t *o, const char *key, const char *otherwise);

/* hf_tensors.c: safetensors -> f->tensors. */
bool hf_tensors_put(HfFolder *f);
void hf_parts_free(HfFolder *f);
/* hf.c: a whole number of config.json, or what stands in for it */
int64_t hf_int_of(const HfFolder *f, const char *key, int64_t otherwise);

/* tokenizer.json -> tokenizer.ggml.*; nothing where there is none. */
bool hf_tokenizer_put(HfFolder *f);
#endif
#endif
