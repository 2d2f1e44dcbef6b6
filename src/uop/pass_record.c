/* pass_record.c: records passes as JSON. In: what the runner (pass.c) reports. Out: FOLDER/k003.json:
 * {"stage", "subject", "passes": [{"name", "text", "firings", "rewrites": [[rule, where, before, after],
 * ..]}, ..]}, and for the tensor graph "origins", one for each line of its text. Names and graphs are escaped
 * as JSON strings, whatever they contain. */
#define _GNU_SOURCE
#include "uop/pass_record.h"
#include "base/os.h"
#include <fcntl.h>
#include <stdio.h>

enum { MOST_REWRITES = 4000, NODES_SHOWN = 30, MOST_TEXT = 4 << 20 };

bool pass_recorded(const PassEnv *e) { return *e->record_dir; }

void pass_record_free(PassEnv *e) { str_free(&e->record), str_free(&e->rewrites_text); }

void pass_record_fire(PassEnv *e, const char *rule, const char *where, const UOp *self, const UOp *result) {
  Str *to = &e->rewrites_text, s;
  if (e->nrewrites++ >= MOST_REWRITES) return;
  str_put(to, to->len ? ",\n[" : "["), str_json(to, rule), str_put(to, ","), str_json(to, where);
  for (int i = 0; i < 2; i++) {
    str_init(&s, e->mem);
    uop_expr(&s, i ? result : self, NODES_SHOWN);
    str_put(to, ","), str_json(to, str_text(&s));
    str_free(&s);
  }
  str_put(to, "]");
}

/* Writes the origin of each node, in the order of the text's lines. */
static void origins_put(PassEnv *e, const PassRun *r, const UOpVec *roots) {
  UOpVec order = {0};
  int n = 0;
  str_put(&e->record, ",\"origins\":[");
  bool ok = uop_toposort(r->st, r->mem, roots->at, roots->len, &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    const UOp *u = order.at[i];
    if (u->op == OPS_CONST && u->lanes == 1) continue; /* it has no line */
    if (n++) str_put(&e->record, ",");
    str_json(&e->record, e->origin(e->origin_to, u));
  }
  str_put(&e->record, "]");
  vec_free(r->mem, &order);
}

void pass_record_graph(PassEnv *e, const PassRun *r, const UOpVec *roots, int number, const char *pass) {
  Str *to = &e->record, text;
  if (!number) {
    str_free(to), str_init(to, e->mem);
    str_put(to, "{\"stage\":"), str_json(to, r->stage);
    str_put(to, ",\"subject\":"), str_json(to, r->subject), str_put(to, ",\"passes\":[\n");
  }
  bool linear = r->linear && r->linear->n;
  str_init(&text, e->mem);
  if (linear)
    uop_print_list(&text, r->linear, r->mem);
  else
    uop_print(&text, r->st, r->mem, roots->at, roots->len);
  str_put(to, number ? ",\n{\"name\":" : "{\"name\":"), str_json(to, pass);
  str_printf(to, ",\"linear\":%s,\"firings\":%d,\"text\":", linear ? "true" : "false", e->nrewrites);
  str_json(to, text.len <= MOST_TEXT ? str_text(&text) : "# more than 4 MiB of text");
  if (!number && e->origin && r->takes == GRAPH_TENSOR) origins_put(e, r, roots);
  str_put(to, ",\"rewrites\":["), str_put(to, str_text(&e->rewrites_text)), str_put(to, "]}");
  str_free(&text), str_free(&e->rewrites_text);
  str_init(&e->rewrites_text, e->mem);
  e->nrewrites = 0;
}

bool pass_record_end(PassEnv *e, PassRun *r) {
  char path[400];
  str_put(&e->record, "]}\n");
  if (e->record.oom) error_no_memory(r->err, "viz");
  snprintf(path, sizeof path, "%s/%c%03d.json", e->record_dir, r->letter, r->number);
  e->os->mkdir(e->record_dir, 0777); /* it may exist already; otherwise open reports the problem */
  int fd = e->record.oom ? -1 : e->os->open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  bool ok = fd >= 0 && os_write_all(e->os, fd, str_text(&e->record), e->record.len);
  if (fd >= 0) ok = (e->os->close(fd) == 0) & ok;
  str_free(&e->record), str_init(&e->record, e->mem);
  if (!ok) error_set(r->err, TG_ERR_IO, "viz: cannot write %.300s", path);
  return ok;
}
