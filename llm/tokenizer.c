/* tokenizer.c: the tokenizers of gguf files. In: key-values tokenizer.ggml.*. Out: a text as ids, ids as a
 * text. All of the vocabulary is checked when it is read. Tokens are stored as the bytes that they stand for,
 * in one piece of memory, and normal tokens are found by a hash table. Control tokens are not text: they are
 * recognised in a text only if the caller asks for them (.special). */
#include "llm_private.h"

/* ---- the table of kinds */
typedef struct Kind {
  const char *model;
  bool (*read)(TgTokenizer *t, const TgValue *gguf);
  bool (*encode)(TgTokenizer *t, const char *text, size_t n);
  bool add_bos, add_eos, add_space; /* used if the file does not say */
  int32_t bos, eos, unknown;
} Kind;

static const Kind kinds[] = {
    [LLM_BYTE_PAIRS] = {"gpt2", llm_byte_pairs_read, llm_byte_pairs, false, false, false, -1, -1, -1},
    [LLM_SENTENCE_PIECE] = {"llama", llm_sentence_piece_read, llm_sentence_piece, true, false, true, 1, 2, 0},
    [LLM_UNIGRAM] = {"t5", llm_unigram_read, llm_unigram, false, true, true, -1, 1, 2},
    [LLM_WORDS] = {"bert", llm_words_read, llm_words, true, true, false, 101, 102, 100}};

/* ---- reading */
int32_t llm_token_find(const TgTokenizer *t, const char *text, size_t n) {
  if (!n || n > t->longest) return -1;
  size_t length;
  for (size_t i = (size_t)llm_hash(text, n) & (t->nslots - 1);; i = (i + 1) & (t->nslots - 1)) {
    int32_t id = t->slot[i];
    if (id < 0) return -1;
    const char *at = llm_token(t, id, &length);
    if (length == n && !memcmp(at, text, n)) return id;
  }
}

static bool table_make(TgTokenizer *t) {
  for (t->nslots = 64; t->nslots < 2 * (size_t)t->n;)
    t->nslots *= 2;
  if (!(t->slot = tg_alloc(t->ctx, t->nslots * sizeof *t->slot))) return false;
  for (size_t i = 0; i < t->nslots; i++)
    t->slot[i] = -1;
  for (int32_t id = 0; id < t->n; id++) {
    size_t n, i;
    const char *text = llm_token(t, id, &n);
    bool text_of = t->type[id] == TOKEN_NORMAL || t->type[id] == TOKEN_UNUSED || t->type[id] == TOKEN_USER;
    if (!n || !text_of) continue;
    if (n > t->longest) t->longest = n;
    if (llm_token_find(t, text, n) >= 0) continue; /* of equal texts the first token is used */
    for (i = (size_t)llm_hash(text, n) & (t->nslots - 1); t->slot[i] >= 0; i = (i + 1) & (t->nslots - 1)) {}
    t->slot[i] = id;
  }
  return true;
}

static bool types_read(TgTokenizer *t, const TgValue *gguf) {
  const TgValue *v = llm_kv(gguf, "tokenizer.ggml.token_type");
  TgTensor *types = tg_value_tensor(v);
  if (!(t->type = tg_alloc(t->ctx, (size_t)t->n))) return false;
  memset(t->type, TOKEN_NORMAL, (size_t)t->n);
  if (!v) return true;
  if (!types || tg_numel(types) != t->n || tg_dtype_size(tg_dtype(types)) != 4)
    return llm_fail(t->ctx, TG_ERR_VALUE,
                    "tokenizer: %d tokens need as many whole numbers in tokenizer.ggml.token_type",
                    (int)t->n);
  int32_t *all = tg_alloc(t->ctx, (size_t)t->n * sizeof *all);
  bool ok = all && !tg_read(types, all, (size_t)t->n * sizeof *all);
  for (int32_t i = 0; ok && i < t->n; i++) {
    if (all[i] < 0 || all[i] > TOKEN_BYTE)
      ok = llm_fail(t->ctx, TG_ERR_VALUE, "tokenizer: token %d has the type %d", (int)i, (int)all[i]);
    t->type[i] = (uint8_t)all[i];
  }
  tg_free(t->ctx, all);
  return ok;
}

