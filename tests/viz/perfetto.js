// perfetto.js: Perfetto's own trace processor in node. In: the folder of Perfetto's page, which has it as WebAssembly (trace_processor.wasm) with
// the worker that drives it (engine_bundle.js). Out: processor(folder), which gives load(bytes) and query(sql), a row an object.
// The worker takes a message port, and on it messages of its protocol, TraceProcessorRpc in protobuf: a field is a number that says which and
// how it is written, then a varint, or a length and so many bytes. Field numbers are those of protos/perfetto/trace_processor/trace_processor.proto.
'use strict'
const fs = require('fs'), path = require('path'), vm = require('vm'), { webcrypto: crypto } = require('crypto')
const APPEND = 1, FINALIZE = 2, QUERY = 3   // TraceProcessorRpc.TraceProcessorMethod
const rpc = { MESSAGE: 1, SEQ: 1, REQUEST: 2, FATAL: 5, APPEND: 101, QUERY: 103, APPENDED: 201, ROWS: 203 }
const result = { NAME: 1, ERROR: 2, BATCH: 3 }, batch = { CELLS: 1, INTEGERS: 2, FLOATS: 3, STRINGS: 5, LAST: 6 }
const CHUNK = 8 << 20

// ---- protobuf
function varint(n) {
  const out = []
  for (n = BigInt.asUintN(64, BigInt(n)); n > 127n; n >>= 7n) out.push(Number(n & 127n | 128n))
  return Buffer.from([...out, Number(n)])
}
const whole = (field, n) => Buffer.concat([varint(field << 3), varint(n)])
const bytes = (field, b) => Buffer.concat([varint(field << 3 | 2), varint(b.length), b])
class Reader {
  constructor(b) { this.b = b; this.at = 0 }
  more() { return this.at < this.b.length }
  varint() {
    let n = 0n
    for (let shift = 0n; ; shift += 7n) {
      const c = this.b[this.at++]
      if (c === undefined) throw Error('a message ends in a number')
      n |= BigInt(c & 127) << shift
      if (c < 128) return BigInt.asIntN(64, n)
    }
  }
  take(n) {
    if (this.at + n > this.b.length) throw Error('a message ends early')
    return this.b.subarray(this.at, this.at += n)
  }
}
function * fields(b) {   // [number, BigInt or bytes]
  for (const r = new Reader(b); r.more();) {
    const tag = Number(r.varint()), kind = tag & 7
    if (kind !== 0 && kind !== 1 && kind !== 2 && kind !== 5) throw Error('field ' + (tag >> 3) + ' of kind ' + kind)
    yield [tag >> 3, kind === 0 ? r.varint() : kind === 2 ? r.take(Number(r.varint())) : r.take(kind === 1 ? 8 : 4)]
  }
}
function message(seq, method, ...args) { return bytes(rpc.MESSAGE, Buffer.concat([whole(rpc.SEQ, seq), whole(rpc.REQUEST, method), ...args])) }

// ---- rows: a batch has the kinds of its cells, then the values of each kind
function cells(b, out) {
  let kinds = [], strings = [], last = false
  const integers = [], floats = []
  for (const [f, v] of fields(b)) {
    if (f === batch.CELLS) kinds = [...v]
    if (f === batch.INTEGERS) for (const r = new Reader(v); r.more();) integers.push(Number(r.varint()))
    if (f === batch.FLOATS) for (let i = 0; i < v.length; i += 8) floats.push(Buffer.from(v).readDoubleLE(i))
    if (f === batch.STRINGS) strings = Buffer.from(v).toString().split('\0')
    if (f === batch.LAST) last = v !== 0n
  }
  let i = 0, d = 0, s = 0
  for (const kind of kinds) out.push(kind === 2 ? integers[i++] : kind === 3 ? floats[d++] : kind === 4 ? strings[s++] : null)
  return last
}

// The worker, in a world of its own: no window and no process, so it takes itself for the worker of a page. It asks for its WebAssembly at once.
function worker(folder) {
  const self = { location: { href: folder + '/' } }
  class XMLHttpRequest {
    open(_, name) { this.name = path.basename(name) }
    send() { this.response = new Uint8Array(fs.readFileSync(path.join(folder, this.name))) }
  }
  const says = process.env.VERBOSE ? console : { log() {}, warn() {}, error() {} }
  const world = vm.createContext({ self, WorkerGlobalScope: {}, XMLHttpRequest, console: says, setTimeout, TextDecoder, TextEncoder, URL, performance, crypto })
  vm.runInContext(fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8'), world, { filename: 'engine_bundle.js', displayErrors: false })
  return { start: port => self.onmessage({ data: port }), Bytes: vm.runInContext('Uint8Array', world) }
}

async function processor(folder) {
  const answers = [], port = { postMessage: data => answers.push(Buffer.from(data)) }
  const { start, Bytes } = worker(path.resolve(folder))
  start(port)
  let seq = 1
  const ask = (method, ...args) => {
    answers.length = 0
    port.onmessage({ data: new Bytes(message(seq++, method, ...args)) })
    const out = []
    for (const [, m] of fields(Buffer.concat(answers))) {
      for (const [f, v] of fields(m)) {
        if (f === rpc.FATAL) throw Error('trace processor: ' + Buffer.from(v))
        out.push([f, v])
      }
    }
    return out
  }
  const errors = (answer, what) => {
    for (const [f, v] of answer) if (f === what) for (const [g, e] of fields(v)) if (g === result.ERROR) throw Error('trace processor: ' + Buffer.from(e))
  }
  await new Promise(resolve => setTimeout(resolve))   // it begins in a promise
  return {
    load(trace) {
      for (let at = 0; at < trace.length; at += CHUNK) errors(ask(APPEND, bytes(rpc.APPEND, trace.subarray(at, at + CHUNK))), rpc.APPENDED)
      ask(FINALIZE)
    },
    query(sql) {
      const names = [], values = []
      for (const [f, v] of ask(QUERY, bytes(rpc.QUERY, bytes(1, Buffer.from(sql))))) {
        if (f !== rpc.ROWS) continue
        for (const [g, w] of fields(v)) {
          if (g === result.NAME) names.push(Buffer.from(w).toString())
          if (g === result.ERROR) throw Error(sql + ': ' + Buffer.from(w))
          if (g === result.BATCH) cells(w, values)
        }
      }
      const rows = []
      for (let i = 0; i < values.length; i += names.length) rows.push(Object.fromEntries(names.map((n, k) => [n, values[i + k]])))
      return rows
    }
  }
}
module.exports = { processor }
