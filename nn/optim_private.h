/* optim_private.h: the parts of an optimiser: a rule (update.c) and what every rule needs (optim.c). */
#ifndef TG_OPTIM_PRIVATE_H
#define TG_OPTIM_PRIVATE_H
#include "nn_private.h"

enum { MAX_NUMBERS = 3, MAX_STATES = 3 };

/* The update of one parameter. value: the parameter before the step. gradient, lr and number have value's
 * dtype; lr and number have shape (). */
typedef struct Update {
  const TgOptimOptions *o;
  TgTensor *value, *gradient, *lr, *number[MAX_NUMBERS];
  TgOptim *optim;
  int index;
} Update;

/* Returns the memory of a state of the parameter, which begins as zeros. state: index in the rule's list. */
TgTensor *update_state(const Update *u, int state);
/* Stores a value there. Returns what is stored. */
TgTensor *update_store(const Update *u, int state, TgTensor *value);

typedef struct Rule {
  const char *name;
  TgOptimOptions defaults; /* for options that were not written */
  /* names of the numbers that all parameters share, f32 (1) */
  const char *number[MAX_NUMBERS];
  double initial[MAX_NUMBERS];
  const char *state[MAX_STATES]; /* names of the states of each parameter, as in torch */
  /* replaces the shared numbers of the last step by those of this step */
  void (*advance)(const TgOptimOptions *o, TgTensor *number[MAX_NUMBERS]);
  bool (*has_state)(const TgOptimOptions *o, int state); /* NULL: it has all named states */
  TgTensor *(*update)(const Update *u);                  /* returns the new value */
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
