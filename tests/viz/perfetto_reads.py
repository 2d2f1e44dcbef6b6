"""perfetto_reads.py TRACE: what Perfetto's trace processor finds in a trace of ours is what the file says: the slices with their
names, times and arguments, the tracks by name, the counters of memory; and it reports no error of import."""
import json
import sys
from collections import Counter

from perfetto.trace_processor import TraceProcessor

events = json.load(open(sys.argv[1]))
spans = [e for e in events if e["ph"] == "X"]
tp = TraceProcessor(trace=sys.argv[1])
got = [(r.name, r.ts, r.dur) for r in tp.query("select name, ts, dur from slice")]
assert Counter(n for n, _, _ in got) == Counter(e["name"] for e in spans), "names"
total, want = sum(d for _, _, d in got) / 1000, sum(e["dur"] for e in spans)
assert abs(total - want) <= 0.001 * want + len(spans), (total, want)
threads = {r.name for r in tp.query("select name from thread where name is not null")}
assert {e["args"]["name"] for e in events if e["ph"] == "M"} <= threads, threads
counters = {r.name for r in tp.query("select distinct name from counter_track")}
assert {e["name"] for e in events if e["ph"] == "C"} <= counters, counters
flops = list(tp.query("select sum(int_value) as n from args where key = 'args.flops'"))[0].n or 0
assert flops == sum(e["args"].get("flops", 0) for e in spans), flops
errors = [(r.name, r.value) for r in tp.query("select name, value from stats where severity = 'error' and value > 0")]
assert not errors, errors
print(f"{len(spans)} slices, {len(threads)} threads, {len(counters)} counters")
