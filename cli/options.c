/* options.c: reads options by a command's table, and writes the table as help, as completion for three shells
 * and as man pages. In: a CliCommand and the words after its name. Out: the struct of options that the
 * command's run receives. */
#include "hub.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 64, FAR = 3 };

/* ---- suggestions. The distance of two words is the number of letters to add, drop, change or swap. */
static int distance(const char *a, const char *b) {
  int n = (int)strlen(a), m = (int)strlen(b), row[3][LONGEST + 1];
  if (n > LONGEST || m > LONGEST) return FAR;
  int *two = row[0], *one = row[1], *now = row[2];
  for (int j = 0; j <= m; j++)
    one[j] = j;
  for (int i = 1; i <= n; i++) {
    now[0] = i;
    for (int j = 1; j <= m; j++) {
      int best = one[j - 1] + (a[i - 1] != b[j - 1]);
      if (one[j] + 1 < best) best = one[j] + 1;
      if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped && two[j - 2] + 1 < best) best = two[j - 2] + 1;
      now[j] = best;
    }
    int *spare = two;
    two = one;
    one = now;
    now = spare;
  }
  return one[m];
}

const char *cli_closest(const char *word, const char *(*name)(int i, const void *of), const void *of) {
  const char *best = NULL, *at;
  int least = strlen(word) > 4 ? FAR : FAR - 1; /* a short word must match more closely */
  for (int i = 0; (at = name(i, of)); i++) {
    int d = distance(word, at);
    if (!strncmp(word, at, strlen(word)) && strlen(word) > 2) d = 1;
    if (d < least) {
      least = d;
      best = at;
    }
  }
  return best;
}

static const char *option_name(int i, const void *of) {
  const CliCommand *c = of;
  return i < c->noptions ? c->options[i].name : i == c->noptions ? "help" : NULL;
}

static const char *listed_name(int i, const void *of) { return ((const CliCommand *)of)->listed(i); }

/* ---- reading */
static bool one_of(const char *text, const char *choices) {
  size_t n = strlen(text);
  for (const char *p = choices; p; p = strchr(p, '|') ? strchr(p, '|') + 1 : NULL)
    if (!strncmp(p, text, n) && (p[n] == '|' || !p[n])) return true;
  return false;
}

static bool real(const char *text, double lo, double hi, double *out) {
  char *end;
  errno = 0;
  double v = strtod(text, &end);
  if (end == text || *end || !(v >= lo && v <= hi)) return false;
  *out = v;
  return true;
}

static void bounds_put(char *to, size_t cap, const CliOption *o) {
  if (o->kind == CLI_TEXT)
    snprintf(to, cap, "one of %s", o->value);
  else
    snprintf(to, cap, o->kind == CLI_WHOLE ? "a whole number from %.0f to %.0f" : "a number from %g to %g",
             o->lo, o->hi);
}

static bool option_set(const CliOption *o, char *options, const char *value, int after) {
  char *at = options + o->offset;
  if (o->kind == CLI_WHOLE) return cli_whole(value, (int64_t)o->lo, (int64_t)o->hi, (int64_t *)at);
  if (o->kind == CLI_REAL) return real(value, o->lo, o->hi, (double *)at);
  if (strchr(o->value, '|') && !one_of(value, o->value)) return false;
  if (!o->many) {
    *(const char **)at = value;
    return true;
  }
  CliTexts *t = (CliTexts *)at;
  if (t->n == CLI_MANY) return false;
  t->after[t->n] = after;
  t->at[t->n++] = value;
  return true;
}

/* Reads --name value or --name=value. after: how many arguments stand before it. Returns how many words it
 * used; 0: refused. */
