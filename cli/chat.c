/* chat.c: `tg chat`: a conversation with a language model. In: a gguf file, lines of a terminal or a pipe.
 * Out: replies as they come. The file's own template makes a prompt of the messages; a file without one goes
 * on with the text. Ctrl-C ends a reply; at the prompt a second one leaves. */
#define _DEFAULT_SOURCE
#include "llm.h"
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef TG_HAVE_EDIT
#include <histedit.h>
#include <langinfo.h>
#endif
#ifdef TG_HAVE_JANSSON
#include <jansson.h>
#endif

typedef struct ChatOptions {
  LlmChoices llm;
  const char *system;
  bool plain;
} ChatOptions;

#define NO_TEXT "a 0 byte, which no message has"

typedef struct Chat {
  LlmSession s;
  TgTemplate *template_; /* NULL: the text goes on */
  TgMessage *message;    /* both of their texts are ours */
  size_t n, cap;
  char *reply;
  size_t reply_n, reply_cap;
  char *line;
  size_t line_cap;
#ifdef TG_HAVE_EDIT
  EditLine *edit; /* NULL: lines are read as they come */
  History *history;
#endif
} Chat;

/* ---- messages */
static bool message_put(Chat *c, const char *role, const char *content) {
  if (c->n == c->cap) {
    size_t cap = 2 * c->cap + 16;
    TgMessage *m = realloc(c->message, cap * sizeof *m);
    if (!m) return false;
    c->message = m;
    c->cap = cap;
  }
  TgMessage m = {strdup(role), strdup(content)};
  c->message[c->n++] = m;
  return m.role && m.content;
}

static void message_drop(Chat *c) {
  TgMessage *m = &c->message[--c->n];
  free((char *)(uintptr_t)m->role);
  free((char *)(uintptr_t)m->content);
}

static void messages_clear(Chat *c) {
  while (c->n)
    message_drop(c);
}

/* The system's message is the first. */
static bool system_set(Chat *c, const char *text) {
  messages_clear(c);
  return !*text || message_put(c, "system", text);
}

/* ---- a turn */
static void piece(const char *text, size_t n, void *user) {
  Chat *c = user;
  llm_print(&c->s, text, n);
  if (c->reply_n + n + 1 > c->reply_cap) {
    size_t cap = 2 * (c->reply_n + n) + 256;
    char *grown = realloc(c->reply, cap);
    if (!grown) return;
    c->reply = grown;
    c->reply_cap = cap;
  }
  memcpy(c->reply + c->reply_n, text, n);
  c->reply_n += n;
  c->reply[c->reply_n] = 0;
}

/* What the model is given, to be freed: by the template, or the messages one after the other. */
static char *prompt_of(Chat *c, size_t *n) {
  if (c->template_) {
    const char *text = tg_template_chat(c->template_, c->s.tokenizer, c->message, c->n, n);
    char *copy = text ? malloc(*n + 1) : NULL;
    if (copy) memcpy(copy, text, *n + 1);
    return copy;
  }
  *n = 0;
  for (size_t i = 0; i < c->n; i++)
    *n += strlen(c->message[i].content);
  char *all = calloc(*n + 1, 1), *at = all;
  for (size_t i = 0; all && i < c->n; i++)
    at = stpcpy(at, c->message[i].content);
  return all;
}

/* A line of the user, and the reply to it. What fails leaves the conversation as it was. */
static bool turn(Chat *c, const char *line) {
  size_t n = 0;
  bool ok = message_put(c, "user", line);
  char *prompt = ok ? prompt_of(c, &n) : NULL;
  c->reply_n = 0;
  ok = prompt && llm_reply(&c->s, prompt, n, c->template_ != NULL, piece, c);
  free(prompt);
  putchar('\n');
  fflush(stdout);
  if (!ok) {
    bool full = tg_error(c->s.ctx) == TG_ERR_LIMIT;
    if (c->n) message_drop(c);
    cli_fail(c->s.ctx, "chat");
    if (full && c->n) fputs("/clear begins anew; tg chat --context N has room for more\n", stderr);
    tg_clear_error(c->s.ctx);
    return false;
  }
  return message_put(c, "assistant", c->reply_n ? c->reply : "");
}

/* ---- files of conversations: {"messages": [{"role": .., "content": ..}, ..]} */
static void save(const Chat *c, const char *path) {
  FILE *f = fopen(path, "w");
  if (f) {
    fputs("{\"messages\": [", f);
    for (size_t i = 0; i < c->n; i++) {
      fputs(i ? ",\n  {\"role\": " : "\n  {\"role\": ", f);
      cli_json_text(f, c->message[i].role);
      fputs(", \"content\": ", f);
      cli_json_text(f, c->message[i].content);
      fputs("}", f);
    }
    fputs("\n]}\n", f);
  }
  bool bad = !f || ferror(f);
  if (f && fclose(f)) bad = true;
  if (bad)
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
  else
    fprintf(stderr, "%zu messages in %s\n", c->n, path);
}

