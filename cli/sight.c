/* sight.c: pictures in prompts. In: a model with its vision tower, a chat template, texts and pictures. Out:
 * the ids of a prompt, with those of each picture at its place. In a prompt's text a picture is a mark: the
 * one that the template writes, or, if the template takes only texts, one that nobody can guess. A mark in a
 * user's text must not show a picture, so another word replaces it before the text is passed to the
 * template. */
#define _POSIX_C_SOURCE 200809L
#include "sight.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- opening */
/* Makes words that occur in no text, because they are random. */
static void words_draw(LlmSight *w) {
  uint64_t r[2] = {(uint64_t)time(NULL), (uint64_t)(uintptr_t)w};
  FILE *f = fopen("/dev/urandom", "rb");
  if (f && fread(r, sizeof r, 1, f) != 1) r[0] ^= (uint64_t)clock();
  if (f) fclose(f);
  snprintf(w->mark, sizeof w->mark, "[picture-%016llx]", (unsigned long long)r[0]);
  snprintf(w->guard, sizeof w->guard, "[guard-%016llx]", (unsigned long long)r[1]);
}

bool llm_sight_open(LlmSession *s) {
  words_draw(&s->sight);
  if (!s->o->mmproj) return true;
  int64_t tiles = s->o->tiles;
  s->sight.vision = tg_vision_open(s->m, s->o->mmproj, .tiles = !tiles ? -1 : tiles < 0 ? 0 : tiles);
  return s->sight.vision != NULL;
}

void llm_sight_close(LlmSession *s) {
  tg_vision_free(s->sight.vision);
  s->sight.vision = NULL;
}

static size_t times_in(const char *text, const char *word) {
  size_t n = 0;
  for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
    n++;
  return n;
}

/* Renders a message with one picture: the template takes lists of parts if it writes one mark, and the text
 * once. */
bool llm_sight_template(LlmSession *s, TgTemplate *t) {
  static const char asked[] =
      "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image\"}, "
      "{\"type\": \"text\", \"text\": \"PROBE\"}]}], \"add_generation_prompt\": true, "
      "\"bos_token\": \"\", \"eos_token\": \"\"}";
  if (!s->sight.vision || !t) return true;
  TgVisionAbout a = tg_vision_about(s->sight.vision);
  const char *text = tg_template_render(t, asked, NULL);
  for (int i = 0; text && i < 3 && a.mark[i] && !s->sight.lists; i++)
    if (times_in(text, a.mark[i]) == 1 && times_in(text, "PROBE") == 1) {
      s->sight.lists = true;
      snprintf(s->sight.mark, sizeof s->sight.mark, "%s", a.mark[i]);
    }
  if (text || tg_error(s->ctx) != TG_ERR_VALUE) return text != NULL;
  tg_clear_error(s->ctx); /* the template takes no lists */
  return true;
}

/* ---- texts */
/* Returns text (n bytes) with `to` for each `from`, and a 0 byte, to be freed; NULL: no memory. */
static char *replaced(const char *text, size_t n, const char *from, const char *to, size_t *length) {
  size_t nfrom = strlen(from), nto = strlen(to), count = 0, at = 0;
  for (size_t i = 0; i + nfrom <= n; i++)
    if (!memcmp(text + i, from, nfrom)) count++;
  char *all = malloc(n + count * nto + 1);
  for (size_t i = 0; all && i < n;) {
    bool is = i + nfrom <= n && !memcmp(text + i, from, nfrom);
    if (is) memcpy(all + at, to, nto);
    if (!is) all[at] = text[i];
    at += is ? nto : 1;
    i += is ? nfrom : 1;
  }
  if (all) all[at] = 0;
  if (length) *length = at;
  return all;
}

char *llm_sight_text(const LlmSession *s, const char *text, size_t n) {
  return replaced(text, n, s->sight.mark, s->sight.guard, NULL);
}

char *llm_sight_message(const LlmSession *s, size_t npictures, const char *text, size_t n) {
  const char *mark = s->sight.mark,
             *line = s->sight.vision && !*tg_vision_about(s->sight.vision).end ? "\n" : "";
  size_t each = strlen(mark) + strlen(line);
  char *safe = llm_sight_text(s, text, n), *all = safe ? malloc(npictures * each + strlen(safe) + 1) : NULL;
  char *at = all;
  for (size_t i = 0; all && i < npictures; i++)
    at = stpcpy(stpcpy(at, mark), line);
  if (all) strcpy(at, safe);
  free(safe);
  return all;
}