static int option_read(const CliCommand *c, char *options, int argc, char **argv, int after) {
  const char *word = argv[0] + 2;
  size_t n = strcspn(word, "=");
  const CliOption *o = NULL;
  for (int k = 0; k < c->noptions && !o; k++)
    if (strlen(c->options[k].name) == n && !strncmp(c->options[k].name, word, n)) o = &c->options[k];
  if (!o) {
    char name[LONGEST + 1];
    snprintf(name, sizeof name, "%.*s", (int)n, word);
    const char *meant = cli_closest(name, option_name, c);
    cli_refuse(0, c->name, meant ? "no option --%.*s; did you mean --%s?" : "no option --%.*s", (int)n, word,
               meant);
    return 0;
  }
  if (o->kind == CLI_FLAG) {
    if (word[n]) return cli_refuse(0, c->name, "--%s takes no value", o->name);
    *(bool *)(options + o->offset) = true;
    return 1;
  }
  const char *value = word[n] ? word + n + 1 : argc > 1 ? argv[1] : NULL;
  char bounds[160];
  bounds_put(bounds, sizeof bounds, o);
  if (!value) return cli_refuse(0, c->name, "--%s needs a value", o->name);
  if (!option_set(o, options, value, after))
    return cli_refuse(0, c->name, "--%s: '%s' is not %s", o->name, value, bounds);
  return word[n] ? 1 : 2;
}

static bool argument_fine(const CliCommand *c, const char *word) {
  if (!c->listed) return true;
  for (int i = 0; c->listed(i); i++)
    if (!strcmp(c->listed(i), word)) return true;
  const char *meant = cli_closest(word, listed_name, c);
  cli_refuse(0, c->name, meant ? "no '%s'; did you mean '%s'?" : "no '%s'", word, meant);
  return false;
}

static const char *running = "";

const char *cli_running(void) { return running; }

int cli_run(const CliCommand *c, int argc, char **argv) {
  char *options = calloc(1, c->nbytes + 1);
  char **argument = calloc((size_t)argc + 1, sizeof *argument);
  int n = 0, rc = -1;
  char short_out[] = "--out", short_ranks[] = "--ranks";
  bool plain = false; /* after -- */
  if (!options || !argument) rc = cli_refuse(CLI_FAILED, c->name, "out of memory");
  if (options && c->defaults) memcpy(options, c->defaults, c->nbytes);
  for (int i = 0; i < argc && rc < 0;) {
    const char *word = argv[i];
    if (!plain && !strcmp(word, "-o")) argv[i] = short_out, word = short_out; /* -o, as compilers have it */
    if (c->program && !plain && !strcmp(word, "-n"))
      argv[i] = short_ranks, word = short_ranks; /* -n, as mpirun has it */
    bool dashed = !plain && word[0] == '-' && word[1];
    if (dashed && (!strcmp(word, "--help") || !strcmp(word, "-h"))) {
      cli_help(stdout, c);
      rc = CLI_OK;
    } else if (dashed && !strcmp(word, "--")) {
      plain = true;
      i++;
    } else if (dashed && word[1] == '-') {
      int took = option_read(c, options, argc - i, argv + i, n);
      if (!took) rc = CLI_USAGE;
      i += took;
    } else if (dashed) {
      rc = cli_refuse(CLI_USAGE, c->name, "no option %s", word);
    } else {
      argument[n++] = argv[i++];
      plain = plain || c->program;
      if (!argument_fine(c, word)) rc = CLI_USAGE;
    }
  }
  if (rc < 0 && n < c->least) rc = cli_refuse(CLI_USAGE, c->name, "%s is missing", c->arguments);
  if (rc < 0 && c->most >= 0 && n > c->most)
    rc = cli_refuse(CLI_USAGE, c->name, "'%s' is one argument too many", argument[c->most]);
  /* A wrong option may be meant for the program. */
  bool program = !c->program && n && strstr(c->arguments, "PROGRAM");
  if (rc == CLI_USAGE && program)
    fprintf(stderr, "options of the program follow --: tg %s -- %s ..\n", c->name, argument[0]);
  if (rc == CLI_USAGE) fprintf(stderr, "try: tg help %s\n", c->name);
  running = c->name;
  if (rc < 0) {
    HubNames names = {.n = 0};
    rc = hub_names(c, options, argument, n, &names);
    if (rc == CLI_OK) rc = c->run(options, argument, n);
    hub_names_free(&names);
  }
  free(options), free(argument);
  return rc;
}

/* ---- help */
static void wrapped(FILE *to, const char *text, int indent, int columns) {
  int room = columns - indent > 20 ? columns - indent : 20, used = 0;
  while (*text) {
    if (*text == '\n') {
      fprintf(to, "\n%*s", indent, "");
      used = 0;
      text++;
      continue;
    }
    int n = (int)strcspn(text, " \n");
    if (used && used + 1 + n > room) {
      fprintf(to, "\n%*s", indent, "");
      used = 0;
    }
    fprintf(to, used ? " %.*s" : "%.*s", n, text);
    used += n + (used > 0);
    text += n;
    while (*text == ' ')
      text++;
  }
  fputc('\n', to);
}