/* "<0x0A>" -> 10; -1: not of this form */
static int byte_named(const char *s, size_t n) {
  if (n != 6 || memcmp(s, "<0x", 3) || s[5] != '>') return -1;
  int value = 0;
  for (int i = 3; i < 5; i++) {
    const char *digits = "0123456789ABCDEF", *at = memchr(digits, s[i], 16);
    if (!at) return -1;
    value = 16 * value + (int)(at - digits);
  }
  return value;
}

/* Appends token i's text as it appears in a text. */
static bool text_put(TgTokenizer *t, LlmText *to, int32_t i, const char *s, size_t n) {
  if (t->kind == LLM_BYTE_PAIRS && (t->type[i] == TOKEN_NORMAL || t->type[i] == TOKEN_UNUSED))
    llm_byte_pairs_text(to, s, n);
  else if (t->type[i] == TOKEN_BYTE) {
    int b = byte_named(s, n);
    if (b < 0)
      return llm_fail(t->ctx, TG_ERR_VALUE, "tokenizer: token %d, '%.*s', is no byte", (int)i,
                      (int)(n > 20 ? 20 : n), s);
    t->byte[b] = i;
    llm_put(to, &(char){(char)b}, 1);
  } else
    llm_put(to, s, n);
  return !to->bad;
}

static bool texts_read(TgTokenizer *t, const TgValue *list) {
  LlmText all = {.ctx = t->ctx};
  bool ok = (t->begin = tg_alloc(t->ctx, ((size_t)t->n + 1) * sizeof *t->begin)) != NULL;
  for (int32_t i = 0; ok && i < t->n; i++) {
    size_t n;
    const char *s = tg_value_string(tg_value_at(list, (size_t)i), &n);
    ok = s || llm_fail(t->ctx, TG_ERR_VALUE, "tokenizer: token %d is no text", (int)i);
    ok = ok && text_put(t, &all, i, s, n);
    t->begin[i + 1] = all.n;
  }
  t->bytes = all.at;
  return ok;
}

/* The order in which special tokens are searched: by first byte, the longest first. */
static int32_t special_order(const TgTokenizer *t, int32_t a, int32_t b) {
  size_t an, bn;
  const unsigned char *at = (const unsigned char *)llm_token(t, a, &an);
  const unsigned char *bt = (const unsigned char *)llm_token(t, b, &bn);
  if (*at != *bt) return *at - *bt;
  return an != bn ? (an > bn ? -1 : 1) : a - b;
}

static void sift(const TgTokenizer *t, int32_t *s, int32_t at, int32_t n, LlmOrder order) {
  for (int32_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && order(t, s[child + 1], s[child]) > 0) child++;
    if (order(t, s[child], s[at]) <= 0) break;
    int32_t was = s[at];
    s[at] = s[child];
    s[child] = was;
  }
}

void llm_tokens_sort(const TgTokenizer *t, int32_t *ids, int32_t n, LlmOrder order) {
  for (int32_t i = n / 2; i-- > 0;)
    sift(t, ids, i, n, order);
  for (int32_t i = n; i-- > 1;) {
    int32_t was = ids[0];
    ids[0] = ids[i];
    ids[i] = was;
    sift(t, ids, 0, i, order);
  }
}