/* ---- ids */
typedef struct Ids {
  LlmSession *s;
  int32_t *at;
  int64_t n;
  bool ok;
} Ids;

/* Makes room for more ids. Returns false if there is none. */
static bool room(Ids *ids, int64_t more) {
  int32_t *grown = ids->ok ? realloc(ids->at, (size_t)(ids->n + more + 1) * sizeof *grown) : NULL;
  if (ids->ok && !grown) ids->ok = !tg_set_error(ids->s->ctx, TG_ERR_NOMEM, "out of memory");
  if (grown) ids->at = grown;
  return grown != NULL;
}

/* Appends the ids of a text. */
static void put_text(Ids *ids, const char *text, size_t n, bool special) {
  TgTokenizer *t = ids->s->tokenizer;
  if (!ids->ok || !n) return;
  if (llm_is_too_long(ids->s, text, n, special)) {
    ids->ok = false;
    return;
  }
  int64_t count = tg_tokenize(t, text, n, NULL, 0, .special = special, .inside = true);
  ids->ok = count >= 0;
  if (!room(ids, count)) return;
  tg_tokenize(t, text, n, ids->at + ids->n, (size_t)count, .special = special, .inside = true);
  ids->n += count;
}

/* The text before this view of a picture; after the last view, the text that ends it. */
static const char *text_of(Ids *ids, const Picture *p, int64_t view) {
  const char *text = ids->ok ? tg_vision_text(ids->s->sight.vision, p->height, p->width, view) : NULL;
  if (!text) ids->ok = false;
  return text ? text : "";
}

int64_t llm_sight_views(const LlmSession *s, const Picture *p) {
  return tg_vision_views(s->sight.vision, p->height, p->width);
}

/* Appends the ids of a picture's views, and those of the texts between them. */
static void put_picture(Ids *ids, LlmShown *shown) {
  TgVision *v = ids->s->sight.vision;
  const Picture *p = shown->picture;
  int64_t views = llm_sight_views(ids->s, p), each = tg_vision_tokens(v), count = views * each;
  int64_t context = tg_llm_about(ids->s->m).context;
  shown->at = ids->n;
  if (ids->ok && count > context) {
    char why[160];
    snprintf(why, sizeof why, "a picture of %lld x %lld tokens is more than the context of %lld",
             (long long)views, (long long)each, (long long)context);
    ids->ok = !tg_set_error(ids->s->ctx, TG_ERR_LIMIT, why);
  }
  int32_t *all = ids->ok ? malloc((size_t)(count + 1) * sizeof *all) : NULL;
  if (ids->ok && !all) ids->ok = !tg_set_error(ids->s->ctx, TG_ERR_NOMEM, "out of memory");
  if (ids->ok) ids->ok = views && !tg_vision_ids(v, p->rgb, p->height, p->width, all, count);
  for (int64_t i = 0; ids->ok && i < views; i++) {
    const char *text = i ? text_of(ids, p, i) : "";
    put_text(ids, text, strlen(text), true);
    if (!room(ids, each)) break;
    memcpy(ids->at + ids->n, all + i * each, (size_t)each * sizeof *all);
    ids->n += each;
  }
  free(all);
}

/* Appends the text between two pictures, with `before` and `after`, whose control tokens always count. If
 * those in the text count too (special), all three are one text, because blank lines where they meet may be
 * one token. first: the prompt begins here. */
static void put_between(Ids *ids, const char *before, const char *text, size_t n, const char *after,
                        bool special, bool first) {
  size_t length = 0;
  char *own = replaced(text, n, ids->s->sight.guard, ids->s->sight.mark, &length);
  char *all = own ? malloc(strlen(before) + length + strlen(after) + 1) : NULL;
  if (!all && ids->ok) ids->ok = !tg_set_error(ids->s->ctx, TG_ERR_NOMEM, "out of memory");
  size_t nbefore = strlen(before);
  if (all && special) {
    memcpy(all, before, nbefore), memcpy(all + nbefore, own, length);
    strcpy(all + nbefore + length, after);
    length += nbefore + strlen(after);
  } else if (all)
    memcpy(all, own, length);
  if (ids->ok && !special) put_text(ids, before, nbefore, true);
  if (ids->ok && first)
    ids->ok = (ids->at = llm_prompt_ids(ids->s, all, length, special, &ids->n)) != NULL;
  else if (ids->ok)
    put_text(ids, all, length, special);
  if (ids->ok && !special) put_text(ids, after, strlen(after), true);
  free(own), free(all);
}

static const char *find(const char *text, size_t n, const char *word) {
  size_t k = strlen(word);
  for (size_t i = 0; i + k <= n; i++)
    if (!memcmp(text + i, word, k)) return text + i;
  return NULL;
}

