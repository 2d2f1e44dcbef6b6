// page.js URL [SHOTS]: the page of `tg serve` in a headless Chromium. A message is typed and sent by keys, the reply streams, is stopped, edited,
// made again; two turns; pictures; dark, light, a telephone's width. Replies of Markdown, and broken ones, come from a fetch of the test's own. No error may
// be on the console, no request may leave, what a reply says never becomes a part of the page. SHOTS: a folder for pictures.
'use strict'
const { attach, finish, send, value, sleep, until, key, must, errors, asked, shot: picture } = require('../browser.js')
const [url, shots] = process.argv.slice(2), shot = name => picture(shots, name)
const type = text => send('Input.insertText', { text })
const press = async (name, code, modifiers = 0) => { for (const t of ['rawKeyDown', 'keyUp']) await send('Input.dispatchKeyEvent', { type: t, key: name, code: name, windowsVirtualKeyCode: code, modifiers }); await sleep(30) }
const enter = () => press('Enter', 13)
const count = what => value(`document.querySelectorAll(${JSON.stringify(what)}).length`)
const button = (text, nth = -1) => value(`[...document.querySelectorAll('#talk button')].filter(b => b.textContent === ${JSON.stringify(text)}).at(${nth}).click()`)
const last = () => value('messages.at(-1).content')
const idle = () => until('!running && messages.length && messages.at(-1).role === "assistant" && document.getElementById("send").textContent === "Send"', 60000)
const width = async (width, height, mobile) => { await send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile }); await sleep(120) }
const fits = () => value('document.documentElement.scrollWidth <= innerWidth && document.getElementById("send").getBoundingClientRect().right <= innerWidth && document.getElementById("input").getBoundingClientRect().bottom <= innerHeight')

// What the page gets instead of the server's reply: texts, one event each.
const replies = texts => value(`window.before ||= window.fetch, window.fetch = async () => new Response(new ReadableStream({ async start(c) {
  for (const t of ${JSON.stringify(texts)}) c.enqueue(new TextEncoder().encode('data: ' + JSON.stringify({ choices: [{ delta: { content: t } }] }) + '\\n\\n'))
  c.enqueue(new TextEncoder().encode('data: [DONE]\\n\\n')), c.close() } })), 0`)

// The server's replies, an event every 15 ms: a small model's are over before anybody looks.
const paced = () => value(`window.before ||= window.fetch, window.fetch = async (...of) => {
  const reply = await window.before(...of)
  if (!/event-stream/.test(reply.headers.get('content-type'))) return reply
  const events = new TransformStream({ rest: '', transform(text, c) {
    this.rest += text
    for (let i; (i = this.rest.indexOf('\\n\\n')) >= 0; this.rest = this.rest.slice(i + 2)) c.enqueue(this.rest.slice(0, i + 2)) } })
  const slowly = new TransformStream({ async transform(event, c) { c.enqueue(event), await new Promise(r => setTimeout(r, 15)) } })
  return new Response(reply.body.pipeThrough(new TextDecoderStream()).pipeThrough(events).pipeThrough(slowly).pipeThrough(new TextEncoderStream()), reply) }, 0`)

async function talks() {
  await paced()
  must(await value('document.activeElement.id') === 'input', 'the message is not what is typed into')
  await type('Once upon a time'), await shot('typed')
  must(await value('document.getElementById("input").value') === 'Once upon a time', 'the text is not there')
  await enter(), await until('messages.length === 2 && messages[1].content.length > 3', 60000)
  must(await value('document.getElementById("input").value') === '', 'what was sent is still there')
  const some = (await last()).length
  await idle()
  must((await last()).length > some && /tokens.*a second.*first after/.test(await value('document.querySelector("#talk footer span").textContent')), 'no stream, or no rate')
  await shot('reply')
  // the same again by a seed: another text; then edited: what was sent comes back
  const first = await last()
  await button('regenerate'), await sleep(30), await idle()
  must(await value('messages.length') === 2, 'a reply is made beside the old one')
  await type('And'), await enter(), await until('messages.length === 4'), await idle()
  await button('edit', 0)
  must(await value('messages.length') === 0 && await value('document.getElementById("input").value') === 'Once upon a time', 'edit does not bring the message back')
  await enter(), await idle()
  must(await last() === first, 'the same message gives another reply')
}

