// perfetto_reads.js FOLDER TRACE..: what Perfetto's trace processor (perfetto.js, of its page in FOLDER) finds in traces of ours is what the files
// say: each slice with its track, name, time and arguments, the tracks by name, the counters of memory, no error of import. And by SQL over what
// it found, kernels, waits and the host's work add up to the time that passed, within 2 percent.
'use strict'
const fs = require('fs'), { processor } = require('./perfetto.js')
const [folder, ...files] = process.argv.slice(2)
const must = (ok, ...what) => { if (!ok) throw Error(what.map(w => typeof w === 'string' ? w : JSON.stringify(w)).join(' ')) }
const ns = us => Math.round(us * 1000), near = (a, b) => Math.abs(a - b) <= 1
const order = (a, b) => a.tid - b.tid || a.ts - b.ts || b.dur - a.dur || (a.name < b.name ? -1 : 1)

function slices(p, events) {
  const want = events.filter(e => e.ph === 'X').map(e => ({ tid: e.tid, name: e.name, cat: e.cat, ts: ns(e.ts), dur: ns(e.dur), args: e.args })).sort(order)
  const got = p.query('select s.id, tid, s.name, category as cat, s.ts, dur, arg_set_id from slice s join thread_track t on s.track_id = t.id join thread using (utid)').sort(order)
  must(got.length === want.length, got.length, 'slices of', want.length)
  const args = new Map()
  for (const a of p.query("select arg_set_id as of, substr(key, 6) as key, coalesce(int_value, real_value, string_value) as value from args where key glob 'args.*'")) {
    args.set(a.of, { ...args.get(a.of), [a.key]: a.value })
  }
  want.forEach((w, i) => {
    const g = got[i]
    must(g.name === w.name && g.cat === w.cat && near(g.ts, w.ts) && near(g.dur, w.dur), 'slice', g, 'of', w)
    const has = args.get(g.arg_set_id) || {}
    for (const [key, v] of Object.entries(w.args)) must(typeof v === 'string' ? has[key] === v : Math.abs(has[key] - v) <= 1e-9 * Math.abs(v), w.name, key, 'is', has[key], 'not', v)
  })
  return want.length
}

function names(p, events) {
  const names = new Map(p.query('select tid, name from thread where name is not null').map(r => [r.tid, r.name]))
  for (const e of events) if (e.ph === 'M') must(names.get(e.tid) === e.args.name, 'track', e.tid, 'is', names.get(e.tid), 'not', e.args.name)
  for (const e of events) must(names.has(e.tid), 'track', e.tid, 'has no name')
  return names
}

function counters(p, events) {
  const want = events.filter(e => e.ph === 'C').map(e => [e.name + ' bytes', ns(e.ts), e.args.bytes])
  const got = p.query("select t.name || ' ' || 'bytes' as name, c.ts, c.value from counter c join counter_track t on c.track_id = t.id order by c.ts, c.id")
  want.sort((a, b) => a[1] - b[1])
  must(got.length === want.length, got.length, 'values of counters, not', want.length)
  want.forEach(([name, ts, value], i) => must(got[i].name.startsWith(name.slice(0, -6)) && near(got[i].ts, ts) && got[i].value === value, 'counter', got[i], 'of', [name, ts, value]))
  return want.length
}

// Kernels of a device without a queue run on the host's thread. What the host did itself is its slices without those that they hold.
function addsUp(p) {
  const one = sql => p.query(sql)[0]
  p.query(`create perfetto table host as select s.* from slice s join thread_track t on s.track_id = t.id join thread using (utid) where tid = 1`)
  p.query(`create perfetto table kernel as select s.* from slice s where category = 'kernel' and not extract_arg(arg_set_id, 'args.queue')`)
  const wall = one(`select max(ts + dur) - min(ts) as n from (select ts, dur from host union all select ts, dur from kernel)`).n
  const kernels = one(`select coalesce(sum(dur), 0) as n from kernel`).n
  const waits = one(`select coalesce(sum(dur), 0) as n from host where category = 'wait'`).n
  const host = one(`select sum(dur - coalesce((select sum(c.dur) from host c where c.parent_id = h.id), 0)) as n from host h where category = 'host'`).n - kernels
  const sum = kernels + waits + host
  must(host >= 0 && Math.abs(sum - wall) <= 0.02 * wall, 'kernels', kernels, 'waits', waits, 'host', host, 'are', sum, 'of', wall)
  return 100 * sum / wall
}

async function main() {
  for (const file of files) {
    const p = await processor(folder), bytes = fs.readFileSync(file), events = JSON.parse(bytes)
    p.load(bytes)
    const errors = p.query("select name, value from stats where severity = 'error' and value > 0")
    must(!errors.length, 'errors of import:', errors)
    const threads = names(p, events), n = slices(p, events), values = counters(p, events)
    must(values > 0, 'no curve of memory')
    console.log(`${n} slices on ${threads.size} tracks, ${values} values of memory; kernels, waits and host are ${addsUp(p).toFixed(2)} % of the time`)
  }
}
main().catch(e => { console.error('perfetto: ' + String(e.stack).slice(-2000)); process.exit(1) })
