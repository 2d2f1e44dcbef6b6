/* pass_record.h: what TG_VIZ keeps of passes, for pages that show them (tg viz). A file of JSON for each run of a
 * table of passes: its graph as text after each pass, and every rule that fired, with what it made of what. */
#ifndef TG_PASS_RECORD_H
#define TG_PASS_RECORD_H
#include "uop/pass.h"

bool pass_recorded(const PassEnv *e); /* whether anybody wants it */
void pass_record_free(PassEnv *e);
/* a rule fired in the pass that runs */
void pass_record_fire(PassEnv *e, const char *rule, const char *where, const UOp *self, const UOp *result);
/* The graph as it is after a pass (number 0: before the first). What does not fit into memory is left out. */
void pass_record_graph(PassEnv *e, const PassRun *r, const UOpVec *roots, int number, const char *pass);
/* The run has ended: its file is written. False: recorded in r->err. */
bool pass_record_end(PassEnv *e, PassRun *r);
#endif
