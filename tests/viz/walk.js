// walk.js URL CONTEXT.. [SHOTS]: every view of what programs recorded, in a headless Chromium, by keys alone: of each context
// (its number, as in c0) the first and the last graph, of these the schedule, the first and the last kernel, of these the
// first and the last pass. Something is shown in each view, no error is on the console, no request leaves. A last word that
// is no number: a folder for pictures.
'use strict'
const { attach, finish, send, value, until, key: press, must, errors, asked, shot: picture } = require('../browser.js')
const [url, ...rest] = process.argv.slice(2), contexts = rest.filter(w => /^\d+$/.test(w)).map(Number), shots = rest.find(w => !/^\d+$/.test(w))
const key = async k => { await press(k), await until('!going') }
const ends = n => n > 1 ? [0, n - 1] : n ? [0] : []

// What a view shows: a graph's boxes, or text.
async function view(i, name) {
  await key(String(i + 1))
  must(await value('state.v') === name, 'key ' + (i + 1) + ' does not show ' + name)
  if (name === 'graph') {
    await until('layout && layout.ready')
    must(await value('draw(true), nodes.length > 0'), 'a graph without nodes')
  } else
    await until('document.getElementById("view").textContent.trim().length > 10')
}

async function context(c) {
  const begin = Date.now()
  await value(`go({ c: ${c}, g: 0, k: -1, p: 0, t: -1, f: 0, v: "graph" })`), await until(`state.c === ${c} && layout && layout.ready`), await value('draw(true)')
  console.log(`c${c}: ${await value('nodes.length')} nodes, first view ${Date.now() - begin} ms`)
  const names = await value('views')
  for (const g of ends(await value('all.graphs.length'))) {
    await value(`go({ g: ${g}, k: -1, p: 0 })`)
    for (const k of [-1, ...ends(await value('graph().kernels.length'))]) {
      await value(`go({ k: ${k}, p: 0, v: "text" })`)
      for (const p of ends(await value('record.passes.length'))) {
        await value(`go({ p: ${p} })`)
        for (let i = 0; i < names.length; i++) {
          await view(i, names[i])
          if (g === 0 && k < 1) await picture(shots, `c${c}-${k}-${p}-${names[i]}`)
        }
        if (g === 0 && p === 0) for (const move of ['j', 'k', 'n', 'p', ']', '[', '+', '-', '0', '.', ',', 'z', 'f']) await key(move)
        await value('state.f = 0')
      }
    }
  }
  must(!errors.length, 'console: ' + errors.join('\n'))
}

async function main() {
  await attach()
  await send('Page.navigate', { url })
  await until('document.body && document.body.dataset.ready === "yes"')
  for (const c of contexts) await context(c)
  const host = new URL(url).host
  for (const a of asked) must(a.startsWith('blob:') || a.startsWith('data:') || new URL(a).host === host, 'a request left: ' + a)
}
finish(main, 'viz walk', 1200000)