static bool specials_make(TgTokenizer *t) {
  size_t n;
  if (!(t->special = tg_alloc(t->ctx, ((size_t)t->n + 1) * sizeof *t->special))) return false;
  for (int32_t i = 0; i < t->n; i++) {
    bool is = t->type[i] == TOKEN_CONTROL || t->type[i] == TOKEN_USER || t->type[i] == TOKEN_UNKNOWN;
    llm_token(t, i, &n);
    if (is && n) t->special[t->nspecial++] = i;
  }
  llm_tokens_sort(t, t->special, t->nspecial, special_order);
  for (int32_t i = 0, b = 0; b <= 256; b++) {
    while (i < t->nspecial && (unsigned char)*llm_token(t, t->special[i], &n) < b)
      i++;
    t->special_begin[b] = i;
  }
  return true;
}

static bool id_read(TgTokenizer *t, const TgValue *gguf, const char *key, int32_t fallback, int32_t *out) {
  int64_t id;
  if (!llm_kv_int(t->ctx, gguf, key, fallback < t->n ? fallback : -1, &id)) return false;
  *out = (int32_t)id;
  if (id == -1 || id == UINT32_MAX) return (*out = -1), true;
  if (id >= 0 && id < t->n) return true;
  return llm_fail(t->ctx, TG_ERR_VALUE, "tokenizer: %s is %lld, and there are %d tokens", key, (long long)id,
                  (int)t->n);
}

static bool ends_read(TgTokenizer *t, const TgValue *gguf, const Kind *k) {
  int64_t bos, eos, space;
  t->bos = k->bos;
  t->eos = k->eos;
  if (t->kind == LLM_WORDS && /* BERT's files use these names and this spelling */
      !(id_read(t, gguf, "tokenizer.ggml.cls_token_id", k->bos, &t->bos) &&
        id_read(t, gguf, "tokenizer.ggml.seperator_token_id", k->eos, &t->eos)))
    return false;
  bool ok = id_read(t, gguf, "tokenizer.ggml.bos_token_id", t->bos, &t->bos) &&
            id_read(t, gguf, "tokenizer.ggml.eos_token_id", t->eos, &t->eos) &&
            id_read(t, gguf, "tokenizer.ggml.eot_token_id", -1, &t->eot) &&
            id_read(t, gguf, "tokenizer.ggml.unknown_token_id", k->unknown, &t->unknown) &&
            id_read(t, gguf, "tokenizer.ggml.padding_token_id", -1, &t->padding) &&
            llm_kv_int(t->ctx, gguf, "tokenizer.ggml.add_bos_token", k->add_bos || t->whole_words, &bos) &&
            llm_kv_int(t->ctx, gguf, "tokenizer.ggml.add_eos_token", k->add_eos, &eos) &&
            llm_kv_int(t->ctx, gguf, "tokenizer.ggml.add_space_prefix", k->add_space, &space);
  if (!ok) return false;
  t->add_bos = bos && t->bos >= 0;
  t->add_eos = eos && t->eos >= 0;
  t->add_space = space != 0;
  return true;
}

static const Kind *kind_of(TgTokenizer *t, const TgValue *gguf) {
  const char *model;
  if (!llm_kv_text(t->ctx, gguf, "tokenizer.ggml.model", &model)) return NULL;
  if (!model) {
    llm_fail(t->ctx, TG_ERR_VALUE, "tokenizer: the file has none (no tokenizer.ggml.model)");
    return NULL;
  }
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (!strcmp(kinds[i].model, model)) return t->kind = (LlmTokenizerKind)i, &kinds[i];
  llm_fail(t->ctx, TG_ERR_VALUE, "tokenizer: model '%.60s' is not known here; gpt2, llama, t5 and bert are",
           model);
  return NULL;
}

static bool read_all(TgTokenizer *t, const TgValue *gguf) {
  const Kind *k = kind_of(t, gguf);
  if (!k) return false;
  const TgValue *list = llm_kv(gguf, "tokenizer.ggml.tokens");
  size_t n = tg_value_count(list);
  if (tg_value_kind(list) != TG_KIND_LIST || !n || n > INT32_MAX / 4)
    return llm_fail(t->ctx, TG_ERR_VALUE, "tokenizer: tokenizer.ggml.tokens is no list of texts");
  t->n = (int32_t)n;
  return types_read(t, gguf) && texts_read(t, list) && table_make(t) && k->read(t, gguf) &&
         specials_make(t) && ends_read(t, gguf, k);
}

