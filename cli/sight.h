/* sight.h: pictures in prompts, for `tg chat`, `tg run FILE.gguf` and `tg serve`. */
#ifndef TG_CLI_SIGHT_H
#define TG_CLI_SIGHT_H
#include "llm.h"
#include "picture.h"

/* at most in one prompt; pixels: of all its pictures together */
enum { LLM_PICTURES = 16, LLM_PIXELS = 1 << 25 };

/* Opens what --mmproj names, for a model that is open. Without --mmproj the model reads no pictures, which is
 * fine. Returns false on an error, which is in the context. */
bool llm_sight_open(LlmSession *s);
void llm_sight_close(LlmSession *s);
/* Finds out how this template (NULL: there is none) shows pictures: by lists of parts, or not at all. Returns
 * false on an error. */
bool llm_sight_template(LlmSession *s, TgTemplate *t);
/* Returns a text of n bytes in the form that is passed to a template, to be freed: whatever looks like the
 * mark of a picture is replaced. Returns NULL if out of memory. */
char *llm_sight_text(const LlmSession *s, const char *text, size_t n);
/* The same for a message of a template that takes no lists: npictures marks are put before the text. */
char *llm_sight_message(const LlmSession *s, size_t npictures, const char *text, size_t n);
int64_t llm_sight_views(const LlmSession *s, const Picture *p); /* how many views a picture has */
/* Returns the ids of a prompt of n bytes, in which a mark represents each picture, to be freed. Sets
 * shown[i].at to the place of picture i. Returns NULL on an error, which is in the context. */
int32_t *llm_sight_ids(LlmSession *s, const char *prompt, size_t n, bool special, LlmShown *shown,
                       size_t nshown, int64_t *count);
/* Decodes a "data:image/..;base64,.." URI. pixels: the largest number of pixels. Returns NULL if all is fine,
 * otherwise the reason. */
const char *llm_sight_uri(const char *uri, size_t n, int64_t pixels, Picture *p);
/* Returns a picture's file, n bytes, as such a URI, to be freed; NULL: out of memory. */
char *llm_sight_uri_of(const void *file, size_t n);
#endif
