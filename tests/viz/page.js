// page.js URL [SHOTS]: the page of `tg viz` in a headless Chromium, driven through its debugging pipe. Each view is
// opened by its address and by keys; no error may be on the console, no request may leave, what is hostile is text,
// 10,000 nodes are laid out and drawn. SHOTS: a folder for pictures of the views.
'use strict'
const { attach, finish, send, value, sleep, until, key, must, errors, asked, shot: picture } = require('../browser.js')
const [url, shots] = process.argv.slice(2), shot = name => picture(shots, name)
const open = async hash => { await value(`location.hash = ${JSON.stringify(hash)}`); await sleep(150) }

async function main() {
  await attach()
  await send('Page.navigate', { url })
  await until('document.body && document.body.dataset.ready === "yes"')
  await shot('summary')
  must(await value('document.querySelectorAll("#view table").length') >= 2, 'no tables in the summary')
  for (const v of ['graph', 'nest', 'text', 'rewrites', 'source', 'fusion']) {
    await open(`#c=0&g=0&k=0&p=2&v=${v}&r=0`)
    if (v === 'graph') await until('layout && layout.ready')
    await sleep(100), await shot(v)
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
  await key('8'), must(await value('state.v') === 'threads', 'key 8'), await sleep(100)
  must(/1 thread of a CPU/.test(await value('document.getElementById("view").textContent')), 'no threads of a CPU')
  await key('7'), must(await value('state.v') === 'summary', 'key 7')
  for (let i = 1; i <= 6; i++) await key(String(i)), must(await value('state.v === views[' + (i - 1) + ']'), 'key ' + i)
  await key('1'), await key('j'), await key('k'), await key('+'), await key('-'), await key('0'), await key(']'), await key('d'), await sleep(100), await shot('dark')
  must(await value('state.n') !== '', 'key ] chooses no node')
  await key('n'), must(await value('state.v') === 'rewrites', 'key n'), await key('p')
  const before = await value('JSON.stringify(state)')
  await value('location.reload()'), await sleep(300), await until('document.body && document.body.dataset.ready === "yes"')
  must(await value('JSON.stringify(state)') === before, 'a link does not lead back to the state')
  await value('state.q = "RANGE", go({ v: "text", c: 0, g: 0, k: 0, p: 0 })'), await sleep(150)
  must(await value('document.querySelectorAll(".hit").length') > 0, 'search finds nothing')
  await value('state.q = "", 0')
  // a hostile folder: names are text
  await open('#c=1&g=0&k=0&p=0&v=source'), await sleep(300), await shot('hostile')
  must(await value('window.pwned === undefined && document.querySelectorAll("#tree img, #view img, #view script").length === 0'), 'a name became a part of the page')
  must((await value('document.getElementById("tree").textContent')).includes('<img src=x'), 'the hostile name is not shown')
  for (const v of ['summary', 'fusion', 'text', 'rewrites', 'nest', 'graph']) await value(`go({ v: "${v}" })`), await sleep(60)
  must(await value('window.pwned === undefined'), 'something ran')
  // the tour: each step shows its picture and what is said of it
  await value('state.t = -1, go({ c: 3, g: 0, k: -1, p: 0, v: "summary" })'), await until('list(all && all.tour).length >= 5 && document.querySelector(".tour")')
  for (let i = 0; i < await value('all.tour.length'); i++) {
    must(await value(`state.t === ${i} && document.querySelector(".tour p").textContent.length > 40 && pass() !== undefined`), 'step ' + i + ' of the tour')
    await sleep(200), await shot('tour' + i), await key('>')
  }
  await value('state.t = -1, 0')
  // folding: the tensor graph by what was called, and as it was again
  await value('go({ c: 0, g: 0, k: -1, p: 0, v: "graph", f: 0, t: -1 })'), await until('layout && layout.ready && nodes.length > 10')
  const every = await value('nodes.length')
  must(await value('nodes.filter(n => n.from.length).length') > every / 2, 'the tensor graph has no edges')
  await key('f'), await until('state.f === 1 && layout && layout.ready')
  must(await value('nodes.length') < every / 2 && await value('nodes.some(n => n.op === "LAYER" && n.name.startsWith("relu ("))'), 'nothing is folded: ' + await value('nodes.map(n => n.name).join()'))
  must(await value('nodes.some(n => n.from.length)'), 'folded boxes have no edges')
  await value('draw()'), await shot('folded')
  for (let i = 0; i < 4; i++) await key('f')
  await until('state.f === 0 && layout && layout.ready'), must(await value('nodes.length') === every, 'it does not unfold')
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
  // 10,000 nodes
  const begin = Date.now()
  await value('go({ c: 2, g: 0, k: 0, p: 0, v: "graph" }), 0'), await until('state.c === 2 && nodes.length >= 10000 && layout && layout.ready', 20000), await value('draw()')
  const laid = Date.now() - begin
  const frame = await value('(() => { const t = performance.now(); for (let i = 0; i < 10; i++) cam.x += 5, draw(); return (performance.now() - t) / 10 })()')
  await shot('large')
  console.log(`10,000 nodes: first view ${laid} ms, a frame ${frame.toFixed(1)} ms`)
  must(laid < 5000 && frame < 200, 'slow: ' + laid + ' ms, ' + frame + ' ms')
  // 100,000 are laid out, drawn, found, and moved about
  const start = Date.now()
  await value('go({ c: 4, g: 0, k: 0, p: 0, v: "graph" }), 0'), await until('state.c === 4 && nodes.length >= 100000 && layout && layout.ready', 60000), await value('draw()')
  const many = Date.now() - start
  const drawn = await value('(() => { const t = performance.now(); for (let i = 0; i < 5; i++) cam.x += 5, draw(); return (performance.now() - t) / 5 })()')
  const near = await value('(focusNode(50000), draw(), (() => { const t = performance.now(); for (let i = 0; i < 5; i++) cam.x += 5, draw(); return (performance.now() - t) / 5 })())')
  console.log(`100,000 nodes: first view ${many} ms, a frame of all ${drawn.toFixed(0)} ms, near one node ${near.toFixed(0)} ms`)
  const host = new URL(url).host
  for (const a of asked) must(a.startsWith('blob:') || a.startsWith('data:') || new URL(a).host === host, 'a request left: ' + a)
  must(!errors.length, 'console: ' + errors.join('\n'))
}
finish(main, 'viz page', 120000)