TgTokenizer *tg_tokenizer_new(TgContext *ctx, const TgValue *gguf) {
  TgTokenizer *t = ctx ? tg_alloc(ctx, sizeof *t) : NULL;
  if (!t) return NULL;
  t->ctx = ctx;
  t->text.ctx = ctx;
  for (int b = 0; b < 256; b++)
    t->byte[b] = -1;
  bool ok = false;
  TG_SCOPE(ctx) { ok = read_all(t, gguf); }
  if (ok) return t;
  tg_tokenizer_free(t);
  return NULL;
}

void tg_tokenizer_free(TgTokenizer *t) {
  if (!t) return;
  TgContext *ctx = t->ctx;
  llm_byte_pairs_free(t);
  tg_free(ctx, t->bytes), tg_free(ctx, t->begin), tg_free(ctx, t->score), tg_free(ctx, t->type);
  tg_free(ctx, t->slot), tg_free(ctx, t->special), tg_free(ctx, t->ids.at), tg_free(ctx, t->text.at);
  tg_free(ctx, t->order), tg_free(ctx, t->charsmap), tg_free(ctx, t->best);
  tg_free(ctx, t->spans.at), tg_free(ctx, t->cut.at), tg_free(ctx, t->symbol), tg_free(ctx, t->heap);
  tg_free(ctx, t);
}

/* ---- access to tokens */
int64_t tg_tokenizer_count(const TgTokenizer *t) { return t ? t->n : 0; }

const char *tg_token_text(const TgTokenizer *t, int64_t id, size_t *nbytes) {
  size_t n = 0;
  const char *text = t && id >= 0 && id < t->n ? llm_token(t, (int32_t)id, &n) : NULL;
  if (nbytes) *nbytes = n;
  return text;
}

int64_t tg_token_id(const TgTokenizer *t, const char *text) {
  size_t n = text ? strlen(text) : 0, length;
  if (!t || !n) return -1;
  int32_t first = t->special_begin[(unsigned char)*text], end = t->special_begin[(unsigned char)*text + 1];
  for (int32_t i = first; i < end; i++) {
    const char *at = llm_token(t, t->special[i], &length);
    if (length == n && !memcmp(at, text, n)) return t->special[i];
  }
  return llm_token_find(t, text, n);
}

int64_t tg_token_special(const TgTokenizer *t, TgTokenRole role) {
  if (!t) return -1;
  int32_t ids[] = {t->bos, t->eos, t->eot, t->unknown, t->padding};
  return (int)role >= 0 && role <= TG_TOKEN_PADDING ? ids[role] : -1;
}

/* The texts of tokens that end a reply, for all supported families of models; a file may have several of
 * them. */
bool tg_token_ends(const TgTokenizer *t, int64_t id) {
  static const char *const ends[] = {"<|eot_id|>",    "<|im_end|>",      "<|end|>",        "<end_of_turn>",
                                     "<|endoftext|>", "<|end_of_text|>", "<|eom_id|>",     "<|return|>",
                                     "<|call|>",      "<EOT>",           "<|end_of_turn|>"};
  size_t n;
  if (!t || id < 0 || id >= t->n) return false;
  if (id == t->eos || id == t->eot) return true;
  const char *text = llm_token(t, (int32_t)id, &n);
  for (size_t i = 0; t->type[id] == TOKEN_CONTROL && i < sizeof ends / sizeof *ends; i++)
    if (strlen(ends[i]) == n && !memcmp(ends[i], text, n)) return true;
  return false;
}

/* ---- from a text to ids */
bool llm_ids_put(TgTokenizer *t, int32_t id) {
  int32_t *at = llm_grow(t->ctx, t->ids.at, t->ids.n, 1, &t->ids.cap, sizeof *at);
  if (!at) return false;
  t->ids.at = at;
  at[t->ids.n++] = id;
  return true;
}

