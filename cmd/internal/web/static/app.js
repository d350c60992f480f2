// Ties the parts together: addresses to views, events to whoever shows them.

import { el, fill, setText } from './dom.js'
import { forget, signedIn, signIn, signOut, tokenFromAddress, tablePath } from './api.js'
import { Live } from './live.js'
import { model, load, pulse, table as tableOf } from './model.js'
import { clock } from './format.js'
import { overviewView } from './overview.js'
import { explorerView } from './explorer.js'
import { objectView } from './object.js'
import { relayView } from './relay.js'
import { problemsView } from './problems.js'
import { consoleView } from './console.js'
import { signInView } from './signin.js'

const byId = id => document.getElementById(id)
const main = byId('main')
let view = null
let depth = 0

const live = new Live({
  onEvent(name, data) {
    if (name === 'overview') {
      pulse(data)
      drawTop()
    }
    view?.onEvent(name, data)
  },
  async onState(state, before) {
    setText(byId('link'), state === 'live' ? 'live' : 'lost')
    byId('link').dataset.state = state
    byId('lost').hidden = state === 'live'
    document.body.classList.toggle('stale', state !== 'live')
    if (state === 'lost') {
      setText(byId('lost'), `The server does not answer since ${clock(Date.now())}. What you see is from then. Trying again …`)
    }
    if (state === 'live' && before === 'lost') {
      await load().catch(() => {})
      view?.draw()
      view?.onRegained?.()
    }
  },
  // The session is over, or the server came back without it.
  onRefused(status) { if (status === 401) askToken() },
})

function drawTop() {
  setText(byId('cluster'), model.name)
  const count = byId('problem-count')
  count.hidden = model.problems === 0
  setText(count, String(model.problems))
  byId('sql-link').hidden = !model.sql
  for (const link of document.querySelectorAll('[data-nav=explorer], [data-nav=problems]')) link.hidden = model.relay !== null
}

function route() {
  const [, kind, table, ...key] = location.pathname.split('/').map(decoded)
  if (model.relay) return relayView()
  const params = new URLSearchParams(location.search)
  if ((kind === 't' || kind === 'o') && table && !tableOf(table)) return missingView(table)
  if (kind === 't') {
    const name = table || model.tables[0]?.name
    return name ? explorerView({ go, replace, name, params }) : overviewView({ go })
  }
  if (kind === 'o' && table && key.length) return objectView({ go, back, replace, table, key: key.join('/'), params })
  if (kind === 'problems') return problemsView()
  if (kind === 'sql') return consoleView({ replace, params })
  return overviewView({ go })
}

function decoded(part) {
  try { return decodeURIComponent(part) } catch { return part }
}

function missingView(name) {
  const root = el('div', { class: 'problems' }, el('h1', {}, `${name} is not mirrored`),
    el('p', {}, 'There are: ', model.tables.map((t, i) => [i > 0 && ', ', el('a', { href: tablePath(t.name) }, t.name)])))
  return { root, title: name, nav: '', live: {}, draw() {}, onEvent() {}, onKey() { return false } }
}

function show(next) {
  view?.stop?.()
  view = next
  fill(main, next.root)
  document.title = [next.title, model.name, 'Tarn'].filter(Boolean).join(' · ')
  for (const link of document.querySelectorAll('[data-nav]')) {
    if (link.dataset.nav === next.nav) link.setAttribute('aria-current', 'page')
    else link.removeAttribute('aria-current')
  }
  next.draw()
  live.follow(next.live)
  scrollTo(0, 0)
  main.focus({ preventScroll: true })
  next.start?.()
}

function go(path) {
  depth++
  history.pushState({ depth }, '', path)
  show(route())
}

function replace(path) { history.replaceState({ depth }, '', path) }

// back goes to where the reader came from, if that was on this page.
function back(otherwise) {
  if (depth > 0) history.back()
  else go(otherwise)
}

function askToken() {
  forget()
  drawSession()
  byId('lost').hidden = true // it does answer
  if (view?.title !== 'Sign in') show(signInView(start))
}

function drawSession() {
  byId('signout').hidden = byId('signout-all').hidden = !signedIn()
}

async function leave(all) {
  byId('keys').close()
  live.follow(null)
  await signOut(all).catch(() => {}) // the session ends by itself
  askToken()
}

function toggleTheme() {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === 'dark'
    : matchMedia('(prefers-color-scheme: dark)').matches
  document.documentElement.dataset.theme = dark ? 'light' : 'dark'
  try { localStorage.setItem('theme', document.documentElement.dataset.theme) } catch { /* it holds until the page is left */ }
}

const everywhere = {
  1: () => go('/'), 2: () => go(model.tables[0] ? tablePath(model.tables[0].name) : '/t/'), 3: () => go('/problems'),
  4: () => model.sql && go('/sql'),
  t: toggleTheme, '?': () => byId('keys').showModal(),
}

document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId('keys').open) return
  const typing = event.target.closest('input, select, textarea')
  if (view?.onKey(event)) { event.preventDefault(); return }
  if (typing) return
  if (event.key in everywhere) { event.preventDefault(); everywhere[event.key]() }
  else if (event.key === 'Escape' && location.pathname !== '/') back('/')
})

document.addEventListener('click', event => {
  const link = event.target.closest('a[href^="/"]')
  if (!link || link.target || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return
  event.preventDefault()
  go(link.getAttribute('href'))
})

addEventListener('popstate', event => {
  depth = event.state?.depth ?? 0
  show(route())
})

byId('theme').addEventListener('click', toggleTheme)
byId('help').addEventListener('click', () => byId('keys').showModal())
byId('signout').addEventListener('click', () => leave(false))
byId('signout-all').addEventListener('click', () => leave(true))

async function start() {
  const token = tokenFromAddress()
  try {
    if (token) await signIn(token)
    await load()
  } catch (error) {
    if (error.status === 401) return askToken()
    live.enter('lost')
    setTimeout(start, 2000)
    return
  }
  drawTop()
  drawSession()
  show(route())
}

depth = history.state?.depth ?? 0
start()