static void option_put(char *to, size_t cap, const CliOption *o) {
  snprintf(to, cap, o->kind == CLI_FLAG ? "--%s" : "--%s %s", o->name, o->value);
}

static void listed_put(FILE *to, const CliCommand *c, int columns) {
  char text[4096] = "one of:";
  size_t n = strlen(text);
  for (int i = 0; c->listed(i) && n < sizeof text - LONGEST; i++)
    n += (size_t)snprintf(text + n, sizeof text - n, " %s", c->listed(i));
  wrapped(to, text, 0, columns);
}

/* Ends the help of each command that takes models. */
static const char models_help[] = "A model is a gguf file, a folder in Hugging Face's form, or a name, "
                                  "hf:OWNER/REPO[:QUANT], whose files are "
                                  "downloaded if they are not here (tg help fetch).";

static void command_help(FILE *to, const CliCommand *c, int columns) {
  fprintf(to, "usage: tg %s%s%s%s\n", c->name, c->noptions ? " [options]" : "", *c->arguments ? " " : "",
          c->arguments);
  wrapped(to, c->summary, 0, columns);
  int wide = 0;
  for (int k = 0; k < c->noptions; k++) {
    char text[160];
    option_put(text, sizeof text, &c->options[k]);
    int n = (int)strlen(text);
    if (n > wide && n <= 26) wide = n;
  }
  for (int k = 0; k < c->noptions; k++) {
    char text[160];
    option_put(text, sizeof text, &c->options[k]);
    bool apart = (int)strlen(text) > wide || columns < 60;
    fprintf(to, "  %-*s", wide, text);
    if (apart) fprintf(to, "\n%6s", "");
    fputs(apart ? "" : "  ", to);
    wrapped(to, c->options[k].help, apart ? 6 : wide + 4, columns);
  }
  if (c->more) wrapped(to, c->more, 0, columns);
  if (c->models) wrapped(to, models_help, 0, columns);
  if (c->listed) listed_put(to, c, columns);
}

void cli_help(FILE *to, const CliCommand *c) {
  int columns = cli_columns(fileno(to)), wide = 0;
  if (c) {
    command_help(to, c, columns);
    return;
  }
  fprintf(to, "tg %s: a deep-learning compiler\nusage: tg COMMAND [options]\n", tg_version());
  for (int i = 0; (c = cli_command(i)); i++)
    if ((int)strlen(c->name) > wide) wide = (int)strlen(c->name);
  for (int i = 0; (c = cli_command(i)); i++) {
    fprintf(to, "  %-*s  ", wide, c->name);
    wrapped(to, c->summary, wide + 4, columns);
  }
  wrapped(to, "tg help COMMAND tells a command's options. The device is $TG_DEV, else the best one present.",
          0, columns);
}

/* ---- completion. The words of each command are its options, their allowed values and its arguments. */
static void words_put(const CliCommand *c) {
  for (int k = 0; k < c->noptions; k++)
    printf("%s--%s", k ? " " : "", c->options[k].name);
  printf("%s--help", c->noptions ? " " : "");
  for (int i = 0; c->listed && c->listed(i); i++)
    printf(" %s", c->listed(i));
}

static void bash_put(void) {
  puts("# bash completion for tg: source it, or put it where bash-completion looks\n_tg() {\n"
       "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words\n"
       "  case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in");
  for (int two = 1; two >= 0; two--) {
    const CliCommand *c;
    for (int i = 0; (c = cli_command(i)); i++) {
      if ((strchr(c->name, ' ') != NULL) != two) continue;
      printf("    \"%s%s) words='", c->name, two ? "\"" : " \"*");
      words_put(c);
      printf("' ;;\n");
    }
  }
  printf("    *) words='");
  const CliCommand *c;
  for (int i = 0; (c = cli_command(i)); i++)
    printf("%s%.*s", i ? " " : "", (int)strcspn(c->name, " "), c->name);
  puts("' ;;\n  esac\n  case \"$before\" in");
  for (int i = 0; (c = cli_command(i)); i++)
    for (int k = 0; k < c->noptions; k++) {
      const char *v = c->options[k].value;
      if (c->options[k].kind != CLI_TEXT || !strchr(v, '|')) continue;
      printf("    --%s) words='", c->options[k].name);
      for (; *v; v++)
        putchar(*v == '|' ? ' ' : *v);
      puts("' ;;");
    }
  puts("  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$word\") $(compgen -f -- \"$word\"))\n}\n"
       "complete -o filenames -F _tg tg");
}

