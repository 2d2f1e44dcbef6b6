// pages.js FOLDER [SHOTS]: the site of `make docs` in a headless Chromium, from the disk. Each page is opened: no error on the console, no
// request that leaves the folder, nothing wider than a telephone's screen. Search, menu, light and dark, the pictures of graphs.
'use strict'
const fs = require('fs'), path = require('path')
const { attach, finish, send, value, sleep, until, key, must, errors, asked, shot } = require('../browser.js')
const [folder, shots] = process.argv.slice(2), root = 'file://' + fs.realpathSync(folder) + '/'
const open = async page => {
  await send('Page.navigate', { url: root + page })
  await until(`location.href.startsWith(${JSON.stringify(root + page)}) && document.readyState === 'complete' && typeof SEARCH === 'object'`)
}
const screen = (width, height, mobile) => send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile })

async function main() {
  await attach()
  const pages = fs.readdirSync(folder).filter(f => f.endsWith('.html'))
  must(pages.length > 60, 'only ' + pages.length + ' pages')
  await screen(360, 740, true)
  for (const page of pages) {
    await open(page)
    must(await value('document.querySelectorAll("main h1").length') === 1, page + ' has not one title')
    must(await value('document.documentElement.scrollWidth <= 362'), page + ' is wider than a telephone: ' + await value('document.documentElement.scrollWidth'))
  }
  await open('index.html'), await shot(shots, 'telephone')
  must(await value('getComputedStyle(document.querySelector("nav")).display') === 'none', 'the menu is open')
  await value('document.getElementById("menu").click()'), must(await value('getComputedStyle(document.querySelector("nav")).display') === 'block', 'the menu does not open')
  await shot(shots, 'menu'), await screen(1280, 900, false)
  await open('tour.html'), must(await value('document.querySelectorAll("svg.graph").length') >= 6, 'no pictures of the dumps'), await shot(shots, 'tour')
  await value('document.querySelector("details:not([open]) svg.graph")?.closest("details").setAttribute("open", "")')
  for (const dark of [false, true]) {
    await send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }] })
    must((await value('getComputedStyle(document.body).backgroundColor') !== 'rgb(255, 255, 255)') === dark, 'the scheme of the system is not followed')
    await value('document.querySelector("svg.graph").scrollIntoView()'), await shot(shots, dark ? 'dark' : 'light')
  }
  await value('document.getElementById("theme").click()')
  must(await value('getComputedStyle(document.body).backgroundColor') === 'rgb(255, 255, 255)', 'the button does not change it')
  await send('Emulation.setEmulatedMedia', { features: [] }), await value('localStorage.clear()')
  await open('index.html'), await key('/')
  must(await value('document.activeElement.id') === 'search', 'key /')
  for (const c of 'softmax') await key(c)
  must(await value('document.querySelectorAll("#found a")[0].getAttribute("href")') === 'tg-reductions.html#tg_softmax', 'search finds ' + await value('document.getElementById("found").textContent'))
  await shot(shots, 'search')
  await key('Enter'), await until('location.hash === "#tg_softmax"'), await sleep(200), await shot(shots, 'reference')
  must(/tg_softmax\(/.test(await value('document.getElementById("tg_softmax").closest(".entry").textContent')), 'no example of tg_softmax')
  for (const a of asked) must(a.startsWith(root) || a.startsWith('data:') || a === 'about:blank', 'a request left: ' + a)
  must(!errors.length, 'console: ' + errors.join('\n'))
  console.log(pages.length + ' pages opened')
}
finish(main, 'docs pages', 180000)