#ifdef TG_HAVE_JANSSON
static void load(Chat *c, const char *path) {
  json_error_t e;
  json_t *all = json_load_file(path, 0, &e), *list = json_object_get(all, "messages"), *m;
  size_t i;
  bool ok = json_is_array(list);
  json_array_foreach(list, i, m) ok =
      ok && json_is_string(json_object_get(m, "role")) && json_is_string(json_object_get(m, "content"));
  if (ok) {
    messages_clear(c);
    json_array_foreach(list, i, m) message_put(c, json_string_value(json_object_get(m, "role")),
                                               json_string_value(json_object_get(m, "content")));
    fprintf(stderr, "%zu messages of %s\n", c->n, path);
  } else
    fprintf(stderr, "%s: %s\n", path, all ? "no list of messages" : e.text);
  json_decref(all);
}
#else
static void load(Chat *c, const char *path) {
  (void)c;
  fprintf(stderr, "%s: this build reads no JSON (jansson)\n", path);
}
#endif

/* ---- commands */
static void say_help(Chat *c, const char *rest) {
  (void)c, (void)rest;
  fputs("/system TEXT   begin anew, with this for the system\n"
        "/clear         begin anew\n"
        "/save FILE     keep the conversation\n"
        "/load FILE     go on with one\n"
        "/seed N        of the next replies\n"
        "/stats         what the last reply took\n"
        "/bye           leave; Ctrl-D and a second Ctrl-C too\n",
        stderr);
}

static void say_stats(Chat *c, const char *rest) {
  char bytes[32], cache[32];
  (void)rest;
  llm_rates_say(&c->s, stderr, false);
  fprintf(stderr, "%lld tokens of the prompt were in the cache; cache %s, memory at most %s\n",
          (long long)c->s.rates.kept, cli_bytes((double)tg_llm_about(c->s.m).cache_bytes, cache),
          cli_bytes((double)tg_counters(c->s.ctx).peak_bytes, bytes));
}

static void do_system(Chat *c, const char *rest) { system_set(c, rest); }

static void do_clear(Chat *c, const char *rest) {
  (void)rest;
  messages_clear(c);
}

static void do_save(Chat *c, const char *rest) { save(c, rest); }

static void do_load(Chat *c, const char *rest) { load(c, rest); }

static void do_seed(Chat *c, const char *rest) {
  int64_t seed;
  if (cli_whole(rest, 0, INT64_MAX, &seed))
    c->s.seed = (uint64_t)seed;
  else
    fprintf(stderr, "/seed takes a whole number\n");
}

static const struct {
  const char *name;
  void (*run)(Chat *c, const char *rest);
  bool needs; /* something behind it */
} commands[] = {{"/help", say_help, false},  {"/system", do_system, true}, {"/clear", do_clear, false},
                {"/save", do_save, true},    {"/load", do_load, true},     {"/seed", do_seed, true},
                {"/stats", say_stats, false}};

static void command(Chat *c, const char *line) {
  size_t n = strcspn(line, " ");
  const char *rest = line + n + strspn(line + n, " ");
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    if (strlen(commands[i].name) != n || strncmp(commands[i].name, line, n)) continue;
    if (commands[i].needs && !*rest)
      fprintf(stderr, "%s: what?\n", commands[i].name);
    else
      commands[i].run(c, rest);
    return;
  }
  fprintf(stderr, "no command %.*s; /help lists them\n", (int)n, line);
}

/* ---- lines */
#ifdef TG_HAVE_EDIT
static char *edit_prompt(EditLine *e) {
  static char text[] = ">>> ";
  (void)e;
  return text;
}

