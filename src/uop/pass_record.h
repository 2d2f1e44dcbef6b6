/* pass_record.h: what TG_VIZ records of passes, for the pages that show them (tg viz). Each run of a table of
 * passes writes a JSON file with its graph as text after each pass, and with every rule that fired, the node
 * it matched and its result. */
#ifndef TG_PASS_RECORD_H
#define TG_PASS_RECORD_H
#include "uop/pass.h"

bool pass_recorded(const PassEnv *e); /* whether recording is requested */
void pass_record_free(PassEnv *e);
/* Records that a rule fired in the current pass. */
void pass_record_fire(PassEnv *e, const char *rule, const char *where, const UOp *self, const UOp *result);
/* Records the graph after a pass (number 0: before the first). What does not fit into memory is left out. */
void pass_record_graph(PassEnv *e, const PassRun *r, const UOpVec *roots, int number, const char *pass);
/* Ends the run and writes its file. Returns false if that fails; the error is in r->err. */
bool pass_record_end(PassEnv *e, PassRun *r);
#endif
