// browser.js: a headless Chromium, driven through its debugging pipe, for the tests of pages. errors: what was on the console, asked:
// the addresses that were requested. finish(main) runs a test and ends the browser and the process.
'use strict'
const { spawn } = require('child_process'), fs = require('fs'), path = require('path'), os = require('os')
const home = fs.mkdtempSync(path.join(os.tmpdir(), 'tg-page-'))
const chrome = spawn(process.env.CHROMIUM || 'chromium', ['--headless', '--no-sandbox', '--disable-gpu', '--remote-debugging-pipe', '--user-data-dir=' + home,
  '--window-size=1400,900', '--no-first-run', '--disable-background-networking', 'about:blank'], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] })
let next = 1, rest = ''
const waiting = new Map(), errors = [], asked = []
chrome.stdio[4].setEncoding('utf8').on('data', d => {
  rest += d
  for (let i; (i = rest.indexOf('\0')) >= 0; rest = rest.slice(i + 1)) {
    const m = JSON.parse(rest.slice(0, i))
    if (m.id) { const [yes, no] = waiting.get(m.id); waiting.delete(m.id); m.error ? no(Error(m.error.message)) : yes(m.result) }
    if (m.method === 'Runtime.exceptionThrown') errors.push(m.params.exceptionDetails.exception ? m.params.exceptionDetails.exception.description : m.params.exceptionDetails.text)
    if (m.method === 'Runtime.consoleAPICalled' && m.params.type === 'error') errors.push(JSON.stringify(m.params.args))
    if (m.method === 'Log.entryAdded' && m.params.entry.level === 'error') errors.push(m.params.entry.text + ' ' + (m.params.entry.url || ''))
    if (m.method === 'Network.requestWillBeSent') asked.push(m.params.request.url)
  }
})
let attached
const send = (method, params = {}) => new Promise((yes, no) => { const id = next++; waiting.set(id, [yes, no]); chrome.stdio[3].write(JSON.stringify({ id, method, params, sessionId: attached }) + '\0') })
const value = async expression => { const r = await send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true }); if (r.exceptionDetails) throw Error(expression + ': ' + JSON.stringify(r.exceptionDetails)); return r.result.value }
const sleep = ms => new Promise(r => setTimeout(r, ms))
// A page that is being left answers with an error. The limit is for what never comes: a busy machine may take long.
const until = async (expression, ms = 120000) => {
  let why = ''
  for (const end = Date.now() + ms; Date.now() < end; await sleep(20)) if (await value(expression).catch(e => { why = ': ' + e.message })) return
  throw Error('never: ' + expression + why)
}
const key = async k => { for (const type of ['keyDown', 'keyUp']) await send('Input.dispatchKeyEvent', { type, key: k, text: type === 'keyDown' && k.length === 1 ? k : undefined }); await sleep(60) }
const shot = async (shots, name) => { if (shots) fs.writeFileSync(path.join(shots, name + '.png'), Buffer.from((await send('Page.captureScreenshot')).data, 'base64')) }
const must = (ok, what) => { if (!ok) throw Error(what) }

async function attach() {
  const t = (await send('Target.getTargets')).targetInfos.find(t => t.type === 'page')
  attached = (await send('Target.attachToTarget', { targetId: t.targetId, flatten: true })).sessionId
  for (const d of ['Runtime', 'Log', 'Network', 'Page']) await send(d + '.enable')
}
function finish(main, name, ms) {
  main().then(() => 0, e => { console.error(name + ': ' + (e.stack || e)); return 1 }).then(async rc => { chrome.kill(); await sleep(200); fs.rmSync(home, { recursive: true, force: true }); process.exit(rc) })
  setTimeout(() => { console.error(name + ': too slow'); chrome.kill(); process.exit(1) }, ms).unref()
}
module.exports = { attach, finish, send, value, sleep, until, key, shot, must, errors, asked }
