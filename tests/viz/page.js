// page.js URL [SHOTS]: the page of `tg viz` in a headless Chromium, driven through its debugging pipe. Each view is
// opened by its address and by keys; no error may be on the console, no request may leave, what is hostile is text,
// 10,000 and 100,000 nodes are laid out and drawn. SHOTS: a folder for pictures of the views.
'use strict'
const { attach, finish, send, value, sleep, until, key: press, must, errors, asked, shot: picture } = require('../browser.js')
const [url, shots] = process.argv.slice(2), shot = name => picture(shots, name)
// the address that the page writes names the whole state
const open = async hash => { await value(`location.hash = ${JSON.stringify(hash)}`), await until('location.hash.includes("&f=") && !going') }
const key = async k => { await press(k), await until('!going') }
const laid = (c, more = '') => until(`state.c === ${c} && !going && layout && layout.ready${more}`)

// What a frame costs: ms of the page's own processor time in scripts, and in all that it does. Nothing is asked of these.
async function frames(what, move, n = 60) {
  const metrics = async () => Object.fromEntries((await send('Performance.getMetrics')).metrics.map(m => [m.name, 1000 * m.value]))
  const a = await metrics()
  await value(`new Promise(done => { let k = 0; const f = () => { (${move})(k); k++ < ${n} ? requestAnimationFrame(f) : done(1) }; requestAnimationFrame(f) })`)
  const b = await metrics()
  return `${what} ${((b.ScriptDuration - a.ScriptDuration) / n).toFixed(1)} (${((b.TaskDuration - a.TaskDuration) / n).toFixed(1)})`
}
async function moved(of) {
  const said = []
  for (const [what, move] of [['pan', '() => pan(3 / cam.z, 0)'], ['far', 'k => pan((k < 30 ? 40 : -40) / cam.z, 0)'], ['zoom', 'k => zoom(k % 20 < 10 ? 1.08 : 1 / 1.08)'], ['hover', 'k => hover(canvas, k * 37)']]) said.push(await frames(what, move))
  console.log(`  ${of}: ms of script (of all) in a frame: ${said.join(', ')}`)
}

// A graph of many nodes: a picture once painted is moved, not painted anew; near a node only what is near is painted; the pointer finds a node.
async function many(c, n) {
  const begin = Date.now()
  await value(`go({ c: ${c}, g: 0, k: 0, p: 0, v: "graph", f: -1, n: "" }), 0`), await laid(c, ` && nodes.length >= ${n}`), await value('draw(true)')
  console.log(`${n} nodes: first view ${Date.now() - begin} ms`)
  await shot('large' + n)
  await value('work = { boxes: 0, edges: 0 }, new Promise(done => { let k = 0; const f = () => { pan(2 / cam.z, 1 / cam.z); k++ < 20 ? requestAnimationFrame(f) : done(1) }; requestAnimationFrame(f) })')
  must(await value('work.boxes + work.edges') === 0, 'what is moved is painted anew')
  await moved('all')
  await value(`focusNode(${n / 2}), work = { boxes: 0, edges: 0 }, draw(true)`)
  const near = await value('work.boxes')
  must(near > 0 && near < 2000, `near one node ${near} boxes are painted`)
  const [x, y] = await value('(() => { const r = canvas.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2] })()')
  await send('Input.dispatchMouseEvent', { type: 'mouseMoved', x, y })
  await until(`hovered === ${n / 2} && canvas.title.startsWith("u${n / 2} = ")`)
  await shot('near' + n)
  await moved('near')
}

// Edges of the graph that is shown: what is read further down has a trunk, and no trunk passes through a box.
const routed = `(() => {
  const l = layout, bare = nodes.reduce((m, n, i) => m + n.from.filter(s => l.part[s] === l.part[i] && l.row[i] - l.row[s] > 1 && l.start[s] < 0).length, 0)
  let through = 0, passes = 0
  for (let j = 0; j < l.tx.length; j++) {
    if (!Number.isInteger(l.passed[j])) continue
    passes++
    for (let k = l.boxes.first[l.ty[j]]; k < l.boxes.first[l.ty[j] + 1]; k++) through += Math.abs(l.x[l.boxes.all[k]] - l.tx[j]) * GX < W / 2
  }
  return [passes, bare, through]
})()`