async function stops() {
  await value('document.getElementById("max_tokens").value = 400, 0')
  await press('n', 78, 1) // Alt+N
  must(await value('messages.length') === 0, 'Alt+N begins no new conversation')
  await type('A long story'), await enter()
  await until('running && messages.length === 2 && messages[1].content.length > 20', 60000)
  must(await value('document.getElementById("send").textContent') === 'Stop', 'nothing to stop it by')
  await press('Escape', 27), await until('!running')
  const length = (await last()).length
  await sleep(400)
  must((await last()).length === length && /stopped/.test(await value('document.querySelector("#talk").textContent')), 'it goes on')
  await type('More'), await enter(), await until('running && messages.at(-1).content.length > 10', 60000)
  await value('document.getElementById("send").click()'), await until('!running')
  await type('one'), await press('Enter', 13, 8), await type('two') // Shift+Enter: it is not sent
  must(!await value('running') && /one/.test(await value('document.getElementById("input").value')), 'Shift+Enter sends')
  await value('document.getElementById("input").value = "", document.getElementById("max_tokens").value = "", 0')
}

const MARKDOWN = ['# A title\n\nText with **strong**, *slanted* and `co', 'de`, a [link](https://example.com/x).\n\n- one\n- two\n\n1. first\n2. second\n\n```c\nint main(void) {\n',
  '  return a < b && "<b>no</b>"; // a line that is much longer than a telephone is wide, so that it has to be scrolled sideways within its box\n}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n']
const HOSTILE = ['<img src=x onerror="window.pwned=1"><script>window.pwned=1</scr', 'ipt> [x](javascript:window.pwned=1) ![i](http://evil.example/i.png)\n```html\n<script>window.pwned=1</script>\n', '<iframe src=//evil.example>']

async function shows() {
  await replies(MARKDOWN), await press('n', 78, 1), await type('Show me'), await enter(), await idle()
  for (const [what, n] of [['h3', 1], ['strong', 1], ['em', 1], ['p code', 1], ['p a', 1], ['ul li', 2], ['ol li', 2], ['pre code', 1], ['table th', 2], ['table td', 2]])
    must(await count('#talk article.assistant ' + what) === n, `${await count('#talk article.assistant ' + what)} of ${what}, not ${n}`)
  must((await value('document.querySelector("#talk pre code").textContent')).includes('"<b>no</b>"'), 'code is not as it was written')
  must(await value('document.querySelector("#talk pre").scrollWidth > document.querySelector("#talk pre").clientWidth || innerWidth > 900'), 'a long line of code is cut')
  const back = () => value('getComputedStyle(document.body).backgroundColor')
  const seen = []
  for (const theme of ['light', 'dark']) {
    await send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: theme }] }), await sleep(100)
    seen.push(await back()), await shot('markdown-' + theme)
  }
  must(seen[0] === 'rgb(255, 255, 255)' && seen[1] !== seen[0], 'dark is as light: ' + seen)
  await value('document.getElementById("theme").click()'), must(await back() === seen[0], 'the button does not make it light')
  await value('document.getElementById("theme").click()'), must(await back() === seen[1], 'the button does not make it dark again')
  await width(390, 844, true), must(await fits(), 'too wide for a telephone'), await shot('telephone-dark')
  await value('document.getElementById("theme").click(), document.getElementById("settings").open = true, 0'), must(await fits(), 'settings are too wide'), await shot('telephone-settings')
  await width(320, 500, true), must(await fits(), 'too wide for a small telephone')
  await value('document.getElementById("settings").open = false, 0'), await width(1400, 900, false)
  await replies(HOSTILE), await press('n', 78, 1), await type('<img src=x onerror="window.pwned=1">'), await enter(), await idle()
  must(await value('window.pwned === undefined') && await count('#talk img, #talk script, #talk iframe') === 0, 'a reply became a part of the page')
  must(await value('![...document.querySelectorAll("#talk a")].some(a => !/^https?:/.test(a.href))'), 'a link that is no address'), await shot('hostile')
  // what goes wrong is said, and the next message works
  await value('window.fetch = async () => new Response(JSON.stringify({ error: { message: "the queue is full" } }), { status: 429 }), 0')
  await press('n', 78, 1), await type('x'), await enter(), await until('document.querySelector("#talk .error")')
  must(/the queue is full/.test(await value('document.querySelector("#talk .error").textContent')), 'the error is not said')
  await value('window.fetch = window.before, 0')
  await type('The dog'), await enter(), await idle(), must((await last()).length > 3, 'nothing after an error')
}

