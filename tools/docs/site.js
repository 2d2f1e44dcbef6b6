// site.js: search over index.js (names, headings, first words), the menu of narrow screens, light and dark.
'use strict'
const $ = id => document.getElementById(id), box = $('search'), found = $('found')
let now = -1
const score = (entry, words) => {
  const [name, , text] = entry, low = name.toLowerCase(), rest = text.toLowerCase()
  let sum = 0
  for (const w of words) {
    if (low === w || low === 'tg_' + w) sum += 100
    else if (low.startsWith(w) || low.startsWith('tg_' + w)) sum += 40
    else if (low.includes(w)) sum += 20
    else if (rest.includes(w)) sum += 3
    else return 0
  }
  return sum - name.length / 100
}
function show() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean)
  found.textContent = '', now = -1
  if (!words.length) return
  const best = SEARCH.map(e => [score(e, words), e]).filter(x => x[0] > 0).sort((a, b) => b[0] - a[0]).slice(0, 30)
  for (const [, [name, place, text]] of best) {
    const li = document.createElement('li'), a = document.createElement('a'), small = document.createElement('small')
    a.href = place, a.textContent = name, small.textContent = text.slice(0, 110)
    a.append(small), li.append(a), found.append(li)
  }
  if (!best.length) { const li = document.createElement('li'); li.textContent = ' nothing is called so', found.append(li) }
}
function choose(step) {
  const all = [...found.querySelectorAll('a')]
  if (!all.length) return
  now = (now + step + all.length) % all.length
  all.forEach((a, i) => a.classList.toggle('now', i === now))
  all[now].scrollIntoView({ block: 'nearest' })
}
box.addEventListener('input', show)
box.addEventListener('keydown', e => {
  if (e.key === 'ArrowDown') choose(1), e.preventDefault()
  if (e.key === 'ArrowUp') choose(-1), e.preventDefault()
  if (e.key === 'Escape') box.value = '', show(), box.blur()
  if (e.key === 'Enter') { const a = found.querySelector('a.now') || found.querySelector('a'); if (a) location.href = a.href, found.textContent = '', box.blur() }
})
document.addEventListener('click', e => { if (!e.target.closest('.seek')) found.textContent = '' })
document.addEventListener('keydown', e => { if (e.key === '/' && e.target === document.body) box.focus(), e.preventDefault() })
$('menu').addEventListener('click', () => $('menu').setAttribute('aria-expanded', String(document.querySelector('nav').classList.toggle('open'))))
const store = (() => { try { return localStorage } catch { return null } })()
const paint = theme => { if (theme) document.documentElement.dataset.theme = theme }
try { paint(store && store.getItem('theme')) } catch { }
$('theme').addEventListener('click', () => {
  const dark = getComputedStyle(document.body).backgroundColor !== 'rgb(255, 255, 255)', theme = dark ? 'light' : 'dark'
  paint(theme)
  try { store && store.setItem('theme', theme) } catch { }
})
const here = document.querySelector('nav [aria-current]')
if (here) document.querySelector('nav').scrollTop = here.offsetTop - 200
