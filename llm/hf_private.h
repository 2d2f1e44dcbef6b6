/* hf_private.h: a model folder of Hugging Face while it is read: shared by hf.c (numbers), hf_tensors.c,
 * hf_tokenizer.c and hf_vision.c. In: files of the folder. Out: two maps, of key-values and of tensors. */
#ifndef TG_HF_PRIVATE_H
#define TG_HF_PRIVATE_H
#include "model_private.h"
#ifdef TG_HAVE_JANSSON
#include <jansson.h>

typedef struct HfNamed {
  const char *hf, *gguf;
} HfNamed;

/* hf_tensors.c. The names that kinds of models give to their layers' tensors; {NULL, NULL} ends a list. */
extern const HfNamed hf_names_of_gemma[], hf_names_of_glm[], hf_names_of_oss[], hf_names_of_gpt2[],
    hf_names_of_bert[], hf_names_of_between[], hf_names_of_phi[], hf_names_of_joined[], hf_names_of_latent[],
    hf_names_of_late[];

/* What a model_type implies: a row of the table in hf.c. */
typedef struct HfType {
  const char *type, *arch, *act; /* arch: the name in gguf files; act: the activation, "a|b": either */
  bool encoder;                  /* it encodes whole texts */
  bool padded;                   /* positions are counted from the number after the padding token's */
  bool unrotated;                /* positions do not rotate */
  bool joined;                   /* the queries of a group, its key and its value are rows of one matrix */
  bool latent;                   /* keys and values are computed from a narrow product */
  bool ones;                     /* norms multiply by 1 + weight */
  bool halves;                   /* elements half a head apart rotate together; otherwise neighbours do */
  bool columns;                  /* matrices are (in, out) */
  const HfNamed *names;          /* in addition to the names that all kinds share; NULL: none */
} HfType;

/* A tensor that is joined with others of the same name, in the order of their indices. */
typedef struct HfPart {
  char name[64];
  int64_t index;
  TgTensor *t;
} HfPart;

typedef struct HfFolder HfFolder;

/* Of a tensor of the files: where it goes, or that it goes nowhere; false: an error. */
typedef bool (*HfTake)(HfFolder *f, const char *name, TgTensor *t);

struct HfFolder {
  TgContext *ctx;
  const char *path;
  const char *arch;
  json_t *config, *tokenizer, *about; /* about: tokenizer_config.json; NULL: none */
  TgValue *kv, *tensors;              /* maps under construction */
  const HfType *type;
  bool ranks; /* the model ranks texts, by a classifier's head or by its answer */
  bool sees;  /* config is the text_config of a model that also reads pictures */
  HfTake take;
  HfPart *part;
  size_t nparts, parts_cap;
};

/* Records an error; form is a printf format with one "%s" for a. Returns false. */
bool hf_bad(const HfFolder *f, const char *form, const char *a);

/* Add key-values to the tree that a gguf file would give. They return false on an error. */
bool hf_kv_int(HfFolder *f, const char *key, int64_t v);
bool hf_kv_bool(HfFolder *f, const char *key, bool v);
bool hf_kv_real(HfFolder *f, const char *key, double v);
bool hf_kv_text(HfFolder *f, const char *key, const char *v);
bool hf_kv_tensor(HfFolder *f, const char *key, const void *data, TgDType d, int64_t n);
/* list: of tg_value_new, and then of the tree; ok false: it is freed instead */
bool hf_kv_list(HfFolder *f, const char *key, TgValue *list, bool ok);

bool hf_tensor_put(HfFolder *f, const char *name, TgTensor *t);

/* Reads a JSON object of the folder. If there is no such file, *to stays NULL, which is an error if must.
 * flags: of jansson. */
bool hf_json_read(const HfFolder *f, const char *name, bool must, size_t flags, json_t **to);
bool hf_path_of(const HfFolder *f, const char *name, char path[LLM_PATH]);
bool hf_is_there(const HfFolder *f, const char *name);
/* The text of that key, or `otherwise` if it is not there. */
const char *hf_text_of(const json_t *o, const char *key, const char *otherwise);

/* hf_tensors.c: safetensors -> f->tensors, by f->take. */
bool hf_tensors_put(HfFolder *f);
bool hf_text_take(HfFolder *f, const char *name, TgTensor *t); /* a language model's */
void hf_parts_free(HfFolder *f);
/* hf.c: a whole number of config.json, or `otherwise` if it is not there */
int64_t hf_int_of(const HfFolder *f, const char *key, int64_t otherwise);

/* hf.c: the padding token of a model whose positions are counted from behind it */
int64_t hf_padding(const HfFolder *f);

/* hf.c: the tree of the pairs that `read` puts into a folder. Returns NULL on an error. */
TgValue *hf_tree(TgContext *ctx, const char *path, bool (*read)(HfFolder *f));

/* hf_vision.c: f->config becomes its text_config if the model also reads pictures. */
bool hf_text_split(HfFolder *f);
/* Writes the name that a tensor has in a folder of the language model alone. Returns false if the tensor belongs
 * to the part that reads pictures. */
bool hf_text_name(const char *name, char to[128]);

/* tokenizer.json -> tokenizer.ggml.*; does nothing if there is no such file. */
bool hf_tokenizer_put(HfFolder *f);
#endif
#endif