// A model that reads pictures (as the page is told): one is pasted, one dropped; they are sent as parts of the message, and one that is left out is not.
async function pictures() {
  await value(`window.had = models[0].chat_template, models[0].chat_template = models[0].pictures = true, document.getElementById("picture").hidden = !sees(), window.sent = null, window.fetch = async (path, o) => { window.sent = JSON.parse(o.body); return new Response('data: {"choices":[{"delta":{"content":"seen"}}]}\\n\\ndata: [DONE]\\n\\n') }, 0`)
  await press('n', 78, 1)
  const file = (kind, event) => value(`(async () => {
    const c = document.createElement("canvas"); c.width = 30, c.height = 20, c.getContext("2d").fillRect(0, 0, 9, 9)
    const data = new DataTransfer(); data.items.add(new File([await new Promise(r => c.toBlob(r, ${JSON.stringify(kind)}))], "a", { type: ${JSON.stringify(kind)} }))
    ${event} })(), 0`)
  const paste = kind => file(kind, 'document.getElementById("input").dispatchEvent(Object.assign(new ClipboardEvent("paste", { clipboardData: data, bubbles: true })))')
  await paste('image/png'), await until('shown.length === 1')
  await file('image/webp', 'document.dispatchEvent(new DragEvent("drop", { dataTransfer: data }))'), await until('shown.length === 2')
  await paste('image/png'), await until('shown.length === 3')
  await value('document.querySelector("#shown button:last-child").click()')
  must(await count('#shown img') === 2, 'a picture cannot be left out')
  await type('What is it?'), await shot('picture'), await enter(), await idle()
  const parts = JSON.parse(await value('JSON.stringify(window.sent.messages.at(-1).content)'))
  must(parts.length === 3 && parts[0].image_url.url.startsWith('data:image/png;base64,') && parts[1].image_url.url.startsWith('data:image/jpeg;base64,') && parts[2].text === 'What is it?', 'the pictures are not sent: ' + JSON.stringify(parts).slice(0, 300))
  must(await count('#talk article.user img') === 2 && await count('#shown img') === 0, 'the pictures are not shown')
  await button('edit', 0), must(await count('#shown img') === 2, 'edit does not bring the pictures back')
  await value('models[0].pictures = false, models[0].chat_template = window.had, document.getElementById("picture").hidden = !sees(), window.fetch = window.before, 0')
  await press('n', 78, 1), must(await count('#shown img') === 0, 'a new conversation has old pictures')
  await type('The dog'), await enter(), await idle()
}

// Every control can be reached by Tab, has a name and shows where the focus is.
async function keys() {
  const seen = new Set()
  for (let i = 0; i < 40; i++) {
    await press('Tab', 9)
    seen.add(await value('document.activeElement.id || document.activeElement.textContent'))
    must(await value('(e => e === document.body || !!(e.textContent || e.labels?.length || e.getAttribute("aria-label") || e.title).toString().trim())(document.activeElement)'), 'a control has no name')
  }
  for (const id of ['fresh', 'theme', 'input', 'send', 'regenerate', 'edit']) must(seen.has(id), 'Tab does not reach ' + id + ': ' + [...seen])
}

async function main() {
  await attach()
  await send('Page.navigate', { url })
  await until('document.readyState === "complete" && document.getElementById("name") && document.getElementById("name").textContent !== "tg serve"')
  await talks(), await stops(), await shows(), await pictures(), await keys()
  const outside = asked.filter(a => !a.startsWith(url) && !a.startsWith('data:') && !a.startsWith('about:'))
  must(!outside.length, 'asked outside: ' + outside)
  must(!errors.length, 'errors on the console: ' + errors.join('\n'))
}
finish(main, 'page.js', 240000)
