"""Mutants by rule, of tools/mutate --rules: small changes of what the compiler reads as an operator, a guard, a return or a row of a table.

All that are drawn stand in one build, each behind a switch: where mutant 17 of `a < b` is on (TG_MUTANT=17), `a <= b` is asked instead. A
place that is passed marks itself, where it can be told only if the change makes a difference there; so one run of each test program says
which of its tests can notice a mutant at all, and each mutant is run with these alone: a test is what cmocka calls one, and the switch's
file stands between a program and cmocka. First come the short tests, the likeliest first; who survives them has the long ones, too.

Each result is a line of results.json in the folder of the copy as soon as it is known. An interrupted run goes on where it was, as long as
the folders that are drawn from stay as they are; a mutant that was noticed in the other build, with sanitizers or without, was noticed;
--again tries those again that were not, such as with tests that are new.
tools/mutants_equal has the mutants that change nothing that anyone could see, and says why; they are not run and do not count.

The extents of expressions come from libclang's Python bindings. What stands in macros, in constants (case labels, sizes of arrays, static
initialisers that are no rows) or in headers is no candidate. Of what no test notices the file is compiled without and with the change, and
where the compiler writes the same code the mutant does not count."""
import concurrent.futures, functools, hashlib, json, os, random, re, shlex, shutil, subprocess, tempfile, time
from dataclasses import dataclass
from mutating import ROOT, Copy, allowed, chosen, failed_test, likeliest_first

try:
    import clang.cindex as cindex
    from clang.cindex import CursorKind as K
except ImportError:
    cindex = None

MISSING = "mutate: --rules needs libclang's Python bindings (pip install libclang), which this python3 lacks"
SWITCH_H = """#ifndef TG_MUTANTS_H
#define TG_MUTANTS_H
extern int tg_mutant;                /* the one that is on */
extern unsigned char *tg_mutants;    /* which were reached */
static inline int tg_mutant_on(int n) { return tg_mutants[n] = 1, tg_mutant == n; }
static inline int tg_mutant_or(int n, int was, int is) {
  if (was != is) tg_mutants[n] = 1;
  return tg_mutant == n ? is : was;
}
#endif
"""
SWITCH_C = """#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
enum { N = %d, ROWS = 512 };
typedef int Fixture(void **state);
typedef struct { const char *name; void (*run)(void **state); Fixture *setup, *teardown; void *initial; } Test;   /* CMUnitTest */
extern int __real__cmocka_run_group_tests(const char *, const Test *, size_t, Fixture *, Fixture *) __attribute__((weak));
static unsigned char here[N], *all = here;
int tg_mutant = -1;
unsigned char *tg_mutants = here;
static const Test *mine[ROWS];         /* the tests that run, and the row of each */
static int row[ROWS], nrows, at;
static double began;
static void row_use(int r) { if (all != here && r < ROWS) tg_mutants = all + (size_t)r * N; }
/* A file that all processes of a test share, a row for each test: marks of one that dies, or is a child, are kept. */
__attribute__((constructor)) static void mutants_begin(void) {
  const char *on = getenv("TG_MUTANT"), *to = getenv("TG_REACHED"), *r = getenv("TG_ROW");
  int fd = to ? open(to, O_RDWR) : -1;
  void *p = fd >= 0 ? mmap(NULL, (size_t)N * ROWS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  if (p != MAP_FAILED) tg_mutants = all = p;
  if (fd >= 0) close(fd);
  if (on) tg_mutant = atoi(on);
  if (r) row_use(atoi(r));
}
static double now(void) {
  struct timespec t;
  return clock_gettime(CLOCK_MONOTONIC, &t), t.tv_sec + 1e-9 * t.tv_nsec;
}
static int begin(void **state) {
  char text[16];
  if (all != here) snprintf(text, sizeof text, "%%d", row[at]), setenv("TG_ROW", text, 1);
  row_use(row[at]), began = now();
  int rc = mine[at]->setup ? mine[at]->setup(state) : 0;
  return rc ? at++, rc : 0;
}
static int finish(void **state) {
  int rc = mine[at]->teardown ? mine[at]->teardown(state) : 0;
  char path[4096];
  FILE *f = NULL;
  if (all != here) snprintf(path, sizeof path, "%%s.tests", getenv("TG_REACHED")), f = fopen(path, "a");
  if (f) fprintf(f, "%%d %%.3f %%s\\n", row[at], now() - began, mine[at]->name), fclose(f);
  if (all != here) unsetenv("TG_ROW");
  return row_use(0), at++, rc;
}
static int wanted(int r) {
  const char *only = getenv("TG_ONLY");
  char text[16];
  snprintf(text, sizeof text, ",%%d,", r);
  return !only || strstr(only, text);
}
int __wrap__cmocka_run_group_tests(const char *name, const Test *tests, size_t n, Fixture *setup, Fixture *teardown) {
  Test own[ROWS];
  size_t k = 0;
  for (size_t i = 0; i < n && nrows + 1 < ROWS; i++) {
    if (!wanted(++nrows)) continue;
    mine[at + k] = &tests[i], row[at + k] = nrows;
    own[k] = tests[i], own[k].setup = begin, own[k++].teardown = finish;
  }
  return k ? __real__cmocka_run_group_tests(name, own, k, setup, teardown) : 0;
}
"""
ROWS = 512
BASE_S = 900                 # a program may run this long on the tree as it is
FIRST_S, OF_ONE_S = 30, 6    # of the short tests so many seconds in all, and of one program
COMPARE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
LEAVES = {"RETURN_STMT", "BREAK_STMT", "CONTINUE_STMT", "GOTO_STMT"}