bool llm_byte_put(TgTokenizer *t, int32_t id, char byte) {
  if (id < 0) id = t->unknown;
  if (id >= 0) return llm_ids_put(t, id);
  return llm_fail(t->ctx, TG_ERR_VALUE, "tokenizer: no token for byte 0x%02x, and none for what is unknown",
                  (unsigned char)byte);
}

/* The special token at the beginning of a text; -1: none. User tokens are text, so they are found even if
 * special is false. */
static int32_t special_at(const TgTokenizer *t, const char *text, size_t n, bool special) {
  int32_t i = t->special_begin[(unsigned char)*text], end = t->special_begin[(unsigned char)*text + 1];
  for (; i < end; i++) {
    size_t length;
    const char *at = llm_token(t, t->special[i], &length);
    bool wanted = special || t->type[t->special[i]] == TOKEN_USER;
    if (wanted && length <= n && !memcmp(at, text, length)) return t->special[i];
  }
  return -1;
}

/* Encodes the text between two special tokens. SentencePiece puts a space before it; byte pairs do, where
 * they do it at all, only if it does not begin with a blank. */
static bool plain_put(TgTokenizer *t, const char *text, size_t n, bool blank) {
  if (!n) return true;
  if (t->kind == LLM_BYTE_PAIRS && strchr(" \t\n\v\f\r", *text)) blank = false;
  if (!blank || !t->add_space) return kinds[t->kind].encode(t, text, n);
  LlmText with = {.ctx = t->ctx};
  llm_put(&with, " ", 1), llm_put(&with, text, n);
  bool ok = !with.bad && kinds[t->kind].encode(t, with.at, with.n);
  tg_free(t->ctx, with.at);
  return ok;
}

/* Whether bytes at .. at + n - 1 have a byte of one of the spans. */
static bool is_within(const LlmSpan *spans, size_t nspans, size_t at, size_t n) {
  for (size_t i = 0; i < nspans; i++)
    if (at < spans[i].at + spans[i].n && spans[i].at < at + n) return true;
  return false;
}

/* plain: spans in which control tokens are text even if o->special is set. */
static bool encode(TgTokenizer *t, const char *text, size_t n, const TgTokenizeOptions *o,
                   const LlmSpan *plain, size_t nplain) {
  size_t done = 0, length;
  bool blank = !o->inside, ends = o->ends;
  t->ids.n = 0;
  if (ends && t->add_bos && !llm_ids_put(t, t->bos)) return false;
  for (size_t at = 0; at < n;) {
    int32_t id = special_at(t, text + at, n - at, o->special);
    if (id >= 0) llm_token(t, id, &length);
    if (id >= 0 && t->type[id] != TOKEN_USER && is_within(plain, nplain, at, length)) id = -1;
    if (id < 0) {
      at++;
      continue;
    }
    if (!plain_put(t, text + done, at - done, blank) || !llm_ids_put(t, id)) return false;
    at += length;
    done = at;
    blank = true;
  }
  return plain_put(t, text + done, n - done, blank) && (!ends || !t->add_eos || llm_ids_put(t, t->eos));
}

static int64_t ids_take(const TgTokenizer *t, int32_t *out, size_t cap) {
  size_t n = t->ids.n < cap ? t->ids.n : cap;
  if (out && n) memcpy(out, t->ids.at, n * sizeof *out);
  return (int64_t)t->ids.n;
}

int64_t tg_tokenize_opt(TgTokenizer *t, const char *text, size_t nbytes, int32_t *out, size_t cap,
                        const TgTokenizeOptions *given) {
  TgTokenizeOptions o;
  if (!t || (!text && nbytes)) return -1;
  if (tg_options_read(t->ctx, "tokenize", "TgTokenizeOptions", &o, sizeof o, given)) return -1;
  return encode(t, text, nbytes, &o, NULL, 0) ? ids_take(t, out, cap) : -1;
}