/* The editor leaves out what is no character of the locale, so it wants one of UTF-8. */
static bool locale_begin(void) {
  static const char *const names[] = {"", "C.UTF-8", "en_US.UTF-8"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (setlocale(LC_CTYPE, names[i]) && !strcmp(nl_langinfo(CODESET), "UTF-8")) return true;
  setlocale(LC_CTYPE, "C");
  return false;
}

static void lines_end(Chat *c) {
  if (c->history) history_end(c->history);
  if (c->edit) el_end(c->edit);
  c->history = NULL;
  c->edit = NULL;
}

static void lines_begin(Chat *c) {
  HistEvent event;
  if (!locale_begin()) return;
  c->edit = el_init("tg", stdin, stdout, stderr);
  c->history = history_init();
  if (!c->edit || !c->history) {
    lines_end(c);
    return;
  }
  history(c->history, &event, H_SETSIZE, 500);
  el_set(c->edit, EL_PROMPT, edit_prompt);
  el_set(c->edit, EL_EDITOR, "emacs");
  el_set(c->edit, EL_HIST, history, c->history);
}

static bool line_edited(Chat *c, size_t *n) {
  int count = 0;
  HistEvent event;
  const char *line = el_gets(c->edit, &count);
  if (!line || count <= 0) return false;
  if (count > 1) history(c->history, &event, H_ENTER, line);
  free(c->line);
  c->line = strdup(line);
  *n = (size_t)count;
  return c->line != NULL;
}
#else
static void lines_begin(Chat *c) { (void)c; }

static void lines_end(Chat *c) { (void)c; }
#endif

static bool line_plain(Chat *c, size_t *n) {
  fputs(">>> ", stdout);
  fflush(stdout);
  ssize_t count = getline(&c->line, &c->line_cap, stdin);
  if (count < 0) clearerr(stdin);
  *n = count < 0 ? 0 : (size_t)count;
  return count > 0;
}

/* Into c->line, n bytes. */
static bool line_read(Chat *c, size_t *n) {
#ifdef TG_HAVE_EDIT
  if (c->edit) return line_edited(c, n);
#endif
  return line_plain(c, n);
}

/* The next line, its newline taken off. NULL: the user leaves. The first Ctrl-C at the prompt only says how.
 */
static const char *next_line(Chat *c) {
  for (;;) {
    size_t n = 0;
    llm_interrupts_reset(&c->s);
    for (int before = 0; !line_read(c, &n); before = llm_interrupts()) {
      if (llm_interrupts() == before || before) return NULL;
      fputs("\n(another Ctrl-C leaves)\n", stderr);
    }
    char *line = c->line;
    if (memchr(line, 0, n)) {
      fputs(NO_TEXT "\n", stderr);
      continue;
    }
    line[strcspn(line, "\r\n")] = 0;
    if (!*line) continue;
    bool leaves = !strcmp(line, "/bye") || !strcmp(line, "/exit") || !strcmp(line, "/quit");
    if (leaves) llm_interrupts_reset(&c->s); /* an earlier Ctrl-C is not why */
    if (leaves) return NULL;
    if (*line != '/') return line;
    command(c, line);
  }
}

static int talk(Chat *c) {
  lines_begin(c);
  llm_catch_interrupt(SIGINT);
  for (const char *line; (line = next_line(c));) {
    llm_interrupts_reset(&c->s);
    if (turn(c, line)) llm_rates_say(&c->s, stderr, cli_colour(2));
  }
  lines_end(c);
  return llm_interrupts() ? CLI_INTERRUPTED : CLI_OK;
}

/* A pipe: all of it is one message, and the reply alone goes to stdout. */
static int answer(Chat *c) {
  size_t n = 0;
  char *all = cli_read(stdin, &n);
  if (!all) return cli_refuse(CLI_FAILED, "chat", "stdin: %s", strerror(errno));
  if (memchr(all, 0, n)) {
    free(all);
    return cli_refuse(CLI_FAILED, "chat", "stdin: " NO_TEXT);
  }
  if (n && all[n - 1] == '\n') all[n - 1] = 0;
  llm_catch_interrupt(SIGINT);
  bool ok = turn(c, all);
  free(all);
  return !ok ? CLI_FAILED : c->s.stopped ? CLI_INTERRUPTED : CLI_OK;
}

static bool template_open(Chat *c, const ChatOptions *o) {
  const char *text = tg_llm_about(c->s.m).chat_template;
  if (o->plain || !text) return true;
  c->template_ = tg_template_new(c->s.ctx, text, strlen(text));
  return c->template_ != NULL;
}

static int run_chat(const void *options, char **argument, int n) {
  const ChatOptions *o = options;
  Chat c = {.n = 0};
  double begin = cli_now();
  (void)n;
  int wrong = llm_choices_refuse(&o->llm);
  if (wrong) return wrong;
  if (!llm_session_open(&c.s, argument[0], &o->llm, 1, 0)) return CLI_FAILED;
  if (!llm_session_generates(&c.s, argument[0])) return llm_session_close(&c.s), CLI_FAILED;
  bool live = isatty(0) && isatty(1);
  int rc = CLI_FAILED;
  if (live) llm_session_say(&c.s, argument[0], cli_now() - begin);
  if (!template_open(&c, o))
    cli_fail(c.s.ctx, "chat");
  else if (o->system && !system_set(&c, o->system))
    cli_refuse(0, "chat", "out of memory");
  else
    rc = live ? talk(&c) : answer(&c);
  messages_clear(&c);
  free(c.message), free(c.reply), free(c.line);
  tg_template_free(c.template_);
  llm_session_close(&c.s);
  return rc;
}

static const ChatOptions defaults = {.llm = LLM_USUAL};

static const CliOption options[] = {
    CLI_TEXT_OF(ChatOptions, system, "system", "TEXT", "what the system says first"),
    CLI_FLAG_OF(ChatOptions, plain, "plain", "without the file's template: the text goes on"),
    LLM_OPTIONS_OF(ChatOptions, llm)};

const CliCommand command_chat = {
    .name = "chat",
    .summary = "talk with a language model of a gguf file, or of a folder with config.json",
    .arguments = "FILE.gguf",
    .least = 1,
    .most = 1,
    CLI_TAKES(ChatOptions, options),
    .defaults = &defaults,
    .run = run_chat,
    .more = "The file has all that is needed: weights, vocabulary and the "
            "template that makes a prompt of messages; "
            "a file without a template goes on with the text. /help lists what "
            "can be done between messages. Ctrl-C "
            "ends a reply.\n"
            "Where stdin or stdout is no terminal, all of stdin is one message, "
            "and stdout gets the reply alone."};
