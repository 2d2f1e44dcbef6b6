/* serve.h: what the files of `tg serve` share. HTTP runs in a thread of its own (serve_http.c), which reads
 * requests (serve_ask.c) and puts them into a queue. Models run in the main thread (serve.c), which alone
 * uses a context. A Job is used by both threads: its fields below "shared" need the server's lock. */
#ifndef TG_CLI_SERVE_H
#define TG_CLI_SERVE_H
#include "llm.h"
#include <jansson.h>
#include <pthread.h>

typedef struct ServeOptions {
  LlmChoices llm; /* defaults for what a request leaves out */
  const char *host, *key;
  int64_t port, slots, queue, batch; /* batch: 0: chosen to suit the model */
  CliTexts mmproj;                   /* each belongs to the model whose file stands before it */
  bool reuse;
} ServeOptions;

/* ---- requests */
typedef enum Route { ROUTE_CHAT, ROUTE_TEXT, ROUTE_EMBED, ROUTE_RANK } Route;

enum { MOST_CHOICES = 16, MOST_LOGPROBS = 20, MOST_INPUTS = 2048 };

/* A request. Texts and lists are parts of json, except the list of pictures. */
typedef struct Ask {
  Route route;
  json_t *json;
  const char *model; /* NULL: any model */
  json_t *messages, *tools;
  /* data: URIs, in the order of the messages' parts of type "image"; NULL: none */
  json_t *pictures;
  /* of completions and embeddings: texts, or lists of ids; of ranking: the documents */
  json_t *prompt;
  json_t *query;                  /* documents are ranked for it */
  int64_t best;                   /* the number of documents to return, at most */
  json_t *schema;                 /* a schema for the reply; NULL: none */
  const char *grammar;            /* a grammar for the reply; NULL: none */
  int64_t tokens, n, seed, top_k; /* n: choices for each prompt */
  double temperature, top_p, min_p, repeat, presence, frequency;
  CliTexts stop;
  /* -1: not wanted; otherwise how many of the likeliest tokens are listed as well */
  int64_t logprobs;
  int32_t *bias_ids;
  float *bias;
  int64_t nbias;
  bool stream, usage;
  bool base64; /* embeddings are written in base64 */
} Ask;

/* Returns false if the request cannot be done; `why` and `param` (which may be "") then tell what is
 * wrong. */
bool ask_read(Ask *a, Route route, const char *body, size_t n, const LlmChoices *usual, char why[200],
              char param[40]);
void ask_free(Ask *a);

/* ---- jobs */
struct MHD_Connection;

typedef struct Server Server;

typedef struct Job {
  Server *server;
  struct MHD_Connection *connection;
  struct Job *next; /* in the queue */
  char *body;
  size_t nbody, body_cap;
  bool begun, refused; /* its body is complete; its body is too long */
  Route route;
  Ask ask;
  int fd;

  /* shared: used only while the server's lock is held */
  int holders;                    /* how many of the two threads still use the job */
  bool queued, waits, gone, done; /* waits: its connection is suspended; gone: its connection has ended */
  int status;                     /* the HTTP status; 0: not known yet */
  char *out;
  size_t nout, out_cap, sent;
} Job;

void job_put(Job *j, const char *text, size_t n); /* appends to the reply */
void job_begin(Job *j, int status);               /* the status of a stream is known */
void job_end(Job *j, int status); /* the reply is complete; ends the caller's use of the job */
void job_fail(Job *j, int status, const char *type, const char *message);
bool job_gone(Job *j); /* whether the client has closed the connection */

/* ---- the server */
typedef struct Counts {
  int64_t requests, refused, failed, prompt_tokens, cached_tokens, tokens, guessed, right;
  double prompt_s, tokens_s;
} Counts;

struct Server {
  const ServeOptions *o;
  struct MHD_Daemon *daemon;
  json_t *names; /* the models, as /v1/models lists them */
  pthread_mutex_t lock;
  pthread_cond_t wake;
  Job *first, *last;            /* the queue */
  int64_t queued, active, open; /* requests that wait; that are being answered; whose connection is open */
  bool closing;
  Counts counts;
};

/* Sets *port to the port that it listens on. Returns false if it failed; the reason was printed. */
bool http_begin(Server *s, int *port);
void http_end(Server *s);
/* Takes the first job that `can` accepts out of the queue; NULL: there is none. */
Job *http_next(Server *s, bool (*can)(const Job *j, void *user), void *user);
/* Waits for a job, at most this long. */
void http_wait(Server *s, double seconds);

/* ---- serve_reply.c: writes a reply as OpenAI's JSON */
typedef struct Bytes {
  char *at; /* ended by a 0 byte; NULL: no bytes so far */
  size_t n, cap;
} Bytes;

typedef struct Answer {
  Job *j;
  const char *model;
  char id[48];
  int64_t created, choice, prompt, cached, made; /* made: tokens of all choices so far */
  json_t *choices;                               /* of a reply that is not a stream */
  json_t *logs;                                  /* logprobs of tokens that were not sent yet */
  Bytes text;                                    /* text of the current choice that was not sent yet */
  TgDetokenizer *spelling; /* writes single tokens, for the logprobs; NULL: not needed so far */
  int64_t characters;      /* in the current choice's tokens with logprobs */
  Bytes seen;              /* bytes of a character that the last token began */
  bool begun;              /* the current choice's first event was sent */
} Answer;

bool answer_begin(Answer *a, Job *j, const char *model, int64_t number);
void answer_text(Answer *a, const char *text, size_t n);
void answer_token(Answer *a, const TgTokenizer *t, int64_t id, const float *logits, int64_t vocabulary);
void answer_flush(Answer *a); /* of a stream: sends the text that is complete */
void answer_choice(Answer *a, LlmEnd end);
void answer_end(Answer *a);                               /* ends the job, too */
void answer_vector(Answer *a, const float *v, int64_t n); /* appends the next embedding */
void answer_score(Answer *a, double score);               /* appends the score of the next document */
void answer_free(Answer *a);                              /* for an answer that did not end */

/* Makes a JSON text of bytes that need not be UTF-8: bytes that form no character become U+FFFD. */
json_t *serve_text(const char *text, size_t n);

extern const unsigned char serve_page[]; /* the chat page: serve_page.html */
extern const size_t serve_page_bytes;
#endif
