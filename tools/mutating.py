"""What both ways of tools/mutate share: a copy of the tree with a build of its own, its tests, and the time that each may take."""
import concurrent.futures, json, os, re, shutil, signal, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# how the programs that run on any device are run; a device before a colon is TG_DEV
ON_DEVICES = {"test_behaviours": ["INTERP", "INTERP:C", "INTERP:CUDA", "INTERP:METAL", "CPU"],
              "test_ordered": ["INTERP", "INTERP:CUDA"], "test_symbolic": ["INTERP", "INTERP:C", "INTERP:CUDA", "INTERP:METAL", "CPU"]}
FUZZ = ["fuzz --seed 1 --cases 150 --only memory", "fuzz --seed 1 --cases 250", "fuzz_calls --seed 1 --calls 20000",
        "fuzz --seed 2 --cases 1500"]
TIMES, LEAST_S = 5, 20      # a test may run this many times as long as on the tree as it is, and so many seconds at least
UNKNOWN_S = 1800            # and this long on the tree as it is


class Copy:
    """One copy of the tree with a build of its own."""

    def __init__(self, at, flags="", changed=None, options=()):
        """changed: files by their name in the tree, which are written in place of what the tree has. options: of CMake."""
        self.at, self.build = at, os.path.join(at, "build")
        changed = changed or {}
        files = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "-z"], check=True, capture_output=True).stdout
        for name in files.decode().split("\0"):
            path = os.path.join(ROOT, name)
            if name not in changed and os.path.isfile(path):
                with open(path, "rb") as f:
                    self.write(name, f.read())
                shutil.copymode(path, os.path.join(at, name))
        for name, text in changed.items():
            self.write(name, text.encode())
        if not os.path.exists(os.path.join(self.build, "CMakeCache.txt")):
            tool = ["-G", "Ninja"] if shutil.which("ninja") else []
            self.run(["cmake", "-S", at, "-B", self.build, *tool, "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_FLAGS_RELEASE=-O1",
                      f"-DCMAKE_C_FLAGS={flags}", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *options], 600)

    def write(self, name, data):
        """Only what is new: the build goes by the time of a file."""
        dst = os.path.join(self.at, name)
        if os.path.exists(dst):
            with open(dst, "rb") as f:
                if f.read() == data:
                    return
        os.makedirs(os.path.dirname(dst), exist_ok=True)
        with open(dst, "wb") as f:
            f.write(data)

    def run(self, command, limit, env=None):
        """Exit status and output; status None where it was stopped at the limit. A test may start processes: all of them go."""
        p = subprocess.Popen(command, cwd=self.at, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            out, _ = p.communicate(timeout=max(limit, 1))
            return p.returncode, out.decode(errors="replace")
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            p.communicate()
            return None, ""

    def made(self, target):
        more = [] if target != "all" else ["-j2", *(["--", "-k", "0"] if shutil.which("ninja") else [])]
        return self.run(["cmake", "--build", self.build, "--target", target, *more], 3600)

    def tests(self):
        """Every test program of the build folder, as it is run."""
        names = sorted(n for n in os.listdir(self.build) if re.fullmatch(r"test_\w+", n))
        return [t for n in names for t in ([f"{d}:{n}" for d in ON_DEVICES[n]] if n in ON_DEVICES else [n])] + FUZZ

    def env(self, cache):
        env = dict(os.environ, TG_CACHE_DIR=cache, XDG_CACHE_HOME=cache, TG_SPEC="1")
        data = os.path.join(os.path.dirname(ROOT), "shared", "data")
        if os.path.isdir(data):
            env.setdefault("TG_DATA", data)
        return env

    def kernels(self):
        """A cache of kernels, found by their text: mutants may share it."""
        return os.path.join(self.at, "kernels")

    def test(self, name, limit, env):
        words = name.split()
        device, _, program = words[0].rpartition(":")
        return self.run([os.path.join(self.build, program), *words[1:]], limit, dict(env, TG_DEV=device) if device else env)

    def timed(self, tests, again=False, jobs=1, also=lambda name: {}):
        """Seconds of each test on the tree as it is, remembered between calls. One that fails there is left out, and said."""
        path, seconds = os.path.join(self.at, "times.json"), {}
        if os.path.exists(path) and not again:
            with open(path) as f:
                seconds = json.load(f)

        def one(name):
            start = time.time()
            rc, out = self.test(name, UNKNOWN_S, dict(self.env(self.kernels()), **also(name)))
            seconds[name] = time.time() - start if rc == 0 else None
            print(f"{time.time() - start:6.1f} s  {name}" + ("" if rc == 0 else f": left out, as {failed_test(name, rc, out)} fails on the tree as it is"), flush=True)
            with open(path, "w") as f:
                json.dump(dict(seconds), f)

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            list(pool.map(one, [name for name in tests if name not in seconds]))
        return {name: seconds[name] for name in tests if seconds[name] is not None}


def failed_test(name, rc, out):
    lines = [line.split("]", 1)[1].strip() for line in out.splitlines() if line.startswith("[  FAILED  ]")]
    first = next((line for line in lines if line and " " not in line), "")
    why = "ran too long" if rc is None else f"ended by signal {-rc}" if rc < 0 else ""
    return " ".join(x for x in (name, first, why) if x)


def allowed(seconds):
    return max(LEAST_S, TIMES * seconds)


def likeliest_first(file, seconds):
    """The tests, those first whose name is like that of the file or its folder, then the quickest."""
    folder, stem = os.path.split(os.path.splitext(file)[0])
    near = set(re.split(r"[/_]", stem)), set(re.split(r"[/_]", folder)) - {"src"}

    def rank(name):
        program = name.split()[0].rpartition(":")[2]
        words = {w for word in program.removeprefix("test_").split("_") for w in (word, word.removesuffix("s"))}
        return -2 * (program == "test_" + stem) - 1.5 * bool(words & near[0]) - bool(words & near[1])

    return sorted(seconds, key=lambda name: (rank(name), seconds[name]))


def chosen(items, wanted):
    """Of items with a number those that are named: 3, 10-20."""
    numbers = set()
    for w in wanted:
        first, _, last = w.partition("-")
        numbers |= set(range(int(first), int(last or first) + 1))
    return [m for m in items if not numbers or m.number in numbers]


def noticed_by(copy, mutant, seconds, limit, env, before=lambda program: None):
    """The first test that fails, or None. No further one is begun after `limit` seconds."""
    end = time.time() + limit
    for name in likeliest_first(mutant.file, seconds):
        if time.time() > end:
            return None
        before(name.split()[0].rpartition(":")[2])
        rc, out = copy.test(name, allowed(seconds[name]), env)
        if rc != 0:
            return failed_test(name, rc, out)
    return None
