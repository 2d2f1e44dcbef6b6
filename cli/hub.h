/* hub.h: models by name. `hf:OWNER/REPO[:QUANT]` stands for files of the Hugging Face Hub, which are
 * downloaded the first time that they are wanted. */
#ifndef TG_CLI_HUB_H
#define TG_CLI_HUB_H
#include "cli.h"

typedef struct HubAsk {
  const char *name; /* hf:OWNER/REPO[:QUANT] */
  bool projector;   /* the file that reads pictures for a model is meant, and not the model */
  bool sight;       /* both: the model, and what reads pictures for it if the repository has it */
  bool anew;        /* asks for the listing again, and checks the sums of the files that are there */
} HubAsk;

/* Paths on this disk, to be freed: a gguf file (the first, if the model is in several), or a folder. sight
 * NULL: there is none, or it was not asked for. */
typedef struct HubPaths {
  char *model, *sight;
} HubPaths;

bool hub_is(const char *text); /* whether it begins with hf: */
/* Downloads what is not there. Returns an exit code; if it is not CLI_OK, the reason was printed and p is
 * empty. */
int hub_path(const HubAsk *ask, HubPaths *p);

/* Prints the models by name that are on this disk, one a line. Returns an exit code. */
int hub_models(bool json);

/* The memory of the paths that stand for the names in a command line. */
typedef struct HubNames {
  char *at[CLI_MANY + 8];
  int n;
} HubNames;

/* Replaces each model's name in a command's first c->models arguments, and in its options --draft and
 * --mmproj, by a path. If the command can show pictures to its one model, and --mmproj is not given, that
 * option is set to what the repository has. hub_names_free frees the paths once the command has run. Returns
 * an exit code. */
int hub_names(const CliCommand *c, void *options, char **argument, int n, HubNames *names);
void hub_names_free(HubNames *names);
#endif