async function main() {
  await attach()
  await send('Performance.enable', { timeDomain: 'threadTicks' })
  await send('Page.navigate', { url })
  await until('document.body && document.body.dataset.ready === "yes"')
  await shot('summary')
  must(await value('document.querySelectorAll("#view table").length') >= 2, 'no tables in the summary')
  for (const v of ['graph', 'nest', 'text', 'rewrites', 'source', 'fusion']) {
    await open(`#c=0&g=0&k=0&p=2&v=${v}&r=0`)
    if (v === 'graph') await laid(0)
    await shot(v)
    must(await value(`state.v === ${JSON.stringify(v)} && document.querySelector('#views [aria-pressed=true]').textContent`) === v, v)
    if (v !== 'graph') must(await value('document.getElementById("view").textContent.length') > 20, v + ' is empty')
  }
  await open('#c=0&g=0&k=0&p=2&v=source'), await until('document.querySelectorAll("#view pre").length === 2')
  must(/\bret\b/.test(await value('document.querySelector("pre.assembly").textContent')), 'no assembly beside the source')
  await key('l'), await key('l')
  const line = await value('state.l')
  must(line > 0 && await value('[...document.querySelectorAll(".two pre")].every(pre => pre.querySelector(".at"))'), 'key l shows no line on both sides')
  await shot('source')
  await value('document.querySelector(".two pre .ln[data-l]").click()')
  must(await value('state.l') === 1 && await value('location.hash.includes("l=1")'), 'a click chooses no line, or the address lacks it')
  await value('[...document.querySelectorAll(".assembly [data-l]")].pop().click()')
  must(await value('document.querySelector(".two pre .at").dataset.l === String(state.l)'), 'a line of assembly does not lead to its source')
  await key('8'), must(await value('state.v') === 'threads', 'key 8')
  await until('/1 thread of a CPU/.test(document.getElementById("view").textContent)')
  await key('7'), must(await value('state.v') === 'summary', 'key 7')
  for (let i = 1; i <= 6; i++) await key(String(i)), must(await value('state.v === views[' + (i - 1) + ']'), 'key ' + i)
  await key('1'), await key('j'), await key('k'), await key('+'), await key('-'), await key('0'), await key(']'), await key('d'), await value('draw(true)'), await shot('dark')
  must(await value('state.n') !== '', 'key ] chooses no node')
  await value('focusNode(nodes.findIndex(n => n.from.length))'), await key('u')
  must(await value('nodes[chosenAt()].readers.length > 0'), 'key u does not lead to what the node reads')
  await key('o'), must(await value('nodes[chosenAt()].from.length > 0'), 'key o does not lead to its reader')
  await key('?'), must(await value('$("keys").open && /loops/.test($("legend").textContent)'), 'key ? shows no legend'), await shot('keys'), await value('$("keys").close()')
  await key('n'), must(await value('state.v') === 'rewrites', 'key n'), await key('p')
  const before = await value('JSON.stringify(state)')
  await value('window.left = 1, location.reload()'), await until('window.left === undefined && document.body && document.body.dataset.ready === "yes"')
  must(await value('JSON.stringify(state)') === before, 'a link does not lead back to the state')
  await value('state.q = "RANGE", go({ v: "text", c: 0, g: 0, k: 0, p: 0 })')
  await until('!going && document.querySelectorAll(".hit").length > 0')
  await value('state.q = "", 0')
  // a hostile folder: names are text
  await open('#c=1&g=0&k=0&p=0&v=source'), await until('document.querySelector("#tree").textContent.includes("<img src=x")'), await shot('hostile')
  must(await value('window.pwned === undefined && document.querySelectorAll("#tree img, #view img, #view script").length === 0'), 'a name became a part of the page')
  must((await value('document.getElementById("tree").textContent')).includes('<img src=x'), 'the hostile name is not shown')
  for (const v of ['summary', 'fusion', 'text', 'rewrites', 'nest', 'graph']) await value(`go({ v: "${v}" })`), await until('!going')
  must(await value('window.pwned === undefined'), 'something ran')
  // the tour: each step shows its picture and what is said of it
  await value('state.t = -1, go({ c: 3, g: 0, k: -1, p: 0, v: "summary" })'), await until('list(all && all.tour).length >= 5 && document.querySelector(".tour")')
  for (let i = 0; i < await value('all.tour.length'); i++) {
    must(await value(`state.t === ${i} && document.querySelector(".tour p").textContent.length > 40 && pass() !== undefined`), 'step ' + i + ' of the tour')
    await laid(3), await value('draw(true)'), await shot('tour' + i), await key('>')
  }
  await value('state.t = -1, 0')
  // folding: the tensor graph by what was called, and as it was again
  await value('go({ c: 0, g: 0, k: -1, p: 0, v: "graph", f: 0, t: -1 })'), await laid(0, ' && nodes.length > 10')
  const every = await value('nodes.length')
  must(await value('nodes.filter(n => n.from.length).length') > every / 2, 'the tensor graph has no edges')
  await key('f'), await until('state.f === 1 && layout && layout.ready')
  must(await value('nodes.length') < every / 2 && await value('nodes.some(n => n.op === "LAYER" && n.name.startsWith("relu ("))'), 'nothing is folded: ' + await value('nodes.map(n => n.name).join()'))
  must(await value('nodes.some(n => n.from.length)'), 'folded boxes have no edges')
  await value('draw(true)'), await shot('folded')
  for (let i = 0; i < 4; i++) await key('f')
  await until('state.f === 0 && layout && layout.ready'), must(await value('nodes.length') === every, 'it does not unfold')
  // what is large is opened folded, each call of a layer a box; every picture has about the shape of the window, no box covers another
  await value('go({ c: 7, g: 1, k: -1, p: 0, v: "graph", f: -1, t: -1, n: "" })'), await laid(7)
  must(await value('folds && nodes.length <= 150 && ["h0/attention", "h11/mlp"].every(name => nodes.some(n => n.name === name))'), 'GPT-2 is not folded: ' + await value('nodes.map(n => n.name).slice(0, 20).join()'))
  await value('draw(true)'), await shot('gpt2')
  for (const [c, g, p] of [[6, 0, 0], [6, 1, 0], [6, 1, 2], [7, 0, 0], [7, 1, 2]]) {
    await value(`go({ c: ${c}, g: ${g}, p: ${p}, f: -1 })`), await laid(c)
    const [shape, covered] = await value('(() => { const at = nodes.map((n, i) => [px(i), py(i)]), w = Math.max(...at.map(a => a[0])) - Math.min(...at.map(a => a[0])) + W, h = Math.max(...at.map(a => a[1])) + H, rows = new Map(); at.forEach(([x, y]) => { const r = Math.round(y); rows.has(r) ? rows.get(r).push(x) : rows.set(r, [x]) }); let covered = 0; for (const r of rows.values()) { r.sort((a, b) => a - b); for (let i = 1; i < r.length; i++) covered += r[i] - r[i - 1] < W } return [w / h, covered] })()')
    must(shape > .4 && shape < 8 && covered === 0, `context ${c}, graph ${g}, pass ${p}: ${shape.toFixed(2)} times as wide as high, ${covered} boxes are covered`)
    await value('draw(true)'), await shot(`wide${c}${g}${p}`)
  }
  // parameters have the names of their layers before anything is computed with them
  await value('go({ c: 7, g: 0, k: -1, p: 0, f: -1 })'), await laid(7)
  must(await value('folds && nodes.length <= 150 && ["h0/attention", "h11/mlp"].every(name => nodes.some(n => n.name === name))'), 'GPT-2\'s parameters: ' + await value('nodes.map(n => n.name).slice(0, 20).join()'))
  await value('draw(true)'), await shot('parameters')
  for (const [c, g, f] of [[7, 1, 0], [7, 1, -1], [6, 1, 0], [2, 0, 0]]) {
    await value(`go({ c: ${c}, g: ${g}, k: ${c === 2 ? 0 : -1}, p: 0, f: ${f}, n: "" })`), await laid(c)
    const [passes, bare, through] = await value(routed)
    must(passes > 10 && !bare && !through, `context ${c}: trunks pass ${passes} rows, ${bare} long edges have none, ${through} boxes are passed through`)
  }
  await value('go({ c: 7, g: 1, k: -1, p: 0, f: -1, n: "h3/mlp" })'), await laid(7), await value('whole(), draw(true)'), await shot('chosen')
  await value('state.f = 0, state.n = "", 0')
  // each decision of the scheduler with its costs; the timeline says what holds memory
  await value('go({ c: 6, g: 1, k: -1, p: 0, v: "fusion" })'), await until('!going')
  const decisions = await value('[...document.querySelectorAll("#view tr")].slice(1).map(tr => [...tr.cells].map(c => c.textContent))')
  must(decisions.length > 20 && decisions.every(d => d[0]), 'decisions that are not told: ' + decisions.filter(d => !d[0]).map(d => d[4]).join('\n'))
  for (const d of decisions) must(!/ us/.test(d[4]) || (/\d/.test(d[2]) && d[3]), 'no costs of: ' + d[4])
  const text = await value('launchText(all.timeline.find(l => l[0] === 1 && l[1] === 3))')
  must(/^3 \w+ on CPU: .*\n.*\nmemory .*:\n  t\d+ .*of kernels \d+ to \d+/.test(text), 'the timeline says: ' + text)
  // a rewrite stands beside its rule's text, and what it changed is marked
  const passes = await value('(async () => { await go({ c: 6, g: 1, k: 3, p: 0, v: "rewrites", r: 0 }); return record.passes.map(p => p.rewrites.findIndex(r => r[0] === "add-zero")) })()'), p = passes.findIndex(r => r >= 0)
  must(p >= 0, 'no pass adds zero')
  await value(`go({ p: ${p}, r: ${passes[p]} })`), await until('document.querySelector(".rule") && document.querySelector(".rule").textContent')
  must(/^add-zero:.*=> n/.test(await value('document.querySelector(".rule").textContent')), 'the text of the rule')
  must(await value('[...document.querySelectorAll(".changed")].some(m => m.textContent)'), 'nothing is marked as changed')
  await shot('rule')
  // of a GPU: blocks, threads by warps, and which thread of a warp has what of a matrix unit's operands
  await value('go({ c: 5, g: 0, k: 0, p: 0, v: "threads" })'), await until('all.graphs.some(g => g.kernels.length)')
  const [g, k] = await value('(() => { for (let g = 0; g < all.graphs.length; g++) for (let k = 0; k < all.graphs[g].kernels.length; k++) if (/mma/.test(all.graphs[g].kernels[k].source)) return [g, k]; return [-1, -1] })()')
  must(g >= 0, 'no product on matrix units')
  await value(`go({ g: ${g}, k: ${k}, v: 'threads' })`), await until('document.querySelectorAll("figure").length >= 5')
  must(/blocks .* of \d+ threads/.test(await value('document.getElementById("view").textContent')), 'no blocks')
  const lanes = await value('[...document.querySelectorAll("figure")].slice(2).map(f => [...f.querySelectorAll("[data-lane]")].map(c => Number(c.dataset.lane)))')
  for (const l of lanes) must(new Set(l).size === 32 && Math.min(...l) === 0 && Math.max(...l) === 31, 'not each thread of a warp has a part')
  must(lanes[2].length === 128 && lanes[2].slice(0, 8).join() === '0,0,1,1,2,2,3,3' && lanes[2][8] === 4, 'the result of m16n8 lies otherwise: ' + lanes[2].slice(0, 9))
  await shot('threads')
  await many(2, 10000)
  await many(4, 100000)
  const host = new URL(url).host
  for (const a of asked) must(a.startsWith('blob:') || a.startsWith('data:') || new URL(a).host === host, 'a request left: ' + a)
  must(!errors.length, 'console: ' + errors.join('\n'))
}
finish(main, 'viz page', 1200000)