@dataclass
class Rule:
    """A change of text[at:end]. plain: the change by itself; switched: the same behind a switch, where a pair of numbers is a part of the
    text, in which other changes may stand, and None the mutant's number."""
    file: str
    line: int
    what: str
    at: int
    end: int
    plain: str
    switched: list
    number: int = 0


class Reader:
    """The candidates of one file."""

    def __init__(self, name, args):
        self.name, self.found, self.data = name, [], source(name)      # libclang counts bytes
        unit = cindex.Index.create().parse(os.path.join(ROOT, name), args=args, options=cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
        here = [c for c in unit.cursor.get_children() if c.location.file and c.location.file.name == unit.spelling]
        self.macros = sorted((c.extent.start.offset, c.extent.end.offset) for c in here if c.kind == K.MACRO_INSTANTIATION)
        for c in here:
            if c.kind == K.FUNCTION_DECL and c.is_definition():
                body = list(c.get_children())[-1]
                self.statement(body, body)
            elif c.kind == K.VAR_DECL:
                self.table(c)

    def text(self, at, end):
        return self.data[at:end].decode()

    def span(self, c):
        return c.extent.start.offset, c.extent.end.offset

    def in_macro(self, c):
        at, end = self.span(c)
        return any(a <= at and end <= b for a, b in self.macros)

    def add(self, c, what, span, plain, *switched):
        at, end = span
        self.found.append(Rule(self.name, self.data.count(b"\n", 0, at) + 1, what, at, end, plain, list(switched)))

    def has_effects(self, c):
        """A call, an assignment, ++ or --: asked once only."""
        if c.kind in (K.CALL_EXPR, K.COMPOUND_ASSIGNMENT_OPERATOR, K.StmtExpr):
            return True
        children = list(c.get_children())
        if c.kind == K.BINARY_OPERATOR and len(children) == 2 and self.between(*children) in ("=", ","):
            return True
        if c.kind == K.UNARY_OPERATOR and re.match(r"\+\+|--|.*(\+\+|--)$", self.text(*self.span(c)), re.S):
            return True
        return any(self.has_effects(x) for x in children)

    def is_constant(self, c):
        names = [x for x in c.walk_preorder() if x.kind in (K.DECL_REF_EXPR, K.CALL_EXPR, K.COMPOUND_LITERAL_EXPR)]
        return all(x.referenced is not None and x.referenced.kind == K.ENUM_CONSTANT_DECL for x in names)

    def between(self, left, right):
        gap = self.text(left.extent.end.offset, right.extent.start.offset)
        return re.sub(r"/\*.*?\*/", "", gap, flags=re.S).strip()

    def statement(self, c, body):
        """c and what is in it, which is all in a function."""
        children = list(c.get_children())
        if self.in_macro(c) or c.kind == K.CXX_UNARY_EXPR or (c.kind == K.VAR_DECL and c.storage_class == cindex.StorageClass.STATIC):
            return
        if c.kind == K.VAR_DECL:                                  # not the sizes of an array
            children = [x for x in children if x.kind.is_expression() and self.data[:x.extent.start.offset].rstrip().endswith(b"=")]
        if c.kind in (K.CASE_STMT, K.DEFAULT_STMT):
            children = children[c.kind == K.CASE_STMT:]
            if children and children[0].kind == K.RETURN_STMT:
                self.early(children[0])
        if c.kind == K.IF_STMT:
            self.guard(c, children)
        elif c.kind == K.BINARY_OPERATOR and len(children) == 2 and not self.is_constant(c):
            self.operator(c, *children)
        elif c.kind == K.UNARY_OPERATOR and len(children) == 1 and not self.in_macro(children[0]):
            self.sign(c, children[0])
        elif c.kind == K.COMPOUND_STMT:
            for s in children:
                if s.kind == K.RETURN_STMT and not (c == body and s == children[-1]) and len(children) > 1:
                    self.early(s)
        for x in children:
            if x.kind != K.INIT_LIST_EXPR or c.kind != K.VAR_DECL or self.text(*self.span(x))[:1] == "{":
                self.statement(x, body)

    def guard(self, c, children):
        then = list(children[1].get_children()) if children[1].kind == K.COMPOUND_STMT else [children[1]]
        s = self.span(children[0])
        if then and then[-1].kind.name in LEAVES and not self.in_macro(children[0]) and self.has_effects(children[0]):
            self.add(c, "guard", s, "0 && (" + self.text(*s) + ")", "!(tg_mutant_on(", None, ")) && (", s, ")")     # nor is it asked
        elif then and then[-1].kind.name in LEAVES and not self.in_macro(children[0]):
            self.add(c, "guard", s, "0 && (" + self.text(*s) + ")", "tg_mutant_or(", None, ", !!(", s, "), 0)")

    def early(self, s):
        at, end = self.span(s)
        stop = self.data.find(b";", end)
        if stop >= 0 and not self.data[end:stop].strip() and not self.in_macro(s):
            self.add(s, "return", (at, stop + 1), ";", "{ if (!tg_mutant_on(", None, ")) ", (at, stop + 1), " }")

    def operator(self, c, left, right):
        op, whole, a, b = self.between(left, right), self.span(c), self.span(left), self.span(right)
        if not whole[0] <= a[0] < a[1] < b[0] < b[1] <= whole[1]:
            return
        A, B = self.text(*a), self.text(*b)
        if op in COMPARE:
            to = COMPARE[op]
            if self.has_effects(c):
                self.add(c, "compare", whole, f"{A} {to} {B}", "(tg_mutant_on(", None, f") ? ({A} {to} {B}) : (", a, f" {op} ", b, "))")
            else:
                self.add(c, "compare", whole, f"{A} {to} {B}", "tg_mutant_or(", None, ", (", a, f" {op} ", b, f"), ({A} {to} {B}))")
        elif op in ("+", "-") and re.fullmatch(r"1[uUlL]*", B) and not self.in_macro(right):
            self.add(c, "one", b, "0", "(tg_mutant_on(", None, f") ? 0 : {B})")
        elif op in ("&&", "||"):
            to, keep = ("||", "1") if op == "&&" else ("&&", "0")
            on = ["(tg_mutant_on(", None, ") || (" if op == "&&" else ") ? 0 : !!("]
            way = (self.name, whole[0], whole[1])                    # one of three, always the same for this place
            pick = random.Random(repr(way)).randrange(3)
            if pick == 0:
                self.add(c, "and-or", whole, f"(({A}) {to} ({B}))", "(tg_mutant_on(", None, f") ? (({A}) {to} ({B})) : ((", a, f") {op} (", b, ")))")
                return
            dropped, kept = (left, right) if pick == 1 else (right, left)
            d = self.span(dropped)
            part = [*on, d, "))"] if self.has_effects(dropped) else ["tg_mutant_or(", None, ", !!(", d, f"), {keep})"]
            parts = [*part, f" {op} (", b, ")"] if pick == 1 else ["(", a, f") {op} ", *part]
            self.add(c, "side", whole, self.text(*self.span(kept)), "(", *parts, ")")

    def sign(self, c, x):
        whole, inner = self.span(c), self.span(x)
        op = self.text(whole[0], inner[0]).strip()
        if op == "!":
            self.add(c, "not", whole, "!!" + self.text(*inner), "(tg_mutant_on(", None, ") ^ !", inner, ")")
        elif op == "-" and not self.is_constant(x):
            self.add(c, "sign", whole, "(" + self.text(*inner) + ")", "(tg_mutant_on(", None, ") ? (", inner, ") : -(", inner, "))")

    def table(self, c):
        """A row of a table that never changes is as the one before it."""
        rows = [x for x in c.get_children() if x.kind == K.INIT_LIST_EXPR]
        if not rows or "const" not in self.text(*self.span(c)).split("=")[0] or c.type.kind not in (cindex.TypeKind.CONSTANTARRAY, cindex.TypeKind.INCOMPLETEARRAY):
            return
        items = [x for x in rows[0].get_children() if not self.in_macro(x)]
        for before, x in zip(items, items[1:]):
            b, s = self.span(before), self.span(x)
            same = self.data[b[1]:s[0]].strip() == b","                                          # no [NAME] = between them
            if same and self.text(*b) != self.text(*s) and self.text(*s)[:1] == "{":
                self.add(x, "row", s, self.text(*b), ("table", c.spelling, self.span(c), self.span(rows[0])))


def rendered(data, edits, at, end):
    """data[at:end] with what is in it switched."""
    out, inside = [], sorted((m for m in edits if at <= m.at and m.end <= end), key=lambda m: (m.at, -m.end))
    while inside:
        m = inside[0]
        within = [x for x in inside[1:] if x.end <= m.end]
        inside = [x for x in inside if x.at >= m.end]
        out.append(data[at:m.at])
        text = b""
        for part in m.switched:
            text += str(m.number).encode() if part is None else one_line(part.encode()) if isinstance(part, str) else rendered(data, within, *part)
        lines = data[m.at:m.end].count(b"\n")                        # lines stay where they are: errors and asserts name them
        out.append(text + b"\n" * (lines - text.count(b"\n")))
        at = m.end
    return b"".join(out) + data[at:end]


def one_line(text):
    return re.sub(rb"\s*\n\s*", b" ", text)


def switched_table(data, edits):
    """A table with rows of its own for each mutant, and a name that stands for the one that is on."""
    _, name, (at, end), values = edits[0].switched[0]
    more, use = b"", name.encode()
    for m in edits:
        own = f"{name}_{m.number}".encode()
        changed = data[values[0]:m.at] + m.plain.encode() + data[m.end:values[1]]
        more += b"; static const __typeof__(%s) %s = %s" % (name.encode(), own, one_line(changed))
        use = b"(*(tg_mutant_on(%d) ? &%s : &%s))" % (m.number, own, use)
    after = data.index(b";", end) + 1
    return at, after, data[at:end] + more + b";\n#define " + name.encode() + b" " + use + b"\n#line %d\n" % (data.count(b"\n", 0, after) + 1)


@functools.cache
def source(name):
    """As it was when the mutants were drawn: who works on the tree meanwhile does not disturb."""
    with open(os.path.join(ROOT, name), "rb") as f:
        return f.read()


def instrumented(name, mutants):
    data = source(name)
    tables = {}
    for m in mutants:
        if m.what == "row":
            tables.setdefault(m.switched[0][1], []).append(m)
    places = sorted((switched_table(data, t) for t in tables.values()))
    edits, out, at = [m for m in mutants if m.what != "row"], b"", 0
    for start, end, text in places:
        out += rendered(data, edits, at, start) + text
        at = end
    return (out + rendered(data, edits, at, len(data))).decode()


# ---- drawing
def commands():
    """How the compiler is called for each file of the library, from a build that CMake has only prepared."""
    with tempfile.TemporaryDirectory() as d:
        subprocess.run(["cmake", "-S", ROOT, "-B", d, "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DCMAKE_BUILD_TYPE=Release"], check=True, capture_output=True)
        with open(os.path.join(d, "compile_commands.json")) as f:
            found = {os.path.relpath(c["file"], ROOT): shlex.split(c["command"]) for c in json.load(f)}
    return found


def candidates_of(job):
    name, command, system = job
    args = [a for a in command if a[:2] in ("-I", "-D") or a.startswith("-std")] + system
    args += [x for a, b in zip(command, command[1:]) if a == "-isystem" for x in (a, b)]
    return Reader(name, args).found


def system_headers():
    """Of the compiler: libclang from PyPI has none of its own."""
    out = subprocess.run(["cc", "-print-file-name=include"], capture_output=True, text=True).stdout.strip()
    return ["-isystem", out] if os.path.isdir(out) else []


def in_random_order(found, seed):
    """By what each changes, so that the tree may change elsewhere and most that are drawn are the same."""
    times, order = {}, []
    for m in found:
        data = source(m.file)
        start, stop = data.rfind(b"\n", 0, m.at) + 1, data.find(b"\n", m.end)
        key = f"{seed} {m.file} {m.what} {m.at - start} {data[start:stop].decode()} {m.plain}"
        times[key] = times.get(key, 0) + 1
        order.append((hashlib.sha256(f"{key} {times[key]}".encode()).digest(), m))
    return [m for _, m in sorted(order, key=lambda x: x[0])]


def drawn(folders, n, seed, jobs):
    found = commands()
    for name in found:
        if not name.startswith(("..", "/")) and os.path.exists(os.path.join(ROOT, name)):
            source(name)
    names = sorted(f for f in found if any(f.startswith(d + "/") for d in folders) and not f.startswith("..") and os.path.exists(os.path.join(ROOT, f)))
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        all_found = [m for ms in pool.map(candidates_of, [(f, found[f], system_headers()) for f in names], chunksize=8) for m in ms]
    print(f"{len(all_found)} candidates in {len(names)} files", flush=True)
    taken, ms = set(), []
    for m in in_random_order(all_found, seed):
        if len(ms) < n and (m.file, m.at, m.end) not in taken:
            taken.add((m.file, m.at, m.end)), ms.append(m)
            m.number = len(ms)
    return ms


# ---- trying
def folder_of(m):
    return os.path.dirname(m.file)


def change(m, whole=False):
    data = source(m.file)
    start, stop = data.rfind(b"\n", 0, m.at) + 1, data.find(b"\n", m.end)
    short = lambda t: re.sub(r"\s+", " ", t).strip()
    was = short(data[m.at:m.end].decode())
    line = short((data[start:m.at] + b"\xc2\xab" + data[m.at:m.end] + b"\xc2\xbb" + data[m.end:stop]).decode())
    if whole:
        return f"{m.file}:{m.line}  {line}  ->  {short(m.plain)}"
    return f"{m.file}:{m.line}  {line if len(line) < 200 else was[:200]}  ->  {short(m.plain)[:150]}"


def is_folded(command, m):
    """Whether the compiler writes the same code with it."""
    data = source(m.file)
    objects = []
    with tempfile.TemporaryDirectory() as d:
        for text in (data, data[:m.at] + m.plain.encode() + data[m.end:]):
            args = [a for i, a in enumerate(command) if a not in ("-c", "-o", "-g") and command[i - 1] != "-o" and not a.endswith(m.file)]
            at = os.path.join(d, "out.o")
            rc = subprocess.run([*args, "-O2", "-w", "-I", os.path.dirname(os.path.join(ROOT, m.file)), "-x", "c", "-c", "-", "-o", at], input=text, capture_output=True)
            if rc.returncode:
                return False
            with open(at, "rb") as f:
                objects.append(f.read())
    return objects[0] == objects[1]


def built(at, ms, sanitizers):
    """The instrumented copy; mutants that do not compile are dropped from ms, with what the compiler says."""
    where = os.path.join(at, "rules-asan" if sanitizers else "rules")
    options = [f"-DTG_ASAN={'ON' if sanitizers else 'OFF'}", "-DCMAKE_EXE_LINKER_FLAGS=-Wl,--wrap=_cmocka_run_group_tests"]
    os.makedirs(where, exist_ok=True)
    header = os.path.join(where, "mutants.h")
    if not os.path.exists(header):
        with open(header, "w") as f:
            f.write(SWITCH_H)
    top = max(m.number for m in ms) + 1
    dropped = os.path.join(where, "dropped.json")                    # by an earlier call
    known = set(loaded(dropped)) if os.path.exists(dropped) else set()
    ms[:] = [m for m in ms if key_of(m) not in known]
    while True:
        files = {}
        for m in ms:
            files.setdefault(m.file, []).append(m)
        changed = {name: instrumented(name, group) for name, group in files.items()}
        copy = Copy(where, f"-w -include {header}", {**changed, "src/base/mutants.c": SWITCH_C % top}, options)
        rc, out = copy.made("all")
        if rc == 0:
            return copy
        bad = {(os.path.relpath(f, where), int(line)) for f, line in re.findall(r"^(/\S+?):(\d+):\d+: (?:fatal )?error", out, re.M)}
        lines = lambda m: range(m.line, m.line + 1 + text_lines(m))
        gone = [m for m in ms if any((m.file, n) in bad for n in lines(m)) or (m.what == "row" and any(f == m.file for f, _ in bad))]
        if not gone:
            raise ValueError(f"the instrumented tree does not build:\n{out[-3000:]}")
        for m in gone:
            print(f"{m.number:4}  does not compile: {change(m)}", flush=True)
            known.add(key_of(m)), ms.remove(m)
        saved(dropped, sorted(known))


def text_lines(m):
    return source(m.file)[m.at:m.end].count(b"\n")


@dataclass
class Row:
    """A test of a program; number 0 stands for what is no test of cmocka's, or is done for all of them."""
    number: int
    seconds: float
    name: str
    reached: set


def reach(copy, ms, tests, jobs):
    """Which test reaches which mutant: a run of each program that also tells how long its tests take. {program: rows}, remembered for as
    long as the program stays the same; the numbers of the mutants are a part of it."""
    where = os.path.join(copy.at, "reached")
    os.makedirs(where, exist_ok=True)
    found, n = {}, max(m.number for m in ms) + 1

    def one(name):
        marks = os.path.join(where, re.sub(r"\W", "_", name))
        key = name + hashed(os.path.join(copy.build, name.split()[0].rpartition(":")[2]))
        if not os.path.exists(marks + ".json") or loaded(marks + ".json")["key"] != key:
            saved(marks + ".json", {"key": key, "rows": measured(copy, name, marks, n)})
        rows = loaded(marks + ".json")["rows"]
        if rows:
            found[name] = [Row(number, seconds, test, set(reached)) for number, seconds, test, reached in rows]

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, tests))
    return found


