/* chat.c: `tg chat`: a conversation with a language model. In: a gguf file, and lines from a terminal or a
 * pipe. Out: replies as they are made. The file's own template makes a prompt of the messages; without a
 * template the model continues the text. Ctrl-C ends a reply; at the prompt, a second Ctrl-C leaves. */
#define _DEFAULT_SOURCE
#include "sight.h"
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

enum { CHAT_PIXELS = 1 << 28 }; /* of a picture, at most */

#define NO_TEXT "a 0 byte, which no message has"

/* A picture, and the number of the message in which it is shown, before the text. uri: the file that it came
 * from, as a data: URI, which /save stores. */
typedef struct ChatPicture {
  Picture picture;
  char *uri;
  size_t message;
} ChatPicture;

typedef struct Chat {
  LlmSession s;
  TgTemplate *template_; /* NULL: the model continues the text */
  TgMessage *message;    /* this file owns both texts of each message */
  size_t n, cap;
  ChatPicture picture[LLM_PICTURES]; /* in the order of their messages */
  size_t npictures;
  char *reply;
  size_t reply_n, reply_cap;
  char *line;
  size_t line_cap;
#ifdef TG_HAVE_EDIT
  EditLine *edit; /* NULL: plain lines are read */
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

/* Drops the pictures of message n and of all messages after it. */
static void pictures_drop(Chat *c, size_t n) {
  while (c->npictures && c->picture[c->npictures - 1].message >= n) {
    ChatPicture *p = &c->picture[--c->npictures];
    free(p->picture.rgb), free(p->uri);
  }
}

static void message_drop(Chat *c) {
  TgMessage *m = &c->message[--c->n];
  free((char *)(uintptr_t)m->role);
  free((char *)(uintptr_t)m->content);
}

static void messages_clear(Chat *c) {
  while (c->n)
    message_drop(c);
  pictures_drop(c, 0);
}

/* Returns whether one more picture can be shown; if not, the reason was printed. */
static bool picture_fits(const Chat *c) {
  if (!c->s.sight.vision)
    return cli_refuse(0, "chat", "pictures want --mmproj FILE, the gguf file of what reads them");
  if (c->npictures < LLM_PICTURES) return true;
  return cli_refuse(0, "chat", "there are %d pictures, and no more can be: /clear begins anew", LLM_PICTURES);
}

/* Adds the picture of a data: URI, which it takes over, to message n, the last that has pictures. Returns
 * NULL, or the reason why not. */
static const char *picture_take(Chat *c, char *uri, size_t n) {
  ChatPicture *p = &c->picture[c->npictures];
  *p = (ChatPicture){.uri = uri, .message = n};
  const char *why = uri ? llm_sight_uri(uri, strlen(uri), CHAT_PIXELS, &p->picture) : "out of memory";
  if (why)
    free(uri);
  else
    c->npictures++;
  return why;
}

/* Reads a picture for the next message. Returns false if it failed; the reason was printed. */
static bool picture_put(Chat *c, const char *path) {
  size_t n = 0;
  if (!picture_fits(c)) return false;
  char *bytes = cli_read_file(path, &n);
  if (!bytes) return cli_refuse(0, "chat", "%s: %s", path, strerror(errno));
  const char *why = picture_take(c, llm_sight_uri_of(bytes, n), c->n);
  free(bytes);
  return !why || cli_refuse(0, "chat", "%s: %s", path, why);
}

/* Begins anew, with this text (if not empty) as the system's message, which is the first. */
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

/* Returns the prompt, to be freed: by the template, or the messages' texts one after another. */
static char *plain_prompt(Chat *c, size_t *n) {
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

/* Returns how many pictures message i has. */
static size_t pictures_of(const Chat *c, size_t i) {
  size_t n = 0;
  for (size_t k = 0; k < c->npictures; k++)
    n += c->picture[k].message == i;
  return n;
}

/* Writes a special token that the template may use, as a member of JSON. */
static void token_json(FILE *f, const Chat *c, const char *name, TgTokenRole role) {
  char text[200];
  size_t n = 0;
  const char *token = tg_token_text(c->s.tokenizer, tg_token_special(c->s.tokenizer, role), &n);
  snprintf(text, sizeof text, "%.*s", (int)(n < sizeof text ? n : 0), token ? token : "");
  fprintf(f, ", \"%s\": ", name);
  cli_json_text(f, text);
}

/* Writes the conversation as JSON for the template; each content is a list of parts. */
static void list_json(FILE *f, const Chat *c) {
  fputs("{\"messages\": [", f);
  for (size_t i = 0; i < c->n; i++) {
    char *text = llm_sight_text(&c->s, c->message[i].content, strlen(c->message[i].content));
    fputs(i ? ", {\"role\": " : "{\"role\": ", f);
    cli_json_text(f, c->message[i].role);
    fputs(", \"content\": [", f);
    for (size_t k = pictures_of(c, i); k; k--)
      fputs("{\"type\": \"image\"}, ", f);
    fputs("{\"type\": \"text\", \"text\": ", f);
    cli_json_text(f, text ? text : "");
    fputs("}]}", f);
    free(text);
  }
  fputs("], \"add_generation_prompt\": true", f);
  token_json(f, c, "bos_token", TG_TOKEN_BOS);
  token_json(f, c, "eos_token", TG_TOKEN_EOS);
  fputs("}", f);
}

static char *list_prompt(Chat *c, size_t *n) {
  char *json = NULL;
  size_t length;
  FILE *f = open_memstream(&json, &length);
  if (f) list_json(f, c);
  const char *text = f && !fclose(f) ? tg_template_render(c->template_, json, n) : NULL;
  char *copy = text ? malloc(*n + 1) : NULL;
  if (copy) memcpy(copy, text, *n + 1);
  free(json);
  return copy;
}

/* Returns the prompt with a mark for each picture, to be freed. */
static char *shown_prompt(Chat *c, size_t *n) {
  if (c->template_ && c->s.sight.lists) return list_prompt(c, n);
  TgMessage *all = c->message, *marked = calloc(c->n + 1, sizeof *marked);
  bool ok = marked != NULL;
  for (size_t i = 0; ok && i < c->n; i++) {
    const char *text = all[i].content;
    marked[i] = (TgMessage){all[i].role, llm_sight_message(&c->s, pictures_of(c, i), text, strlen(text))};
    ok = marked[i].content != NULL;
  }
  c->message = marked;
  char *prompt = ok ? plain_prompt(c, n) : NULL;
  c->message = all;
  for (size_t i = 0; marked && i < c->n; i++)
    free((char *)(uintptr_t)marked[i].content);
  free(marked);
  return prompt;
}

static bool answered(Chat *c) {
  size_t n = 0;
  LlmShown shown[LLM_PICTURES] = {{0}};
  for (size_t i = 0; i < c->npictures; i++)
    shown[i].picture = &c->picture[i].picture;
  char *prompt = c->s.sight.vision ? shown_prompt(c, &n) : plain_prompt(c, &n);
  bool ok = prompt && llm_reply(&c->s, prompt, n, c->template_ != NULL, shown, c->npictures, piece, c);
  free(prompt);
  return ok;
}

/* Adds a line of the user and the reply to it. If this fails, the conversation is as before. */
static bool turn(Chat *c, const char *line) {
  c->reply_n = 0;
  bool ok = message_put(c, "user", line) && answered(c);
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

/* ---- files of conversations: {"messages": [{"role": .., "content": ..}, ..]}. As in OpenAI's API, the content
 * of a message with pictures is a list of them and of the text. */
/* Writes the pictures of message i and the beginning of the text after them. */
static void save_pictures(FILE *f, const Chat *c, size_t i) {
  fputs("[", f);
  for (size_t k = 0; k < c->npictures; k++) {
    if (c->picture[k].message != i) continue;
    fputs("{\"type\": \"image_url\", \"image_url\": {\"url\": ", f);
    cli_json_text(f, c->picture[k].uri);
    fputs("}},\n    ", f);
  }
  fputs("{\"type\": \"text\", \"text\": ", f);
}

static void save(const Chat *c, const char *path) {
  FILE *f = fopen(path, "w");
  if (f) {
    fputs("{\"messages\": [", f);
    for (size_t i = 0; i < c->n; i++) {
      fputs(i ? ",\n  {\"role\": " : "\n  {\"role\": ", f);
      cli_json_text(f, c->message[i].role);
      fputs(", \"content\": ", f);
      bool shows = pictures_of(c, i) > 0;
      if (shows) save_pictures(f, c, i);
      cli_json_text(f, c->message[i].content);
      fputs(shows ? "}]}" : "}", f);
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
/* Adds a part of a message's content: a text or a picture. Returns NULL, or the reason why not. */
static const char *part_load(Chat *c, const json_t *part, FILE *text) {
  const json_t *said = json_object_get(part, "text"), *url = json_object_get(part, "image_url");
  if (json_is_object(url)) url = json_object_get(url, "url");
  if (json_is_string(said)) return fputs(json_string_value(said), text) < 0 ? "out of memory" : NULL;
  if (!json_is_string(url)) return "a content has a part that is neither a text nor a picture";
  if (!c->s.sight.vision)
    return "it has pictures, which want --mmproj FILE, the gguf file of what reads them";
  if (c->npictures == LLM_PICTURES) return "it has more pictures than a prompt can show";
  return picture_take(c, strdup(json_string_value(url)), c->n);
}

/* Adds a message. Returns NULL, or the reason why not. */
static const char *message_load(Chat *c, const json_t *m) {
  const json_t *role = json_object_get(m, "role"), *content = json_object_get(m, "content"), *part;
  const char *why = NULL;
  char *text = NULL;
  size_t i, n;
  if (!json_is_string(role) || (!json_is_string(content) && !json_is_array(content)))
    return "no list of messages, each with a role and a content";
  if (json_is_string(content))
    return message_put(c, json_string_value(role), json_string_value(content)) ? NULL : "out of memory";
  FILE *f = open_memstream(&text, &n);
  json_array_foreach(content, i, part) {
    if (f && !why) why = part_load(c, part, f);
  }
  if (!f || fclose(f) || (!why && !message_put(c, json_string_value(role), text))) why = "out of memory";
  free(text);
  return why;
}

/* Replaces the conversation by that of a file. If this fails, it is as before. */
static void load(Chat *c, const char *path) {
  json_error_t e;
  json_t *all = json_load_file(path, 0, &e), *list = json_object_get(all, "messages"), *m;
  const char *why = !all ? e.text : !json_is_array(list) ? "no list of messages" : NULL;
  size_t i;
  Chat before = *c;
  c->message = NULL;
  c->n = c->cap = c->npictures = 0;
  json_array_foreach(list, i, m) {
    if (!why) why = message_load(c, m);
  }
  Chat *other = why ? c : &before;
  messages_clear(other);
  free(other->message);
  if (why) {
    c->message = before.message;
    c->n = before.n;
    c->cap = before.cap;
    c->npictures = before.npictures;
    memcpy(c->picture, before.picture, sizeof c->picture);
    fprintf(stderr, "%s: %s\n", path, why);
  } else
    fprintf(stderr, "%zu messages of %s\n", c->n, path);
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
        "/picture FILE  shown with the next message\n"
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

static void picture_say(const Chat *c, const char *path, const Picture *p) {
  long long views = llm_sight_views(&c->s, p), each = tg_vision_tokens(c->s.sight.vision);
  fprintf(stderr, "%s: %d x %d pixels, ", path, p->width, p->height);
  if (views > 1) fprintf(stderr, "%lld tiles and the whole picture, ", views - 1);
  fprintf(stderr, "%lld tokens\n", views * each);
}

static void do_picture(Chat *c, const char *rest) {
  const ChatPicture *p = &c->picture[c->npictures];
  if (picture_put(c, rest)) picture_say(c, rest, &p->picture);
}

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
  bool needs; /* the command needs an argument */
} commands[] = {{"/help", say_help, false},   {"/system", do_system, true},  {"/clear", do_clear, false},
                {"/save", do_save, true},     {"/load", do_load, true},      {"/seed", do_seed, true},
                {"/stats", say_stats, false}, {"/picture", do_picture, true}};

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

/* The editor drops bytes that are no characters of the locale, so it needs one with UTF-8. */
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

/* Reads a line of n bytes into c->line. Returns false at the end of input or if interrupted. */
static bool line_read(Chat *c, size_t *n) {
#ifdef TG_HAVE_EDIT
  if (c->edit) return line_edited(c, n);
#endif
  return line_plain(c, n);
}

/* Returns the user's next line, without its newline; NULL: the user leaves. The first Ctrl-C at the prompt
 * only tells how to leave. */
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
    if (leaves) llm_interrupts_reset(&c->s); /* an earlier Ctrl-C is not the reason for leaving */
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

/* Answers a pipe: all of stdin is one message, and only the reply is written to stdout. */
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
  return c->template_ && llm_sight_template(&c->s, c->template_);
}

/* Reads the pictures of --picture, which are shown with the first message. */
static bool pictures_open(Chat *c, const ChatOptions *o) {
  for (int i = 0; i < o->llm.picture.n; i++)
    if (!picture_put(c, o->llm.picture.at[i])) return false;
  return true;
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
  else if (pictures_open(&c, o))
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
    LLM_PICTURE_OF(ChatOptions, llm), LLM_MMPROJ_OF(ChatOptions, llm), LLM_OPTIONS_OF(ChatOptions, llm)};

const CliCommand command_chat = {
    .name = "chat",
    .summary = "talk with a language model of a gguf file, or of a folder with config.json",
    .arguments = "FILE.gguf",
    .models = 1,
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