int32_t *llm_sight_ids(LlmSession *s, const char *prompt, size_t n, bool special, LlmShown *shown,
                       size_t nshown, int64_t *count) {
  Ids ids = {.s = s, .ok = true};
  const char *mark = s->sight.mark, *end = prompt + n;
  char after[200] = ""; /* the text that ends the picture before */
  size_t i = 0;
  for (const char *at; (at = find(prompt, (size_t)(end - prompt), mark)); i++) {
    if (i < nshown) {
      const Picture *p = shown[i].picture;
      put_between(&ids, after, prompt, (size_t)(at - prompt), text_of(&ids, p, 0), special, !i);
      put_picture(&ids, &shown[i]);
      snprintf(after, sizeof after, "%s", text_of(&ids, p, llm_sight_views(s, p)));
    }
    prompt = at + strlen(mark);
  }
  put_between(&ids, after, prompt, (size_t)(end - prompt), "", special, !i);
  if (ids.ok && i != nshown) {
    char why[120];
    snprintf(why, sizeof why, "the prompt has a place for %zu pictures, and there are %zu", i, nshown);
    ids.ok = !tg_set_error(s->ctx, TG_ERR_VALUE, why);
  }
  *count = ids.n;
  if (ids.ok) return ids.at;
  free(ids.at);
  return NULL;
}

/* ---- data: URIs */
static int digit_of(unsigned char c) {
  return c >= 'A' && c <= 'Z'   ? c - 'A'
         : c >= 'a' && c <= 'z' ? c - 'a' + 26
         : c >= '0' && c <= '9' ? c - '0' + 52
         : c == '+'             ? 62
         : c == '/'             ? 63
                                : -1;
}

/* Decodes base64: groups of four characters, the last padded with '='. out: n / 4 * 3 bytes. Returns false if
 * it is none. */
static bool base64_decode(const char *text, size_t n, uint8_t *out, size_t *nout) {
  size_t pads = n && text[n - 1] == '=' ? 1 + (n > 1 && text[n - 2] == '=') : 0;
  *nout = 0;
  if (!n || n % 4) return false;
  for (size_t i = 0; i < n; i += 4) {
    uint32_t w = 0;
    for (size_t k = i; k < i + 4; k++) {
      int d = k < n - pads ? digit_of((unsigned char)text[k]) : 0;
      if (d < 0) return false;
      w = w << 6 | (uint32_t)d;
    }
    for (int shift = 16; shift >= 0; shift -= 8)
      out[(*nout)++] = (uint8_t)(w >> shift);
  }
  *nout -= pads;
  return true;
}

const char *llm_sight_uri(const char *uri, size_t n, int64_t pixels, Picture *p) {
  static const char begin[] = "data:image/", sign[] = ";base64,";
  const char *comma = n > strlen(begin) && !memcmp(uri, begin, strlen(begin)) ? memchr(uri, ',', n) : NULL;
  size_t head = comma ? (size_t)(comma - uri) + 1 : 0;
  if (head < strlen(sign) || memcmp(uri + head - strlen(sign), sign, strlen(sign)))
    return "a picture is a data: URI, data:image/png;base64,.. or data:image/jpeg;base64,..";
  uint8_t *bytes = malloc((n - head) / 4 * 3 + 4);
  size_t nbytes;
  if (!bytes) return "out of memory";
  const char *why = base64_decode(uri + head, n - head, bytes, &nbytes)
                        ? picture_decode(bytes, nbytes, pixels, p)
                        : "the picture's URI is no base64";
  free(bytes);
  return why;
}

char *llm_sight_uri_of(const void *file, size_t n) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const uint8_t *at = file;
  const char *kind = n > 1 && at[0] == 0x89 ? "png" : n > 1 && at[0] == 0xff ? "jpeg" : "x-portable-pixmap";
  char *all = malloc(64 + (n + 2) / 3 * 4), *to = all;
  if (!all) return NULL;
  to += sprintf(to, "data:image/%s;base64,", kind);
  for (size_t i = 0; i < n; i += 3) {
    size_t have = n - i < 3 ? n - i : 3;
    uint32_t w = (uint32_t)at[i] << 16;
    if (have > 1) w |= (uint32_t)at[i + 1] << 8;
    if (have > 2) w |= at[i + 2];
    for (size_t k = 0; k < 4; k++)
      *to++ = k <= have ? digits[w >> (18 - 6 * k) & 63] : '=';
  }
  *to = 0;
  return all;
}
