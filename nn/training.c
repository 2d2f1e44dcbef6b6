/* training.c: saves a training run in one file. In: a model, its optimiser, schedule and scaler, or the file
 * that they were saved in. Out: the file, or all of them as they were. */
#include "nn_private.h"
#include "tg_io.h"
#include <inttypes.h>
#include <stdio.h>

enum { MOST_METADATA = 128 };

static bool whole(TgContext *ctx, const TgTraining *t) {
  if (t && t->size && t->module && t->model && t->optim) return true;
  tg_set_error(ctx, TG_ERR_VALUE,
               !t || t->size ? "training: .module, .model and .optim are needed"
                             : "training: write TgTraining t = {.size = sizeof t, ..}");
  return false;
}

/* Returns everything that is saved, under its names in the file. NULL: failed. */
static TgState *state_of(TgContext *ctx, const TgTraining *t) {
  TgState *s = tg_state_new(ctx);
  TgStatus status = s ? tg_module_state(t->module, t->model, s, "model") : TG_ERR_NOMEM;
  if (!status) status = tg_optim_state(t->optim, s, "optim");
  if (!status && t->rate) status = tg_lr_state(t->rate, s, "lr");
  if (!status && t->scaler) status = tg_scaler_state(t->scaler, s, "scaler");
  if (!status) return s;
  if (!tg_error(ctx)) tg_set_error(ctx, status, "training: its state cannot be told");
  tg_state_free(s);
  return NULL;
}

TgStatus tg_train_save(TgContext *ctx, const TgTraining *t, const char *path, const char *const *metadata) {
  char step[32], random[96];
  const char *about[MOST_METADATA + 1] = {"step", step, "random", random};
  int n = 4;
  if (!ctx) return TG_ERR_NOMEM;
  if (!whole(ctx, t)) return tg_error(ctx);
  while (metadata && *metadata && n < MOST_METADATA)
    about[n++] = *metadata++;
  if (metadata && *metadata)
    return tg_set_error(ctx, TG_ERR_LIMIT, "training: too much metadata"), tg_error(ctx);
  TgRandomState r = tg_random_state(ctx);
  snprintf(step, sizeof step, "%" PRId64, t->step);
  snprintf(random, sizeof random, "%" PRIu64 " %" PRIu64 " %" PRId64, r.seed, r.counter, r.order);
  TgState *s = state_of(ctx, t);
  if (s) tg_safe_save(s, path, .metadata = about);
  tg_state_free(s);
  return tg_error(ctx);
}

/* Reads the step and the state of random numbers from a file of tg_train_save. Older files have no "random";
 * *drawn is then false. */
static bool numbers_read(TgContext *ctx, const char *path, int64_t *step, TgRandomState *r, bool *drawn) {
  TgValue *head = NULL;
  TG_SCOPE(ctx) { head = tg_safe_load_metadata(tg_from_file(ctx, path, TG_U8, TG_SHAPE(-1)), NULL); }
  const TgValue *about = tg_value_get(head, "__metadata__");
  const char *at = tg_value_string(tg_value_get(about, "step"), NULL);
  const char *random = tg_value_string(tg_value_get(about, "random"), NULL);
  bool ok = at && sscanf(at, "%" SCNd64, step) == 1 && *step >= 0;
  *drawn = random != NULL;
  if (random)
    ok = ok && sscanf(random, "%" SCNu64 " %" SCNu64 " %" SCNd64, &r->seed, &r->counter, &r->order) == 3 &&
         r->order >= 1 && r->order <= INT32_MAX;
  if (!ok && !tg_error(ctx))
    tg_set_error(ctx, TG_ERR_VALUE, "training: the file has no step, or no state of random numbers");
  tg_value_free(head);
  return ok;
}

TgStatus tg_train_load(TgContext *ctx, TgTraining *t, const char *path) {
  int64_t step = 0;
  TgRandomState random;
  bool drawn = false;
  if (!ctx) return TG_ERR_NOMEM;
  if (!whole(ctx, t) || !numbers_read(ctx, path, &step, &random, &drawn)) return tg_error(ctx);
  TgState *s = state_of(ctx, t), *file = s ? tg_safe_load_file(ctx, path) : NULL;
  bool ok = file && !tg_load_state(s, file);
  if (ok && t->rate) ok = !tg_lr_resume(t->rate);
  if (ok && drawn) ok = !tg_random_resume(ctx, random);
  if (ok) t->step = step;
  tg_state_free(s), tg_state_free(file);
  return tg_error(ctx);
}
