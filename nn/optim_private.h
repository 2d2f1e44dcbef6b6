/* optim_private.h: what an optimiser is made of: a rule (update.c) and what every rule needs (optim.c). */
#ifndef TG_OPTIM_PRIVATE_H
#define TG_OPTIM_PRIVATE_H
#include "nn_private.h"

enum { MAX_NUMBERS = 3, MAX_STATES = 3 };

/* The update of one parameter. value: what it is before; gradient, lr and number in value's dtype, lr and
 * number of shape (). */
typedef struct Update {
  const TgOptimOptions *o;
  TgTensor *value, *gradient, *lr, *number[MAX_NUMBERS];
  TgOptim *optim;
  int index;
} Update;

/* A state of the parameter, by its place in the rule's list: its memory, zeros at first. */
TgTensor *update_state(const Update *u, int state);
/* value stored there; what is stored */
TgTensor *update_store(const Update *u, int state, TgTensor *value);

typedef struct Rule {
  const char *name;
  TgOptimOptions defaults;         /* taken where an option is 0 */
  const char *number[MAX_NUMBERS]; /* what all parameters share, f32 ().. */
  double initial[MAX_NUMBERS];
  const char *state[MAX_STATES]; /* of each parameter, by torch's names */
  /* the shared numbers of this step from those of the last */
  void (*advance)(const TgOptimOptions *o, TgTensor *number[MAX_NUMBERS]);
  bool (*has_state)(const TgOptimOptions *o, int state); /* NULL: all that are named */
  TgTensor *(*update)(const Update *u);                  /* the new value */
  int least_rank;
} Rule;

typedef enum RuleKind {
  RULE_SGD,
  RULE_LARS,
  RULE_MUON,
  RULE_ADAM,
  RULE_ADAMW,
  RULE_LAMB,
  RULE_RMSPROP,
  RULE_ADAGRAD,
  RULE_ADADELTA,
  RULE_ADAMAX,
  RULE_NADAM,
  RULE_RADAM,
  NRULES
} RuleKind;

extern const Rule nn_rules[NRULES];
#endif