int64_t llm_tokenize_filled(TgTokenizer *t, const char *text, size_t n, const LlmSpan *given, size_t ngiven,
                            int32_t *out, size_t cap) {
  return encode(t, text, n, &(TgTokenizeOptions){.special = true}, given, ngiven) ? ids_take(t, out, cap)
                                                                                  : -1;
}

/* ---- from ids to a text, as a stream: bytes that may be the beginning of a character wait for the next
 * token */
struct TgDetokenizer {
  const TgTokenizer *t;
  LlmText text;
  char waiting[4];
  size_t nwaiting;
  bool special, begin, bytes; /* bytes: no bytes wait */
};

TgDetokenizer *tg_detokenizer_new_opt(const TgTokenizer *t, const TgDetokenizeOptions *given) {
  TgDetokenizeOptions o;
  if (!t || tg_options_read(t->ctx, "detokenizer_new", "TgDetokenizeOptions", &o, sizeof o, given))
    return NULL;
  TgDetokenizer *d = tg_alloc(t->ctx, sizeof *d);
  if (!d) return NULL;
  d->t = t;
  d->text.ctx = t->ctx;
  d->special = o.special;
  d->bytes = o.bytes;
  d->begin = !o.inside && (t->add_space || t->kind == LLM_WORDS);
  return d;
}

void tg_detokenizer_free(TgDetokenizer *d) {
  if (!d) return;
  TgContext *ctx = d->t->ctx;
  tg_free(ctx, d->text.at);
  tg_free(ctx, d);
}

/* SentencePiece's U+2581 is a space; the space that was put before the text is removed. */
static void piece_put(TgDetokenizer *d, const char *s, size_t n) {
  for (size_t i = 0; i < n;) {
    bool blank = n - i >= 3 && !memcmp(s + i, "\xe2\x96\x81", 3);
    if (!(blank && d->begin)) llm_put(&d->text, blank ? " " : s + i, 1);
    d->begin = false;
    i += blank ? 3 : 1;
  }
}

const char *tg_detokenizer_put(TgDetokenizer *d, int64_t id, size_t *nbytes) {
  if (nbytes) *nbytes = 0;
  if (!d) return NULL;
  const TgTokenizer *t = d->t;
  size_t n;
  if (id < 0 || id >= t->n) {
    llm_fail(t->ctx, TG_ERR_VALUE, "detokenizer: no token %lld", (long long)id);
    return NULL;
  }
  d->text.n = 0;
  llm_put(&d->text, d->waiting, d->nwaiting);
  const char *s = llm_token(t, (int32_t)id, &n);
  bool hidden = t->type[id] == TOKEN_CONTROL || t->type[id] == TOKEN_UNKNOWN;
  if (t->kind != LLM_BYTE_PAIRS && t->type[id] != TOKEN_BYTE && !hidden)
    piece_put(d, s, n);
  else if (!hidden || d->special) {
    d->begin = d->begin && hidden;
    llm_put(&d->text, s, n);
  }
  if (d->text.bad) return NULL;
  d->nwaiting = d->bytes ? 0 : llm_utf8_tail(d->text.at, d->text.n);
  d->text.n -= d->nwaiting;
  memcpy(d->waiting, d->text.at + d->text.n, d->nwaiting);
  d->text.at[d->text.n] = 0;
  if (nbytes) *nbytes = d->text.n;
  return d->text.at;
}

const char *tg_detokenizer_end(TgDetokenizer *d, size_t *nbytes) {
  if (nbytes) *nbytes = 0;
  if (!d) return NULL;
  d->text.n = 0;
  llm_put(&d->text, "\xef\xbf\xbd", d->nwaiting ? 3 : 0);
  d->nwaiting = 0;
  d->begin = false;
  if (nbytes) *nbytes = d->text.n;
  return d->text.bad ? NULL : d->text.at;
}