static void quoted(const char *text, const char *specials) {
  for (; *text; text++) {
    if (*text == '\'')
      fputs("'\\''", stdout);
    else {
      if (strchr(specials, *text)) putchar('\\');
      putchar(*text);
    }
  }
}

static void zsh_put(void) {
  const CliCommand *c;
  puts("#compdef tg\n# zsh completion for tg\n_tg() {\n  local -a commands\n  commands=(");
  for (int i = 0; (c = cli_command(i)); i++) {
    printf("    '%.*s:", (int)strcspn(c->name, " "), c->name);
    quoted(c->summary, ":");
    puts("'");
  }
  puts("  )\n  if (( CURRENT == 2 )); then _describe command commands; return; fi\n  case \"$words[2]\" in");
  for (int i = 0; (c = cli_command(i)); i++) {
    if (strchr(c->name, ' ')) continue;
    printf("    %s) _arguments", c->name);
    for (int k = 0; k < c->noptions; k++) {
      printf(" '--%s[", c->options[k].name);
      quoted(c->options[k].help, "[]");
      printf(c->options[k].kind == CLI_FLAG ? "]'" : "]:%s:'", c->options[k].value);
    }
    puts(" '*:file:_files' ;;");
  }
  printf("    *) compadd -- ");
  for (int i = 0; (c = cli_command(i)); i++)
    if (strchr(c->name, ' ')) printf(" %s", strchr(c->name, ' ') + 1), words_put(c);
  puts(" ;;\n  esac\n}\n_tg \"$@\"");
}

static void fish_put(void) {
  const CliCommand *c;
  puts("# fish completion for tg");
  for (int i = 0; (c = cli_command(i)); i++) {
    int first = (int)strcspn(c->name, " ");
    printf("complete -c tg -n __fish_use_subcommand -a %.*s -d '", first, c->name);
    quoted(c->summary, "\\");
    puts("'");
    for (int k = 0; k < c->noptions; k++) {
      printf("complete -c tg -n '__fish_seen_subcommand_from %.*s' -l %s%s -d '", first, c->name,
             c->options[k].name, c->options[k].kind == CLI_FLAG ? "" : " -r");
      quoted(c->options[k].help, "\\");
      puts("'");
    }
  }
}

static void json_texts(const char *names, char between) { /* writes "a|b" as ["a","b"] */
  putchar('[');
  for (const char *p = names; *p;) {
    char word[64];
    int n = (int)strcspn(p, (char[]){between, 0});
    snprintf(word, sizeof word, "%.*s", n, p);
    if (p != names) putchar(',');
    cli_json_text(stdout, word);
    p += n + (p[n] != 0);
  }
  putchar(']');
}

void cli_completion_json(void) {
  const CliCommand *c;
  for (int i = 0; (c = cli_command(i)); i++) {
    printf("{\"command\":"), json_texts(c->name, ' ');
    printf(",\"options\":[");
    for (int k = 0; k < c->noptions; k++)
      printf("\"--%s\",", c->options[k].name);
    printf("\"--help\"],\"values\":{");
    int listed = 0;
    for (int k = 0; k < c->noptions; k++) {
      const char *v = c->options[k].value;
      if (c->options[k].kind != CLI_TEXT || !strchr(v, '|')) continue;
      printf("%s\"--%s\":", listed++ ? "," : "", c->options[k].name);
      json_texts(v, '|');
    }
    printf("},\"arguments\":[");
    for (int k = 0; c->listed && c->listed(k); k++) {
      if (k) putchar(',');
      cli_json_text(stdout, c->listed(k));
    }
    puts("]}");
  }
}

int cli_completion(const char *shell) {
  if (!strcmp(shell, "bash"))
    bash_put();
  else if (!strcmp(shell, "zsh"))
    zsh_put();
  else if (!strcmp(shell, "fish"))
    fish_put();
  else
    return CLI_USAGE;
  return CLI_OK;
}