def measured(copy, name, marks, n):
    """The rows of a program, as lists; those that fail on the tree as it is are left out, and said."""
    with open(marks, "wb") as f:
        f.truncate(n * ROWS)
    if os.path.exists(marks + ".tests"):
        os.remove(marks + ".tests")
    start = time.time()
    rc, out = copy.test(name, BASE_S, dict(copy.env(copy.kernels()), TG_REACHED=marks))
    failing = re.findall(r"^\[  FAILED  \] (?:\w+: )?(\w+)$", out, re.M)
    print(f"{time.time() - start:6.1f} s  {name}" + ("" if rc == 0 else f": {failed_test(name, rc, out)} fails on the tree as it is"), flush=True)
    if rc and not failing:
        print(out[-1500:])
        return []
    with open(marks, "rb") as f:
        data = f.read()
    reached = lambda row: [i for i in range(n) if data[row * n + i]]
    rows = [[0, time.time() - start, "", reached(0)]]
    if os.path.exists(marks + ".tests"):
        with open(marks + ".tests") as f:
            lines = [line.split(None, 2) for line in f]
        rows += [[int(row), float(seconds), test.strip(), reached(int(row))] for row, seconds, test in lines if test.strip() not in failing]
    return rows


def hashed(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def loaded(path):
    with open(path) as f:
        return json.load(f)


def saved(path, data):
    with open(path, "w") as f:
        json.dump(data, f)


class Trial:
    """One mutant and the tests that reach it."""

    def __init__(self, copy, m, rows, limit, good):
        self.copy, self.m, self.limit, self.good = copy, m, limit, good
        self.tests = {}
        for name, all_rows in rows.items():
            whole = m.number in all_rows[0].reached
            alone = len(all_rows) == 1
            hit = all_rows if whole and alone else [r for r in all_rows[1:] if whole or m.number in r.reached]
            if hit:
                self.tests[name] = hit
        self.order = likeliest_first(m.file, {name: min(r.seconds for r in hit) for name, hit in self.tests.items()})
        self.began = time.time()

    def by(self):
        """Who notices it, or None."""
        left, now = FIRST_S, []
        for name in self.order:                                     # the short ones, of every program some
            own, mine = OF_ONE_S, []
            for r in sorted(self.tests[name], key=lambda r: r.seconds):
                if r.seconds <= min(own, left):
                    own, left = own - r.seconds, left - r.seconds
                    mine.append(r)
            now += [(name, mine)] if mine else []
        begun = lambda name: [r for n, mine in now if n == name for r in mine]
        later = [(name, [r for r in hit if r not in begun(name) and r.seconds <= self.limit]) for name, hit in self.tests.items()]
        later = sorted(((name, hit) for name, hit in later if hit), key=lambda x: sum(r.seconds for r in x[1]))
        for name, hit in now + later:
            for some in [hit] if (name, hit) in now else [[r] for r in hit]:      # a long one at a time
                if time.time() - self.began > self.limit:
                    return None
                by = self.noticed(name, some)
                if by:
                    return by
        return None

    def run(self, name, rows, mutant, cache):
        only = {"TG_ONLY": "," + "".join(f"{r.number}," for r in rows)} if rows[0].number else {}
        env = dict(self.copy.env(cache), TG_MUTANT=str(mutant), CMOCKA_TEST_ABORT="1", **only)
        return self.copy.test(name, allowed(sum(r.seconds for r in rows)), env)

    def noticed(self, name, rows):
        with tempfile.TemporaryDirectory() as own:
            cache = self.copy.kernels()
            if self.m.file.startswith("src/runtime/") and os.path.isdir(cache):       # what it spoils is its own
                cache = shutil.copytree(cache, os.path.join(own, "kernels"), ignore=shutil.ignore_patterns("*-wal", "*-shm"))
            rc, out = self.run(name, rows, self.m.number, cache)
        if rc == 0:
            return None
        last = re.findall(r"^\[ RUN      \] (\w+)", out, re.M)
        failed = [r for r in rows if last and r.name == last[-1]] or rows
        key = (name, tuple(r.number for r in failed))
        if key not in self.good:                                    # a test that needs those before it says nothing
            self.good[key] = self.run(name, failed, -1, self.copy.kernels())[0] == 0
        if self.good[key]:
            why = re.search(r"(runtime error: .{0,80}|(?:Address|Leak)Sanitizer: [\w-]+)", out)
            return " ".join(x for x in (name, last[-1] if last else "", "ran too long" if rc is None else why.group(1) if why else "") if x)
        rows = [r for r in rows if r not in failed]
        return self.noticed(name, rows) if rows else None


def key_of(m):
    """What a mutant is, wherever in the file its line has come to stand."""
    return change(m, whole=True).replace(f"{m.file}:{m.line}", m.file)


def equals_read():
    """The mutants that change nothing: four lines of tools/mutants_equal, why, file, line as it is with \u00ab \u00bb around what changes, and what
    that would be."""
    path, found = os.path.join(ROOT, "tools", "mutants_equal"), {}
    if not os.path.exists(path):
        return found
    with open(path) as f:
        lines = [line.rstrip("\n") for line in f if not line.startswith("#")]
    for block in "\n".join(lines).strip("\n").split("\n\n"):
        if block.strip():
            why, file, was, is_now = block.split("\n")
            found[f"{file}  {was}  ->  {is_now}"] = why
    return found


def verdicts(at, asan):
    """What earlier calls found of each mutant: the last that this build said, or who noticed it in the other, with or without sanitizers."""
    found = [{}, {}]
    for known, name in zip(found, ("rules-asan", "rules") if asan else ("rules", "rules-asan")):
        path = os.path.join(at, name, "results.json")
        if os.path.exists(path):
            with open(path) as f:
                known.update((r["mutant"], r["by"]) for r in map(json.loads, f))
    own, other = found
    return {**own, **{m: by for m, by in other.items() if not by.startswith("NOT") and own.get(m, "NOT").startswith("NOT")}}


def run(a, given):
    """The whole of `tools/mutate --rules`. given: tests of -t, or None."""
    if cindex is None:
        print(MISSING)
        return 77
    folders = a.folders.split(",")
    ms = drawn(folders, a.rules, a.seed, max(a.j, 1))
    if a.check:
        print("\n".join(f"{m.number:4} {m.what:8} {change(m)}" for m in chosen(ms, a.numbers)))
        return 0
    found, equals = commands(), equals_read()
    copy = built(a.d, ms, a.asan)
    rows = reach(copy, ms, given or copy.tests(), max(a.j, 1))
    results, by, good = os.path.join(copy.at, "results.json"), {}, {}
    known = verdicts(a.d, a.asan)
    ms = chosen(ms, a.numbers)

    def one(m):
        key, start = key_of(m), time.time()
        if key in equals:
            by[m.number] = f"is equal: {equals[key]}"
            return
        if key in known and not (a.again and known[key].startswith("NOT")):
            by[m.number] = known[key]
            return
        trial = Trial(copy, m, rows, a.l, good)
        name = trial.by()
        if not name and is_folded(found[m.file], m):
            name = "is folded"
        n = sum(map(len, trial.tests.values()))
        by[m.number] = name or (f"NOT NOTICED by {n} tests of {len(trial.tests)} programs" if n else "NOT REACHED")
        with open(results, "a") as f:
            f.write(json.dumps({"number": m.number, "mutant": key, "by": by[m.number], "seconds": round(time.time() - start, 1)}) + "\n")
        print(f"{m.number:4}  {change(m)}: {by[m.number]}, {time.time() - start:.0f} s", flush=True)

    pool = concurrent.futures.ThreadPoolExecutor(max(a.j, 1))
    try:
        list(pool.map(one, ms))
    except KeyboardInterrupt:                                       # the table of those that were tried
        print(f"stopped: {len(by)} of {len(ms)} were tried", flush=True)
    pool.shutdown(cancel_futures=True)
    return said([m for m in ms if m.number in by], by)


def said(ms, by):
    left = [m for m in ms if by[m.number].startswith("NOT")]
    print("\n".join(["", "not noticed:"] + [f"{m.number:4}  {change(m)}: {by[m.number]}" for m in sorted(left, key=lambda m: (m.file, m.line))]))
    print(f"\n{'folder':16} {'tried':>6} {'equal':>6} {'unreached':>10} {'noticed':>8} {'survived':>9} {'score':>7}")
    for folder in sorted({folder_of(m) for m in ms}) + [""]:
        group = [m for m in ms if not folder or folder_of(m) == folder]
        count = lambda *how: sum(by[m.number].startswith(how) for m in group)
        equal, unreached, survived = count("is folded", "is equal"), count("NOT REACHED"), count("NOT NOTICED")
        real = len(group) - equal
        noticed = real - unreached - survived
        print(f"{folder or 'all':16} {len(group):6} {equal:6} {unreached:10} {noticed:8} {survived:9} {100 * noticed / max(real, 1):6.1f}%")
    return 1 if left else 0