/* ---- man pages, written with the macros of man(7) */
static void roff(const char *text) {
  bool start = true;
  for (; *text; text++) {
    if (start && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
    if (*text == '\\')
      fputs("\\e", stdout);
    else if (*text == '-')
      fputs("\\-", stdout);
    else
      putchar(*text);
    start = *text == '\n';
  }
  putchar('\n');
}

static void manual_of(const CliCommand *c) {
  printf(".SS tg %s\n", c->name);
  printf(".B tg %s\n%s", c->name, c->noptions ? "[options]\n" : "");
  if (*c->arguments) roff(c->arguments);
  puts(".PP");
  roff(c->summary);
  for (int k = 0; k < c->noptions; k++) {
    char text[160];
    option_put(text, sizeof text, &c->options[k]);
    puts(".TP");
    fputs(".B ", stdout), roff(text);
    roff(c->options[k].help);
  }
  if (c->more) puts(".PP"), roff(c->more);
  if (c->models) puts(".PP"), roff(models_help);
}

static void manual_head(const CliCommand *c) { /* the page of `tg bench ops` is called tg-bench-ops */
  char page[LONGEST + 1];
  snprintf(page, sizeof page, "tg%s%s", c ? " " : "", c ? c->name : "");
  for (char *p = page; *p; p++)
    if (*p == ' ') *p = '-';
  printf(".TH ");
  for (const char *p = page; *p; p++)
    putchar(toupper((unsigned char)*p));
  printf(" 1 \"\" \"tinygrad-c %s\"\n.SH NAME\n", tg_version());
  for (const char *p = page; *p; p++)
    fputs(*p == '-' ? "\\-" : (char[]){*p, 0}, stdout);
  fputs(" \\- ", stdout);
  roff(c ? c->summary : "a deep-learning compiler: train, run and look inside");
}

void cli_manual(const CliCommand *c) {
  manual_head(c);
  puts(c ? ".SH DESCRIPTION" : ".SH SYNOPSIS\n.B tg\nCOMMAND [options]\n.SH COMMANDS");
  if (c)
    manual_of(c);
  else
    for (int i = 0; (c = cli_command(i)); i++)
      manual_of(c);
  puts(".SH EXIT STATUS\n0 done, 1 failed, 2 wrong use, 130 interrupted.\n.SH ENVIRONMENT\n.TP\n.B TG_DEV\n"
       "The device: CPU, CUDA, METAL, INTERP; tg devices lists them.\n.TP\n.B NO_COLOR\nNo colours.\n.TP\n.B "
       "COLUMNS\n"
       "The width of the screen where it is no terminal.\n.TP\n.B TG_MODELS\nThe folder of models by "
       "name.\n.TP\n.B HF_TOKEN, HF_ENDPOINT\nWhat opens them, and where they come from (tg help fetch). tg "
       "info lists the rest.");
}

static const char *const kind_names[] = {"flag", "whole", "real", "text"};

static void option_json(const CliOption *o) {
  printf("{\"option\":"), cli_json_text(stdout, o->name);
  printf(",\"kind\":\"%s\"", kind_names[o->kind]);
  if (o->value) printf(",\"value\":"), cli_json_text(stdout, o->value);
  if (o->kind == CLI_WHOLE) printf(",\"least\":%.0f,\"most\":%.0f", o->lo, o->hi);
  if (o->many) printf(",\"many\":true");
  printf(",\"help\":"), cli_json_text(stdout, o->help), putchar('}');
}

static void command_json(const CliCommand *c) {
  printf("{\"command\":"), cli_json_text(stdout, c->name);
  printf(",\"summary\":"), cli_json_text(stdout, c->summary);
  printf(",\"arguments\":"), cli_json_text(stdout, c->arguments);
  printf(",\"options\":[");
  for (int k = 0; k < c->noptions; k++) {
    if (k) putchar(',');
    option_json(&c->options[k]);
  }
  putchar(']');
  if (c->more) printf(",\"more\":"), cli_json_text(stdout, c->more);
  puts("}");
}

void cli_manual_json(const CliCommand *c) {
  if (c)
    command_json(c);
  else
    for (int i = 0; (c = cli_command(i)); i++)
      command_json(c);
}
